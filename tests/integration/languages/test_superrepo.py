"""A super-repo with modules in four languages, for real: one session that activates nothing asks all of them."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.analysis.collector import Collections
from serena_central.analysis.module_graph import collect_modules, open_modules
from serena_central.core.places import Places
from tests.support.central import RunningCentral, running_central
from tests.support.languages import WITHOUT_STD, called_patiently
from tests.support.mcp import RawClient
from tests.support.servers import with_core_servers
from tests.support.superrepo import PAIRS, Pair, platform

pytestmark = pytest.mark.anyio

SHARED = {
    "modules/assets/backend/store/shared.go": (
        "package store\n\nfunc OnlySiblings() int { return 1 }\n\nfunc Nobody() int { return 2 }\n"
    ),
    "modules/chariot/backend/cmd/uses.go": (
        'package main\n\nimport "example.com/assets/store"\n\nvar _ = store.OnlySiblings()\n'
    ),
    "modules/ui/src/shared.ts": (
        "export function onlySiblings(): number {\n  return 1;\n}\n\nexport function nobody(): void {}\n"
    ),
    "modules/web/src/uses.ts": (
        'import { onlySiblings } from "../../ui/src/shared.js";\n\nexport const nobody = onlySiblings();\n'
    ),
    "modules/ui/.gitignore": "/dist\n",
    "modules/ui/src/built.ts": "export function onlyBuilt(): void {}\n",
    "modules/ui/dist/built.d.ts": "export declare function onlyBuilt(): void;\n",
    "modules/web/src/built.ts": 'import { onlyBuilt } from "../../ui/dist/built.js";\n\nonlyBuilt();\n',
    "modules/scoring/scoring/shared.py": (
        "def only_siblings() -> int:\n    return 1\n\n\ndef only_scripts() -> None: ...\n\n\n"
        "def nobody() -> None: ...\n\n\n"
        "class Part:\n    def called(self) -> None: ...\n\n    def uncalled(self) -> None: ...\n"
    ),
    "modules/scan/scan/uses.py": (
        "from scoring.shared import Part, only_siblings\n\nprint(only_siblings())\nPart().called()\n\n"
        "nobody = uncalled = 1\n"
    ),
    "scripts/deploy.py": "\n\nfrom scoring.shared import only_scripts\n\nonly_scripts()\n",
    "modules/engine/src/lib.rs": "\npub fn only_siblings() -> i32 {\n    1\n}\n\npub fn nobody() {}\n",
    "modules/nose/src/lib.rs": "\nfn uses() -> i32 {\n    match_engine::only_siblings()\n}\n",
    "modules/assets/.serena/project.yml": "validation: {exported: report}\n",
    "modules/engine/.serena/project.yml": "validation: {exported: report}\n",
}
"""What is used by siblings alone, and what by nobody. In the root's `scripts` nothing says where `scoring` lies, and
`web` uses what was built of `ui`."""

EVERY_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.language)


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[RunningCentral, Path]]:
    folder = tmp_path_factory.mktemp("super")
    with_core_servers(Places(folder / "home"))
    root = platform(folder)
    for path, text in SHARED.items():
        (root / path).parent.mkdir(exist_ok=True)
        with (root / path).open("a") as file:
            file.write(text)
    async with running_central(folder, {"language_servers": WITHOUT_STD}, patience_s=400) as running:
        yield running, root


@pytest.fixture
async def client(central: tuple[RunningCentral, Path]) -> AsyncGenerator[RawClient]:
    running, root = central
    async with running.raw("handshake", x_serena_project=str(root)) as client:
        yield client


async def ask(client: RawClient, tool: str, **arguments: Any) -> tuple[Any, list[str]]:
    """The answer, and its notes."""
    result = await called_patiently(client, tool, **arguments)
    answer, *notes = (part["text"] for part in result["content"])
    assert not result["isError"], answer
    return json.loads(answer), "\n".join(notes).splitlines()


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
        groups, notes = await ask(client, "find_referencing_symbols", name_path=pair.name, project="*", **narrowed)
        expected = {pair.declaring: pair.own, pair.sibling: pair.uses}
        assert {module: holders(uses) for module, uses in groups.items() if uses} == expected, notes
        assert len(groups) == 8


UNUSED = {
    "assets": ["backend/store/shared.go: Nobody high", "backend/store/store.go: Twice high"],
    "chariot": ["backend/cmd/other.go: Other high"],
    "ui": ["src/shared.ts: nobody medium"],
    "web": ["src/page.ts: render medium"],
    "scoring": ["scoring/shared.py: nobody medium", "scoring/shared.py: Part/uncalled medium"],
    "scan": ["scan/jobs.py: run medium", "scan/jobs.py: Job medium"],
    "engine": ["src/lib.rs: twice high", "src/lib.rs: broken medium", "src/lib.rs: nobody high"],
    "nose": ["src/lib.rs: broken high", "src/lib.rs: uses high"],
}


async def test_what_only_a_sibling_uses_is_not_unused_and_the_rest_is(client: RawClient) -> None:
    groups, notes = await ask(client, "find_unused_symbols", project="*")
    found = {
        module: [f"{one['relative_path']}: {one['name_path']} {one['confidence']}" for one in group["unused"]]
        for module, group in groups.items()
    }
    assert found == UNUSED
    assert [note.partition(", where they")[0] for note in notes] == [
        "'ui': Not reported as unused: onlyBuilt. These names occur in 'web'",
        "'scoring': Not reported as unused: only_scripts. These names occur in 'platform'",
    ]


CROSSING = {
    ("modules/chariot/backend/cmd/main.go", "modules/assets/backend/store/store.go", 1),
    ("modules/web/src/page.ts", "modules/ui/src/total.ts", 2),
    ("modules/scan/scan/jobs.py", "modules/scoring/scoring/risk.py", 2),
    ("modules/nose/src/lib.rs", "modules/engine/src/lib.rs", 3),
    ("modules/chariot/backend/cmd/uses.go", "modules/assets/backend/store/shared.go", 1),
    ("modules/web/src/uses.ts", "modules/ui/src/shared.ts", 2),
    ("modules/scan/scan/uses.py", "modules/scoring/scoring/shared.py", 4),
}
"""User, used, and how often."""


async def test_a_graph_of_the_super_repo_has_edges_between_its_modules_and_no_others(
    central: tuple[RunningCentral, Path], client: RawClient
) -> None:
    running, root = central
    graph, notes = await ask(client, "dependency_graph", relative_path=str(root), format="json")
    assert {(edge["source"], edge["target"], edge["count"]) for edge in graph["drawn"]["edges"]} == CROSSING, notes
    modules, _ = await ask(client, "dependency_graph", relative_path=str(root), granularity="module", format="json")
    between: Counter[tuple[str, str]] = Counter()
    for source, target, count in CROSSING:
        between[source.split("/")[1], target.split("/")[1]] += count
    assert {(edge["source"], edge["target"]): edge["count"] for edge in modules["drawn"]["edges"]} == between
    assert len(modules["drawn"]["files"]) == 8
    registry, repo = running.central.projects, running.central.dashboard.parts.super_repos.at(root)
    assert repo is not None
    parts, missing = await open_modules(repo, registry, "modules/scan")
    assert ([part.area.name for part in parts], missing) == (["scan"], [])
    parts, _ = await open_modules(repo, registry, "")
    collections = Collections(running.central.dashboard.parts.places.cache)
    again = await collect_modules(parts, collections)
    assert again.asked == 0
    crossing = {
        (user, one.path) for one in again.definitions for user in one.uses if user.split("/")[1] not in one.path
    }
    assert crossing == {(source, target) for source, target, _ in CROSSING}
