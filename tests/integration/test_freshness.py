"""No read tool answers stale: another process changes files, and the call follows the change at once.

`root.py` and `main.py` stand still; `leaf.py` and `other.py` come, change, move and go. Whatever they hold carries a
number, so that each answer tells which state of them it was made from.
"""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import running_central
from tests.support.mcp import RawClient, text_of
from tests.support.writer import OtherProgram, other_program

pytestmark = pytest.mark.anyio

LEAVES = ("leaf.py", "other.py")

OPTIONAL = ["get_diagnostics_for_symbol", "find_all_symbols", "get_call_hierarchy", "get_type_hierarchy"]

ROOT = """\
class Shape:
    def area(self) -> int:
        return 0


def make(count: int) -> int:
    return count
"""

MAIN = """\
import leaf
import other

print(leaf.target(), other.target())
"""

State = dict[str, int]
"""Path of a leaf that exists → the number in it."""


def leaf(number: int) -> str:
    """A leaf's text. Its length doesn't tell the number, while the lines of its symbols vary."""
    above = number % 3
    return f"""\
from root import Shape, make
{"#" * 5 + chr(10) if above > 0 else ""}{"#" * 5 + chr(10) if above > 1 else ""}

class Leaf{number}(Shape):
    def area(self) -> int:
        return {number}


def caller{number}() -> int:
    wrong: str = {number}
    return make({number})


def target() -> int:
    return {number}
{"" if above > 1 else "#" * 5 + chr(10)}{"" if above > 0 else "#" * 5 + chr(10)}"""


def changes(other: OtherProgram, root: Path, rounds: int) -> Iterator[State]:
    """Makes one change after the other, of each kind once a round; yields the state that it left."""
    first, second = (root / name for name in LEAVES)
    number = 1000
    for _ in range(rounds):
        number += 7
        other.write(first, leaf(number))
        yield {"leaf.py": number}
        other.write(first, leaf(number := number + 1))
        yield {"leaf.py": number}
        other.replace(first, leaf(number := number + 1))
        yield {"leaf.py": number}
        other.disguise(first, leaf(number := number + 1))
        yield {"leaf.py": number}
        other.rename(first, second)
        yield {"other.py": number}
        other.write(first, leaf(number + 1))
        yield {"leaf.py": number + 1, "other.py": number}
        other.rename(first, second)
        yield {"other.py": number + 1}
        other.delete(second)
        yield {}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[RawClient]:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "root.py").write_text(ROOT)
    (root / "main.py").write_text(MAIN)
    async with (
        running_central(tmp_path, {"included_optional_tools": OPTIONAL}) as central,
        central.raw("handshake", x_serena_project=str(root)) as client,
    ):
        await client.call("activate_project", project=str(root))
        yield client


async def ask(client: RawClient, tool: str, **arguments: Any) -> Any:
    """The answer, or None where the tool says that what was asked for is not there."""
    result = await client.call(tool, **arguments)
    text = text_of(result)
    if result["isError"]:
        assert re.search(r"does not exist|No symbol matches", text), text
        return None
    return text if tool == "read_file" else json.loads(text)


def numbers(found: dict[str, Any], name: str) -> State:
    """What an answer by path says of the leaves: the one number behind `name` in each."""
    state: State = {}
    for path, about in found.items():
        seen = {int(number) for number in re.findall(rf"{name}(\d+)", json.dumps(about))}
        assert len(seen) <= 1, f"{path} in two states at once: {about}"
        if seen:
            state[path] = seen.pop()
    return state


def by_path(found: list[dict[str, Any]]) -> dict[str, Any]:
    grouped: dict[str, Any] = {}
    for one in found:
        grouped.setdefault(one["relative_path"], []).append(one)
    return grouped


async def overview(client: RawClient) -> State:
    return numbers(await ask(client, "get_symbols_overview", relative_path=".", depth=1), "Leaf")


async def overview_of_a_file(client: RawClient) -> State:
    found = {path: await ask(client, "get_symbols_overview", relative_path=path) for path in LEAVES}
    return numbers(found, "Leaf")


async def symbols(client: RawClient) -> State:
    found = await ask(
        client, "find_symbol", name_path_pattern="Leaf", substring_matching=True, include_body=True, depth=1
    )
    for one in found:
        number = re.sub(r"\D", "", one["name_path"])
        assert one["body"] == f"class Leaf{number}(Shape):\n    def area(self) -> int:\n        return {number}"
    return numbers(by_path(found), "Leaf")


