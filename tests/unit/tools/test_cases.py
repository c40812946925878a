"""What agents read: each text case is a small project, calls and the answers, from the real server and the real ty.

A case is a file in cases/. `=== file PATH [crlf] [ENCODING]` begins a file of the project, `=== call TOOL ARGUMENTS` a
call; below it stands what came back (␍ for a carriage return). `pytest --update` writes the answers anew: read the
diff before committing it.
"""

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import SerenaCentralError
from serena_central.projects.editing import edit_effects
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))

EDIT_ID = re.compile(r"\be-[0-9a-f]{12}\b")

HEAD = re.compile(r"^=== (?P<kind>file|call) (?P<what>.*)\n", re.MULTILINE)


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Application]:
    """With bounds so wide that answers say the same on a busy machine."""
    settings = {
        "included_optional_tools": ["delete_lines", "replace_lines", "insert_at_line", "replace_in_files"],
        "edit_diagnostics_s": 30,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_effects, "SYMBOLS_S", 30.0)
        async with running_parts(tmp_path_factory.mktemp("home"), settings) as running:
            yield running


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
async def test_tools_answer_as_written(
    case: Path, central: Application, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    expected = case.read_text(encoding="utf-8")
    with anyio.fail_after(60):
        answered = await _played(expected, central, root)
    if pytestconfig.getoption("--update"):
        case.write_text(answered, encoding="utf-8")
    assert answered == expected


async def _played(case: str, central: Application, root: Path) -> str:
    """The case with the answers that its calls have now."""
    heads = list(HEAD.finditer(case))
    text = case[: heads[0].start()]
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = case[head.end() : following.start() if following else len(case)]
        if head["kind"] == "file":
            _write(root, head["what"], body)
        else:
            body = await _answer(central, root, *head["what"].split(" ", 1)) + "\n\n"
        text += head[0] + body
    return text.rstrip("\n") + "\n"


def _write(root: Path, what: str, body: str) -> None:
    path, *facts = what.split()
    body = body.removesuffix("\n")
    if "crlf" in facts:
        facts.remove("crlf")
        body = body.replace("\n", "\r\n")
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body.encode(facts[0] if facts else "utf-8"))


async def _answer(central: Application, root: Path, tool: str, arguments: str = "{}") -> str:
    given = {"project": str(root), **json.loads(arguments.replace("PROJECT", str(root)))}
    try:
        answer = await central.caller.call(session_of(central), tool, given)
    except SerenaCentralError as error:
        lines = [f"{type(error).__name__}: {error}"]
    else:
        lines = [
            _readable(answer.blocks[0]),
            *(f"note: {line}" for block in answer.blocks[1:] for line in block.splitlines()),
        ]
    text = "\n".join(lines).replace(str(root), "PROJECT").replace("\r", "␍")
    return EDIT_ID.sub("EDIT", text)


def _readable(text: str) -> str:
    """JSON with a line for each short part; anything else as it is."""
    try:
        return _laid_out(json.loads(text), "")
    except ValueError:
        return text


def _laid_out(value: object, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= 110 or not isinstance(value, (dict, list)):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _laid_out(part, inner) for part in value) + f"\n{indent}]"
    parts = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_laid_out(part, inner)}" for key, part in value.items())
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
