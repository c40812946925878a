"""What gopls is asked, and in what state, when the references to many symbols are collected."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.analysis.collection import Collected
from serena_central.analysis.unused_symbols import KINDS, unused_symbols
from serena_central.core.text import Position
from serena_central.lsp.answers import Location
from serena_central.lsp.client import LanguageServer
from tests.integration.languages.test_analysis import parsed
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="names files of other platforms")]

FILES = {
    "go.mod": "module example.com/seen\n\ngo 1.21\n",
    "cm/cgroup.go": "package cm\n\nfunc Exported() int { return used() }\n\nfunc used() int { return 1 }\n\n"
    "func forgotten() int { return forgotten() }\n\ntype held struct{}\n\nfunc (h held) size() int { return 2 }\n\n"
    "var _ = held{}.size()\n",
    "cm/limits.go": "package cm\n\nfunc limit() int { return used() + limit() }\n",
    "cm/cgroup_test.go": 'package cm\n\nimport "testing"\n\nfunc helper() int { return used() }\n\n'
    "func TestUsed(t *testing.T) { helper() }\n",
    "cm/aaa_windows.go": "package cm\n\nfunc abroad() int { return abroad() }\n",
    "main.go": 'package main\n\nimport "example.com/seen/cm"\n\nfunc start() int { return cm.Exported() }\n\n'
    "func main() { start() }\n",
}
"""`used`, `size` and `start` are used; `forgotten`, `limit` and `abroad` call themselves alone."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "seen"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


async def test_the_server_is_asked_about_what_no_rule_keeps_in_open_packages_and_last_about_other_platforms(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    shown: list[str] = []
    references, signature = LanguageServer.references, LanguageServer.signature

    async def recorded(server: LanguageServer, path: Path, position: Position, **more: Any) -> list[Location]:
        name = path.read_text().splitlines()[position.line0][position.column :].partition("(")[0].partition(" ")[0]
        assert server.open_documents, name
        asked.append(name)
        return await references(server, path, position, **more)

    async def opened(server: LanguageServer, path: Path, position: Position) -> Sequence[Any]:
        shown.append(path.relative_to(root).as_posix())
        return await signature(server, path, position)

    monkeypatch.setattr(LanguageServer, "references", recorded)
    monkeypatch.setattr(LanguageServer, "signature", opened)
    async with asker(tmp_path, root) as client:
        found = await parsed(client, "find_unused_symbols")
        assert {one["name_path"] for one in found["unused"]} == {"forgotten", "limit", "abroad"}
        assert sorted(asked[:-1]) == ["forgotten", "held", "limit", "size", "start", "used"]
        assert asked[-1] == "abroad"
        assert sorted(found["kept"]) == ["an entry point", "it is exported", "its file contains tests"]
        assert sorted(set(shown[:-1])) == ["cm/cgroup.go", "main.go"]


async def test_a_call_with_little_time_left_does_not_begin_with_another_platform(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    references = LanguageServer.references

    async def recorded(server: LanguageServer, path: Path, position: Position, **more: Any) -> list[Location]:
        asked.append(path.name)
        return await references(server, path, position, **more)

    monkeypatch.setattr(LanguageServer, "references", recorded)
    monkeypatch.setattr("serena_central.analysis.other_platforms.LOADS_S", 1000.0)
    async with asker(tmp_path, root) as client:
        first = text_of(await client.result("dependency_graph", granularity="symbol"))
        assert "aaa_windows.go" not in asked
        assert "the references to 1 of" in first
        before = len(asked)
        second = text_of(await client.result("dependency_graph", granularity="symbol"))
        assert asked[before:] == ["aaa_windows.go"]
        assert "Out of time" not in second


async def test_collecting_goes_on_while_time_is_left(root: Path, tmp_path: Path) -> None:
    """A part of the time is for judging; what that did not take is not given away."""
    async with asker(tmp_path, root) as client:
        services, ends = client.central.central, list[float]()
        here, begun = list[bool](), list[bool]()

        class Slow:
            """Has two symbols left the first time, one of them for another platform, and that one the second."""

            async def collect(
                self, path: str, kinds: Any, *, until: float, here_only: bool, has_begun: bool, **_: Any
            ) -> Collected:
                assert kinds == KINDS
                ends.append(until)
                here.append(here_only)
                begun.append(has_begun)
                left = 3 - len(ends)
                return Collected([], [], asked=1, unasked=left, elsewhere=1 if left else 0)

        siblings = services.validation.siblings
        until = anyio.current_time() + 1000
        found = await unused_symbols(client.project, Slow(), siblings, "", until=until)  # pyright: ignore[reportArgumentType]
        assert (here, found.unasked) == ([True, True, False], 0)
        assert ends == sorted(ends)
        assert all(end < until for end in ends)
        assert begun == [False, True, True]


async def test_collecting_ends_when_it_does_not_get_on(root: Path, tmp_path: Path) -> None:
    async with asker(tmp_path, root) as client:
        services, here = client.central.central, list[bool]()

        class Stuck:
            """Has one symbol left for which there is no time."""

            async def collect(self, path: str, kinds: Any, *, here_only: bool, **_: Any) -> Collected:
                here.append(here_only)
                return Collected([], [], asked=1 if len(here) == 1 else 0, unasked=1, elsewhere=1)

        siblings = services.validation.siblings
        until = anyio.current_time() + 1000
        found = await unused_symbols(client.project, Stuck(), siblings, "", until=until)  # pyright: ignore[reportArgumentType]
        assert (here, found.unasked) == ([True, False], 1)