async def symbols_with_info(client: RawClient) -> State:
    found = await ask(client, "find_symbol", name_path_pattern="Leaf", substring_matching=True, include_info=True)
    for one in found:
        assert one["name_path"] in one["info"]
    return numbers(by_path(found), "Leaf")


async def references(client: RawClient) -> State:
    found = await ask(client, "find_referencing_symbols", name_path="make", relative_path="root.py")
    assert all(f"make({number})" in json.dumps(found[path]) for path, number in numbers(found, "caller").items())
    return numbers(found, "caller")


async def implementations(client: RawClient) -> State:
    found = await ask(client, "find_implementations", name_path="Shape/area", relative_path="root.py")
    return numbers(by_path(found), "Leaf")


async def declaration(client: RawClient) -> State:
    found: dict[str, Any] = {}
    for path in LEAVES:
        regex = rf"{path.removesuffix('.py')}\.(target)"
        one = await ask(client, "find_declaration", relative_path="main.py", regex=regex, include_body=True)
        if one is not None:
            assert one["relative_path"] == path
            found[path] = one["body"]
    return numbers(found, "return ")


async def diagnostics_of_a_file(client: RawClient) -> State:
    found: dict[str, Any] = {}
    for path in LEAVES:
        found |= await ask(client, "get_diagnostics_for_file", relative_path=path, min_severity=1) or {}
    assert all(f"caller{number}" in json.dumps(found[path]) for path, number in numbers(found, r"Literal\[").items())
    return numbers(found, r"Literal\[")


async def diagnostics_of_another_file(client: RawClient) -> State:
    found = await ask(client, "get_diagnostics_for_file", relative_path="main.py", min_severity=1)
    missing = re.findall(r"Cannot resolve imported module `(\w+)`", json.dumps(found))
    return dict.fromkeys((path for path in LEAVES if path.removesuffix(".py") not in missing), 0)


async def diagnostics_of_a_symbol(client: RawClient) -> State:
    found = await ask(
        client,
        "get_diagnostics_for_symbol",
        name_path="make",
        reference_file="root.py",
        check_symbol_references=True,
        min_severity=1,
    )
    return numbers(found, r"Literal\[")


async def context(client: RawClient) -> State:
    found = await ask(client, "get_symbol_context", name_path="make", relative_path="root.py")
    return numbers(dict(caller.split(": ") for caller in found["callers"]), "caller")


async def all_symbols(client: RawClient) -> State:
    return numbers(await ask(client, "find_all_symbols"), "Leaf")


async def calls(client: RawClient) -> State:
    found = await ask(client, "get_call_hierarchy", name_path="make", relative_path="root.py", depth=1)
    return numbers(by_path(found["incoming"]), "caller")


async def types(client: RawClient) -> State:
    found = await ask(client, "get_type_hierarchy", name_path="Shape", relative_path="root.py", depth=1)
    return numbers(by_path(found["subtypes"]), "Leaf")


async def folder(client: RawClient) -> State:
    found = await ask(client, "list_dir", relative_path=".", skip_ignored_files=True)
    return dict.fromkeys(set(found["files"]) - {"root.py", "main.py"}, 0)


async def file_names(client: RawClient) -> State:
    found = await ask(client, "find_file", file_mask="*.py")
    return dict.fromkeys(set(found["files"]) - {"root.py", "main.py"}, 0)


async def contents(client: RawClient) -> State:
    return numbers({path: await ask(client, "read_file", relative_path=path) for path in LEAVES}, "Leaf")


async def pattern(client: RawClient) -> State:
    return numbers(await ask(client, "search_for_pattern", substring_pattern=r"class Leaf\d+"), "Leaf")


NAMES_ALONE = (folder, file_names, diagnostics_of_another_file)
"""What these see is which files there are, and not their numbers."""


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "see",
    [
        overview,
        overview_of_a_file,
        symbols,
        symbols_with_info,
        references,
        implementations,
        declaration,
        diagnostics_of_a_file,
        diagnostics_of_another_file,
        diagnostics_of_a_symbol,
        context,
        all_symbols,
        calls,
        types,
        folder,
        file_names,
        contents,
        pattern,
    ],
    ids=lambda see: see.__name__,
)
async def test_the_first_answer_after_a_change_knows_it(
    client: RawClient, tmp_path: Path, see: Callable[[RawClient], Awaitable[State]], rounds: int
) -> None:
    with other_program() as other:
        for step, state in enumerate(changes(other, tmp_path / "tree", rounds)):
            expected = dict.fromkeys(state, 0) if see in NAMES_ALONE else state
            assert await see(client) == expected, f"after step {step}"
