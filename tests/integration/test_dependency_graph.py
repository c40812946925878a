"""The dependency graph of a real package, from its language server, against what Python's own parser says of it."""

import ast
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
import starlette

from serena_central.analysis import collector as collector_module
from serena_central.analysis.collector import Collections
from serena_central.analysis.reference_queries import Asked, UsesAnswer, uses_of
from serena_central.analysis.uncertain_places import UncertainPlaces
from serena_central.analysis.word_index import Surroundings
from serena_central.core.text import Range
from serena_central.lsp.answers import SymbolKind
from tests.support.central import running_central
from tests.support.mcp import RawClient


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Starlette's source, as a project of its own."""
    root = tmp_path / "shop"
    shutil.copytree(Path(starlette.__file__).parent, root / "starlette", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def imports(root: Path) -> set[tuple[str, str]]:
    """(importing file, imported file) of all imports inside the package."""
    found: set[tuple[str, str]] = set()
    for file in root.glob("starlette/**/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                of_package = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if module(root, name) else node.module for name in of_package]
            found |= {(str(file.relative_to(root)), path) for name in names if (path := module(root, name))}
    return found


def module(root: Path, name: str) -> str | None:
    place = root / name.replace(".", "/")
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return str(file.relative_to(root))
    return None


async def graph(client: RawClient, granularity: str) -> Any:
    answer = await client.call(
        "dependency_graph",
        relative_path="starlette",
        granularity=granularity,
        format="json",
        max_nodes=500,
        max_answer_chars=5_000_000,
    )
    assert not answer["isError"], answer
    notes = [line for note in answer["content"][1:] for line in note["text"].splitlines()]
    # What is imported from packages that are not there may be meant by names of it.
    assert all("Possible references: " in note or "not examined" in note for note in notes), notes
    return json.loads(answer["content"][0]["text"])


def edges(report: Any) -> set[tuple[str, str]]:
    return {(edge["source"], edge["target"]) for edge in report["drawn"]["edges"] if edge["count"]}


async def test_files_and_folders_depend_on_what_they_import_and_on_nothing_else(package: Path, tmp_path: Path) -> None:
    expected = imports(package)
    settings = {"included_optional_tools": ["dependency_graph"]}
    async with running_central(tmp_path, settings) as central, central.raw("handshake") as client:
        await client.call("activate_project", project=str(package))
        assert edges(await graph(client, "file")) == expected
        folders = {(str(Path(source).parent), str(Path(target).parent)) for source, target in expected}
        assert edges(await graph(client, "folder")) == {(one, other) for one, other in folders if one != other}


async def test_a_second_graph_asks_the_language_server_nothing(package: Path, tmp_path: Path) -> None:
    async with running_central(tmp_path) as central:
        collector = Collections(tmp_path).of(await central.central.projects.open(package))
        first = await collector.collect("starlette")
        again = await collector.collect("starlette")
        assert (again.asked, again.reused) == (0, first.asked)
        assert again.definitions == first.definitions
        status = package / "starlette" / "status.py"
        status.write_text(status.read_text() + "\nHTTP_999 = 999\n")
        changed = await collector.collect("starlette")
        assert 0 < changed.asked < first.asked
        assert any("reused although other files changed" in note for note in changed.notes)


async def test_one_that_was_cut_short_reads_no_file_again_to_go_on_unless_something_changed(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[set[str]] = []
    of = Surroundings.of

    async def counted(project: Any, names: set[str]) -> Surroundings:
        read.append(names)
        return await of(project, names)

    monkeypatch.setattr(Surroundings, "of", counted)
    async with running_central(tmp_path) as central:
        collector = Collections(tmp_path).of(await central.central.projects.open(package))
        for kept_s, reads in ((0.01, 1), (600, 2), (600, 2)):  # the first is forgotten
            monkeypatch.setattr(collector_module, "AROUND_S", kept_s)
            assert (await collector.collect("starlette", until=0.0)).unasked
            assert len(read) == reads
            await anyio.sleep(0.05)
        status = package / "starlette" / "status.py"
        status.write_text(status.read_text() + "\nHTTP_999 = 999\n")
        assert (await collector.collect("starlette", until=0.0)).unasked
        whole = await collector.collect("starlette")
        assert (len(read), whole.unasked) == (3, 0)
        assert any(one.name_path == "HTTP_999" for one in whole.definitions)


async def test_a_graph_tells_how_far_it_is_ends_when_its_caller_hangs_up_and_then_goes_on_where_it_was(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def counted(
        project: Any, batch: Sequence[Asked], doubts: Any, found: list[UsesAnswer | None], **more: Any
    ) -> None:
        try:
            await uses_of(project, batch, doubts, found, **more)
        finally:
            answered = (one.hit for one, answer in zip(batch, found, strict=True) if answer is not None)
            asked.extend(f"{hit.path}:{hit.name_path}" for hit in answered)

    monkeypatch.setattr(collector_module, "uses_of", counted)
    monkeypatch.setattr(collector_module, "BATCH", 8)
    body = {
        "arguments": {"project": str(package), "format": "json", "max_answer_chars": 5_000_000},
        "progress": True,
    }
    settings = {"included_optional_tools": ["dependency_graph"]}
    async with running_central(tmp_path, settings) as central, central.http() as http:
        async with http.stream("POST", "/api/v1/tools/dependency_graph", json=body) as response:
            lines = response.aiter_lines()
            said = json.loads(await anext(lines))
            while "collecting references: " not in said["says"]:
                said = json.loads(await anext(lines))
            counts = re.findall(r"(\d+) of (\d+)", said["says"])
            assert 0 < said["part"] < 1
        with anyio.fail_after(60):
            while any(session.running for session in central.central.sessions.sessions()):
                await anyio.sleep(0.01)
        before = len(asked)
        _, total = map(int, counts[0])
        assert 0 < before < total
        async with http.stream("POST", "/api/v1/tools/dependency_graph", json=body) as response:
            *told, last = [json.loads(line) async for line in response.aiter_lines()]
        assert json.loads(last["outcome"]["blocks"][0])["nodes"] > 20
        *_, (done, of_all) = re.findall(r"(\d+) of (\d+) files", told[-1]["says"])
        assert done == of_all
        # What was answered and saved before is asked by nobody; the batch that was under way may be.
        assert len(set(asked)) == total
        assert len(asked) - total <= 8


DOUBTFUL = {
    "query.py": (
        "class Query:\n"
        "    def __init__(self):\n        self._rows = ()\n\n"
        "    def fetch(self):\n        if self._rows:\n            self._load_rows()\n\n"
        "    def _load_rows(self):\n        return 2\n\n"
        "    def select_rows(self):\n        return 4\n\n"
        "    def get(self):\n        return 5\n"
    ),
    "uses.py": (
        "import query\n\n\n"
        "def typed(one: query.Query):\n    return one.select_rows()\n\n\n"
        "def untyped(one):\n"
        '    """Calls select_rows."""\n'
        "    # select_rows\n"
        "    return one.select_rows(), one.get(), 'select_rows'\n"
    ),
    "other.py": "def untyped(one):\n    return one.select_rows()\n",
}


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in DOUBTFUL.items():
        (root / name).write_text(text)
    return root


async def test_possible_references_are_drawn_apart_and_count_in_nothing(doubtful: Path, tmp_path: Path) -> None:
    settings = {"included_optional_tools": ["dependency_graph"]}
    async with running_central(tmp_path, settings) as central, central.raw("handshake") as client:
        await client.call("activate_project", project=str(doubtful))

        async def asked(form: str) -> list[str]:
            answer = await client.call("dependency_graph", granularity="symbol", kinds=["Method"], format=form)
            return [part["text"] for part in answer["content"]]

        text, *notes = await asked("json")
        report = json.loads(text)
        assert {
            (edge["source"], edge["target"].rpartition("/")[2]): (edge["count"], edge["possible"])
            for edge in report["drawn"]["edges"]
        } == {
            # One that the server knows, and one that it can't tell: the file is their only user.
            ("uses.py", "select_rows"): (1, 1),
            ("other.py", "select_rows"): (0, 1),
            # The server takes the body for unreachable.
            ("query.py:Query/fetch", "_load_rows"): (0, 1),
        }
        assert (report["uses"], report["possible"]) == (1, 3)
        assert [one["node"] for one in report["analysis"]["most_using"]] == ["uses.py"]
        said = " ".join(notes)
        assert "Possible references: 3 places in code with names of 2 symbols" in said
        assert "further place with names of 1 symbol" in said  # of `get`, which dictionaries have, too
        # Handed out again from what was kept.
        assert (await asked("json"))[0] == text
        assert '-.->|"1?"|' in (await asked("mermaid"))[0]
        assert 'label="1?", style=dashed' in (await asked("dot"))[0]
        assert 'class="edge possible"' in (await asked("svg"))[0]
        assert "3 possible references (dashed)" in (await asked("markdown"))[0]


async def test_what_possible_references_cost_is_bounded(doubtful: Path, tmp_path: Path) -> None:
    async with running_central(tmp_path) as central:
        project = await central.central.projects.open(doubtful)
        await project.overview("")
        hit = await project.find_one("select_rows")
        text = (await project.read("other.py")).text
        start = text.content.index("select_rows")
        span = Range(text.position(start), text.position(start + len("select_rows")))
        assert await UncertainPlaces(project).in_code(hit, {"other.py": [span]}) == ({"other.py": [span]}, 0)
        assert await UncertainPlaces(project, most_parsed=0).in_code(hit, {"other.py": [span]}) == ({}, 1)


async def test_what_was_collected_without_possible_references_serves_where_they_are_not_wanted(
    doubtful: Path, tmp_path: Path
) -> None:
    async with running_central(tmp_path) as central:
        collector = Collections(tmp_path).of(await central.central.projects.open(doubtful))
        kinds = frozenset({SymbolKind.METHOD})
        bare = await collector.collect("", kinds, possible=False)
        assert (bare.asked > 0, any(one.possible for one in bare.definitions)) == (True, False)
        whole = await collector.collect("", kinds)
        assert (whole.asked, any(one.possible for one in whole.definitions)) == (bare.asked, True)
        uses = [one.uses for one in whole.definitions]
        assert [one.uses for one in bare.definitions] == uses
        (doubtful / "later.txt").write_text("A file that no answer depends on.\n")
        again = await collector.collect("", kinds, possible=False)
        assert (again.asked, [one.uses for one in again.definitions]) == (0, uses)


async def test_modules_are_the_folders_right_below_where_there_is_no_super_repo(tmp_path: Path) -> None:
    for path, text in {
        "web/views.py": "from store.cart import Cart\nCart()\n",
        "store/cart.py": "class Cart: ...\n",
    }.items():
        (tmp_path / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / path).write_text(text)
    settings = {"included_optional_tools": ["dependency_graph"]}
    async with running_central(tmp_path, settings) as central, central.raw("handshake") as client:
        asked = {"project": str(tmp_path / "shop"), "granularity": "module", "format": "json"}
        answer = await client.call("dependency_graph", **asked)
        assert edges(json.loads(answer["content"][0]["text"])) == {("web", "store")}
