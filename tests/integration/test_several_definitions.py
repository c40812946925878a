"""A property's getter, setter and deleter, and typing's overloads, are one symbol with several definitions."""

from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import AmbiguousSymbol
from tests.integration.test_by_syntax import ask
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

CONSOLE = """\
from typing import overload


class Console:
    @property
    def _buffer_index(self) -> int:
        return 1

    @_buffer_index.setter
    def _buffer_index(self, value: int) -> None:
        pass

    @_buffer_index.deleter
    def _buffer_index(self) -> None:
        pass


@overload
def twice(value: int) -> int: ...
@overload
def twice(value: str) -> str: ...
def twice(value):
    return value + value


def user(console: Console) -> int:
    console._buffer_index = 3
    return twice(console._buffer_index)
"""

PLACE = {"relative_path": "console.py"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "console.py").write_text(CONSOLE)
    return root


@pytest.mark.parametrize("name_path", ["Console/_buffer_index", "Console/_buffer_index[0]", "twice"])
async def test_its_references_are_the_uses_and_no_other_definition(tmp_path: Path, root: Path, name_path: str) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            found, _ = await ask(central, root, "find_referencing_symbols", name_path=name_path, **PLACE)
            holders = {use["name_path"] for uses in found["console.py"].values() for use in uses}
            assert holders == {"user"}
            context, _ = await ask(central, root, "get_symbol_context", name_path=name_path, **PLACE)
            assert context["callers"] == ["console.py: user"]


async def test_all_definitions_are_shown_and_each_is_read_and_changed_by_its_number(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            found, _ = await ask(central, root, "find_symbol", name_path_pattern="Console/_buffer_index", **PLACE)
            assert [symbol["name_path"] for symbol in found] == [f"Console/_buffer_index[{n}]" for n in range(3)]
            name = {"name_path": "Console/_buffer_index", **PLACE}
            with pytest.raises(AmbiguousSymbol, match=r"_buffer_index\[1\]"):
                await ask(central, root, "replace_symbol_body", **name, body="def _buffer_index(self): ...")
            with pytest.raises(AmbiguousSymbol):
                await ask(central, root, "safe_delete_symbol", name_path_pattern=name["name_path"], **PLACE)
            assert (root / "console.py").read_text() == CONSOLE


async def test_a_rename_renames_all_definitions(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            name = {"name_path": "Console/_buffer_index", **PLACE}
            await ask(central, root, "rename_symbol", **name, new_name="_index")
            assert (root / "console.py").read_text() == CONSOLE.replace("_buffer_index", "_index")


async def test_what_is_no_one_symbol_stays_ambiguous(tmp_path: Path, root: Path) -> None:
    (root / "other.py").write_text("class A:\n    def run(self): ...\nclass B:\n    def run(self): ...\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            with pytest.raises(AmbiguousSymbol):
                await ask(central, root, "find_referencing_symbols", name_path="run", relative_path="other.py")
