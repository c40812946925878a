"""What a rename in Go takes along, and what it leaves to others, with a real gopls."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "go.mod": "module example.com/zoo\n\ngo 1.21\n",
    "zoo.go": """\
package zoo

type Dog struct{}

func (Dog) Speak() string { return "wuff" }

type Puppy struct{ Dog }

func (p Puppy) Twice() string { return p.Speak() + p.Dog.Speak() + Dog.Speak(p.Dog) }
""",
    "ask/ask.go": """\
package ask

type speaker interface{ Speak() string }

func Ask(x any) string {
	if s, ok := x.(speaker); ok {
		return s.Speak()
	}
	return ""
}
""",
}


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"])


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


async def test_calls_of_what_implements_a_renamed_method_of_an_interface_keep_its_name(tmp_path: Path) -> None:
    """gopls lists them among the references of the interface's method, and its rename leaves them out."""
    root = written(tmp_path / "zoo", FILES)
    async with asker(tmp_path, root) as client:
        renamed = await client.result(
            "rename_symbol", name_path="speaker/Speak", relative_path="ask/ask.go", new_name="Talk"
        )
    assert not renamed["isError"], text_of(renamed)
    assert (root / "ask/ask.go").read_text() == FILES["ask/ask.go"].replace("Speak()", "Talk()")
    assert (root / "zoo.go").read_text() == FILES["zoo.go"]
    assert "Speak still occurs as the name of other symbols, such as overrides: zoo.go:4, zoo.go:8" in text_of(renamed)
