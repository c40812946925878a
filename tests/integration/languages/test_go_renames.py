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
    "zoo_test.go": """\
package zoo_test

import (
	"fmt"

	"example.com/zoo"
)

func ExamplePuppy() {
	fmt.Println(zoo.Puppy{})
	// Output: {{}}
}

func ExamplePuppy_Twice_loud() {
	fmt.Println(zoo.Puppy{}.Twice())
	// Output: wuffwuffwuff
}

func ExamplePuppyZoo() {}
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


async def test_a_method_of_an_interface_is_not_renamed_without_what_implements_it(tmp_path: Path) -> None:
    """gopls lists calls of what implements it among its references, and leaves them out of its rename."""
    root = written(tmp_path / "zoo", FILES)
    rename = {"name_path": "speaker/Speak", "relative_path": "ask/ask.go", "new_name": "Talk"}
    async with asker(tmp_path, root) as client:
        refused = await client.result("rename_symbol", **rename)
        assert refused["isError"], text_of(refused)
        assert "must have the same name as 'Dog/Speak in zoo.go:4', which" in text_of(refused)
        renamed = await client.result("rename_symbol", **rename, force=True)
    assert not renamed["isError"], text_of(renamed)
    assert (root / "ask/ask.go").read_text() == FILES["ask/ask.go"].replace("Speak()", "Talk()")
    assert (root / "zoo.go").read_text() == FILES["zoo.go"]
    assert "Speak still occurs as the name of other symbols, such as overrides: zoo.go:4, zoo.go:8" in text_of(renamed)


async def test_examples_that_are_named_after_a_renamed_symbol_are_listed(tmp_path: Path) -> None:
    root = written(tmp_path / "zoo", FILES)
    async with asker(tmp_path, root) as client:
        for name_path, places in (("Puppy", "zoo_test.go:8, zoo_test.go:13"), ("Puppy/Twice", "zoo_test.go:13")):
            renamed = await client.result("rename_symbol", name_path=name_path, new_name="Other", dry_run=True)
            assert f"in names of examples, which go vet and go test reject until they are renamed: {places}" in (
                text_of(renamed)
            )


PLATFORMS = {
    "go.mod": FILES["go.mod"],
    "run.go": "package zoo\n\ntype Cat struct{}\n\nfunc Run() int { return speed() + pace() + Cat{}.hide() }\n",
    "speed_linux.go": "package zoo\n\nfunc speed() int { return 1 }\n\nfunc (Cat) hide() int { return speed() }\n",
    "speed_windows.go": "package zoo\n\nfunc speed() int { return 2 }\n\nfunc (Cat) hide() int { return speed() }\n",
    "speed_others.go": "//go:build !linux && !windows\n\npackage zoo\n\nfunc speed() int { return 3 }\n\n"
    "func (Cat) hide() int { return speed() }\n",
    "speed_test.go": "package zoo_test\n\nfunc speed() int { return 4 }\n",
    "generate.go": "//go:build ignore\n\npackage zoo\n\nfunc speed() int { return 5 }\n",
    "pace.go": "//go:build !special\n\npackage zoo\n\nfunc pace() int { return 1 }\n",
    "pace_special.go": "//go:build special\n\npackage zoo\n\nfunc pace() int { return 2 }\n",
}


async def test_what_each_platform_declares_is_renamed_for_all_of_them(tmp_path: Path) -> None:
    root = written(tmp_path / "zoo", PLATFORMS)
    async with asker(tmp_path, root) as client:
        for name_path, path, new_name in (
            ("speed", "speed_linux.go", "tempo"),
            ("Cat/hide", "speed_windows.go", "vanish"),
            ("pace", "pace.go", "gait"),
        ):
            renamed = await client.result("rename_symbol", name_path=name_path, relative_path=path, new_name=new_name)
            assert not renamed["isError"], text_of(renamed)
    platforms = ("run.go", "speed_linux.go", "speed_windows.go", "speed_others.go")
    for path in platforms:
        expected = (
            PLATFORMS[path].replace("speed()", "tempo()").replace("hide()", "vanish()").replace("pace()", "gait()")
        )
        assert (root / path).read_text() == expected
    for path in PLATFORMS.keys() - {*platforms, "pace.go"}:
        assert (root / path).read_text() == PLATFORMS[path]
    assert "pace still occurs in code that the language server cannot resolve (check each): pace_special.go:4" in (
        text_of(renamed)
    )


async def test_what_gopls_does_not_know_is_deleted_by_force_alone(tmp_path: Path) -> None:
    root = written(tmp_path / "zoo", PLATFORMS)
    special = {"name_path": "pace", "relative_path": "pace_special.go"}
    async with asker(tmp_path, root) as client:
        refused = await client.result("safe_delete_symbol", **special)
        assert refused["isError"], text_of(refused)
        assert "pace was not deleted. The references to pace may be incomplete: The language server gopls refused" in (
            text_of(refused)
        )
        assert "Pass force=true to delete it anyway." in text_of(refused)
        deleted = await client.result("safe_delete_symbol", **special, force=True)
        assert not deleted["isError"], text_of(deleted)
    assert "pace" not in (root / "pace_special.go").read_text()


DIRECTIVES = {
    "go.mod": FILES["go.mod"],
    "clock/clock.go": "package clock\n\nfunc ticks() int { return 1 }\n\nfunc clock() {}\n\nfunc run() {}\n\n"
    "type day int\n",
    "user/user.go": 'package user\n\nimport _ "unsafe"\n\n//go:generate go run stringer -type=day ../clock\n\n'
    "//go:linkname count example.com/zoo/clock.ticks\nfunc count() int\n",
    "user/user.s": "",
}


async def test_what_a_directive_names_is_in_use(tmp_path: Path) -> None:
    """A directive is a comment to gopls: it lists no reference there."""
    root = written(tmp_path / "zoo", DIRECTIVES)
    async with asker(tmp_path, root) as client:
        for name, line in (("ticks", 6), ("day", 4)):
            refused = await client.result("safe_delete_symbol", name_path=name, relative_path="clock/clock.go")
            assert f"the directive in user/user.go:{line} names it" in text_of(refused), text_of(refused)
        found = await client.ask("find_unused_symbols", relative_path="clock/clock.go")
    assert [one["name_path"] for one in found["unused"]] == ["clock", "run"]


async def test_a_word_of_go_mod_is_no_place_of_a_symbol(tmp_path: Path) -> None:
    """gopls reads the file, too, and refuses every question about it."""
    code = "package zoo\n\ntype Box struct{ n int }\n\nfunc (b Box) zoo() int { return b.n }\n\nfunc module() {}\n"
    root = written(tmp_path / "zoo", {"go.mod": FILES["go.mod"], "zoo.go": code})
    async with asker(tmp_path, root) as client:
        renamed = await client.result("rename_symbol", name_path="Box/n", new_name="size", dry_run=False)
        assert "Cannot determine" not in text_of(renamed), text_of(renamed)
        for name in ("module", "Box/zoo"):
            deleted = await client.result("safe_delete_symbol", name_path=name, relative_path="zoo.go")
            assert not deleted["isError"], text_of(deleted)
            assert "go.mod" not in text_of(deleted)
