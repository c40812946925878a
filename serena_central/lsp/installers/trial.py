"""A trial run: whether a language server that was found or built really starts and answers the handshake.

A program that only prints its version proves less: its libraries, its interpreter or a part of it may be missing, and
most servers have no such option.
"""

from pathlib import Path

import anyio

from serena_central.core.errors import LanguageServerError, ServerStartFailed
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import Launch

PATIENCE_S = 60.0
"""A first start compiles caches, on a machine that may be busy with other installations."""


async def try_out(spec: ServerSpec, launch: Launch, folder: Path) -> str:
    """Starts the server for an empty folder and ends it again; returns its version, "" when it says none.

    Raises: LanguageServerError.
    """
    server = LanguageServer(spec, folder, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
    failure: LanguageServerError | None = None
    async with anyio.create_task_group() as tasks:
        with anyio.move_on_after(PATIENCE_S) as patience:
            try:
                await tasks.start(server.run)
            except LanguageServerError as error:
                failure = error
        if patience.cancelled_caught:
            failure = ServerStartFailed(
                spec.name, f"{spec.title} did not answer within {PATIENCE_S:g} s. {server.stderr_tail}".rstrip()
            )
            tasks.cancel_scope.cancel()
        server.stop()
    if failure is not None:
        raise failure
    return server.server_version
