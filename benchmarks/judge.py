"""A second language server as a judge: where a place leads, for one that has nothing to do with the first."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from benchmarks.names import Place
from serena_central.core.errors import LanguageServerError
from serena_central.core.places import Places
from serena_central.core.text import Position
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import locate

NAME = "basedpyright"

ANSWER_S = 60.0


class Judge:
    """Asks the judging server; each question waits for its answer."""

    def __init__(self, root: Path, server: LanguageServer, portal: BlockingPortal) -> None:
        self._root = root
        self._server = server
        self._portal = portal

    def leads(self, path: str, line0: int, column: int) -> set[Place]:
        """Definition of the name at a given place: paths are relative to the root, or absolute outside of it."""
        return self._portal.call(self._leads, self._root / path, Position(line0, column))

    async def _leads(self, path: Path, position: Position) -> set[Place]:
        try:
            with anyio.fail_after(ANSWER_S):
                found = await self._server.definition(path, position)
        except (LanguageServerError, TimeoutError):
            return set()
        return {Place(self._named(one.path), one.range.start.line0) for one in found}

    def _named(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)


@contextmanager
def judging(root: Path, home: Path) -> Iterator[Judge]:
    """The judge for a project, while the block is open."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_running(root, home)) as server:
        yield Judge(root, server, portal)


@asynccontextmanager
async def _running(root: Path, home: Path) -> AsyncGenerator[LanguageServer]:
    spec = catalogue().server(NAME)
    launch = locate(spec, root, Places(home), untrusted=None)
    server = LanguageServer(spec, root, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.run)
        await server.ready()
        yield server
        server.stop()
