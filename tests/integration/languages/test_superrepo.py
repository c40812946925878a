"""A super-repo with modules in four languages, for real: one session that activates nothing asks all of them."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.core.places import Places
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import RawClient
from tests.support.servers import with_core_servers
from tests.support.superrepo import PAIRS, Pair, platform

pytestmark = pytest.mark.anyio

EVERY_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.language)


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[RunningCentral, Path]]:
    folder = tmp_path_factory.mktemp("super")
    with_core_servers(Places(folder / "home"))
    root = platform(folder)
    async with running_central(folder, patience_s=400) as running:
        yield running, root


@pytest.fixture
async def client(central: tuple[RunningCentral, Path]) -> AsyncGenerator[RawClient]:
    running, root = central
    async with running.raw("handshake", x_serena_project=str(root)) as client:
        yield client


async def ask(client: RawClient, tool: str, **arguments: Any) -> tuple[Any, list[str]]:
    """The answer, and its remarks."""
    result = await client.call(tool, **arguments)
    answer, *remarks = (part["text"] for part in result["content"])
    assert not result["isError"], answer
    return json.loads(answer), "\n".join(remarks).splitlines()


def holders(references: dict[str, dict[str, list[dict[str, Any]]]]) -> tuple[str, ...]:
    return tuple(
        sorted(
            f"{path}: {use['name_path']}"
            for path, kinds in references.items()
            for uses in kinds.values()
            for use in uses
        )
    )


@EVERY_PAIR
async def test_every_module_answers_in_one_session_that_activated_nothing(client: RawClient, pair: Pair) -> None:
    found, _ = await ask(client, "find_symbol", name_path_pattern=pair.name, project=pair.declaring)
    assert [one["relative_path"] for one in found] == [pair.file]
    path = f"modules/{pair.declaring}/{pair.file}"
    used, _ = await ask(client, "find_referencing_symbols", name_path=pair.name, relative_path=path)
    assert holders(used) == pair.own
    for module, file in zip((pair.declaring, pair.sibling), pair.broken, strict=True):
        errors, _ = await ask(client, "get_diagnostics_for_file", relative_path=f"modules/{module}/{file}")
        assert file in json.dumps(errors)


@EVERY_PAIR
async def test_uses_in_a_sibling_module_are_found_and_those_of_namesakes_are_not(client: RawClient, pair: Pair) -> None:
    path = f"modules/{pair.declaring}/{pair.file}"
    for narrowed in ({}, {"relative_path": path}):
        groups, remarks = await ask(client, "find_referencing_symbols", name_path=pair.name, project="*", **narrowed)
        expected = {pair.declaring: pair.own, pair.sibling: pair.uses}
        assert {module: holders(uses) for module, uses in groups.items() if uses} == expected, remarks
        assert len(groups) == 8
