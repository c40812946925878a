"""No change breaks code in silence: each symbol of a small program is deleted, renamed and replaced in turn, and its
own checks run after each. `make bench ARGS=faults` does the same to 300 symbols of real packages."""

import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.languages.test_renamed_members import written
from tests.support.languages import Asker, asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

TREE = """\
import ast
import sys


class Names(ast.NodeVisitor):
    def __init__(self):
        self.found = []

    def visit_Name(self, node):
        self.note(node.id)

    def note(self, name):
        self.found.append(name)

    def never(self):
        return self


def traced(function):
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


HANDLERS = {}


def handler(function):
    HANDLERS[function.__name__] = function
    return function


@handler
def on_open():
    return "open"


def unresolved(thing):
    return thing.counted()


class Box:
    counter = 3

    @property
    def size(self):
        return 2

    def counted(self):
        return self.size

    def by_string(self):
        return 5

    def __len__(self):
        return self.size


@traced
def names_in(text):
    names = Names()
    names.visit(ast.parse(text))
    return names.found


if sys.platform == "none":

    def elsewhere():
        return 1


def left_alone(value):
    return value
"""

CHECK = """\
from tree import HANDLERS, Box, names_in, unresolved

assert names_in("a + b") == ["a", "b"]
assert unresolved(Box()) == 2
assert len(Box()) == 2
assert getattr(Box(), "by_string")() == 5
assert HANDLERS["on_open"]() == "open"
"""

SYMBOLS = (
    *("Names/__init__", "Names/visit_Name", "Names/note", "Names/never", "Names", "traced/wrapper", "traced"),
    *("handler", "on_open", "unresolved", "Box/size", "Box/counted", "Box/by_string", "Box/__len__", "Box"),
    *("names_in", "elsewhere", "left_alone"),
)

SAID = re.compile(r"still occurs (in code|as the name|in strings)|may still be referenced elsewhere by its old name")


@pytest.fixture
async def program(tmp_path: Path) -> AsyncGenerator[Asker]:
    root = tmp_path / "program"
    root.mkdir()
    for name, text in {"tree.py": TREE, "check.py": CHECK}.items():
        (root / name).write_text(text)
    async with asker(tmp_path, root, {"edit_diagnostics_s": 0}) as ask:
        yield ask


def works(root: Path) -> bool:
    return subprocess.run([sys.executable, "-B", "check.py"], cwd=root, capture_output=True).returncode == 0


async def changed(program: Asker, tool: str, name_path: str, **arguments: Any) -> tuple[str | None, str]:
    """The edit's id, None if it was refused, and what was said."""
    result = await program.result(tool, name_path=name_path, relative_path="tree.py", **arguments)
    answer, *notes = (part["text"] for part in result["content"])
    return (None, answer) if result["isError"] else (json.loads(answer)["edit"], "\n".join(notes))


async def undone(program: Asker, edit: str) -> None:
    async with program.central.http() as http:
        response: httpx.Response = await http.post(f"/api/v1/edits/{edit}/undo")
        assert response.status_code == 200, response.text
    for name, text in {"tree.py": TREE, "check.py": CHECK}.items():
        assert (program.root / name).read_bytes() == text.encode()


async def test_what_is_deleted_is_not_missed_and_the_rest_is_refused(program: Asker) -> None:
    deleted: list[str] = []
    for name_path in SYMBOLS:
        edit, _ = await changed(program, "safe_delete_symbol", name_path)
        if edit is not None:
            deleted.append(name_path)
            assert works(program.root), name_path
            await undone(program, edit)
    assert deleted == ["elsewhere", "left_alone"]


async def test_a_rename_that_breaks_something_has_said_so(program: Asker) -> None:
    broke: list[str] = []
    for name_path in SYMBOLS:
        new_name = name_path.rpartition("/")[2].strip("_") + "_renamed"
        edit, said = await changed(program, "rename_symbol", name_path, new_name=new_name)
        assert edit is not None, said
        if not works(program.root):
            broke.append(name_path)
            assert SAID.search(said), (name_path, said)
        await undone(program, edit)
    assert {"Names/visit_Name", "Names/__init__", "on_open", "Box/counted", "Box/by_string"} <= {*broke}


async def test_a_replaced_definition_is_whole(program: Asker) -> None:
    for name_path in SYMBOLS:
        found = await program.result("find_symbol", name_path_pattern=f"/{name_path}", include_body=True)
        (symbol,) = json.loads(found["content"][0]["text"])
        edit, said = await changed(program, "replace_symbol_body", name_path, body=symbol["body"] + "\n# replaced")
        assert edit is not None, said
        assert works(program.root), name_path
        await undone(program, edit)


UNNAMED = {
    "package.json": '{"name": "shop", "private": true}',
    "use.js": "const pay = require('./payment')\nimport('./lib/index.js').then((lib) => lib.default())\npay()\n",
    "payment.js": "module.exports = () => 1\n",
    "lib/index.js": "export default function started() {}\n",
    "alone.js": "module.exports = () => 2\n",
}


async def test_a_default_export_is_not_deleted_by_a_server_that_knows_its_file_alone(tmp_path: Path) -> None:
    """Its importers, which do not hold its name, are no part of a project until they are opened."""
    for name, path, importer in (("exports", "payment.js", "use.js:0"), ("started", "lib/index.js", "use.js:1")):
        folder = tmp_path / name
        folder.mkdir()
        async with asker(folder, written(folder / "shop", UNNAMED)) as ask:
            refused = await ask.result("safe_delete_symbol", name_path=name, relative_path=path)
            assert importer in text_of(refused), text_of(refused)
            assert refused["isError"]
