"""A language server that is missing is installed while the server runs, and is then used without anybody's doing."""

from pathlib import Path

import anyio
import msgspec.structs
import pytest

from serena_central.core.event_kinds import ServerInstalled
from serena_central.core.events import Severity
from serena_central.core.progress import reporting_to
from serena_central.lsp.catalogue import catalogue
from tests.support.central import running_parts
from tests.support.servers import npm_spec

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in TypeScript, whose server npm installs from a local package, and which is nowhere else."""
    tiny = msgspec.structs.replace(npm_spec(tmp_path), name="typescript", languages=("typescript",))
    monkeypatch.setitem(catalogue().servers, "typescript", tiny)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.ts").write_text("tiny\n")
    return root


async def test_the_first_question_begins_it_and_the_next_ones_are_answered(tmp_path: Path, project: Path) -> None:
    with anyio.fail_after(90):
        async with running_parts(tmp_path, {"auto_install": "pinned"}) as central:
            with central.bus.subscribe() as news:
                opening = await central.projects.open(project)
                _, (gap,) = await opening.symbols_of(["a.ts"])
                assert "The language server typescript is being installed" in gap.reason
                async for event in news:
                    if isinstance(event, ServerInstalled):
                        break
                # Nobody opens the project again: it hears of the installation, and its index is filled.
                while opening.indexer.gaps(["a.ts"]) or opening.indexer.progress.waiting:
                    await anyio.sleep(0.01)
                symbols, gaps = await opening.symbols_of(["a.ts"])
                assert not gaps
                assert [symbol.name for symbol in symbols["a.ts"].symbols] == ["tiny"]
            assert not [event for event in central.bus.recent() if event.severity is not Severity.INFO]


async def test_a_warm_up_waits_for_the_installation_and_says_so(tmp_path: Path, project: Path) -> None:
    said: list[str] = []
    with anyio.fail_after(90):
        async with running_parts(tmp_path, {"auto_install": "pinned"}) as central:
            opening = await central.projects.open(project)
            with reporting_to(lambda message, _part: said.append(message)):
                (warmed,) = await opening.warm()
            assert (warmed.language, warmed.success, warmed.error) == ("typescript", True, None)
            assert "installing the missing typescript" in said
            assert not opening.indexer.progress.waiting


async def test_without_the_setting_the_answer_says_how_to_get_it(tmp_path: Path, project: Path) -> None:
    async with running_parts(tmp_path) as central:
        opening = await central.projects.open(project)
        _, (gap,) = await opening.symbols_of(["a.ts"])
        assert "is not installed. To install it: " in gap.reason
