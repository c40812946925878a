"""Checks that a language server runs: starts it in an empty folder and waits for its handshake.

A program that is there proves little: rustup leaves a `rust-analyzer` on PATH that only says that it is missing.
"""

from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import ServerStartFailed
from serena_central.core.text import Text
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import Launch
from serena_central.processes.scratch import borrowed

TRIAL_S = 60.0
"""A server on a JVM takes ten seconds to greet on a busy machine; a first start compiles what later ones load."""


async def try_out(spec: ServerSpec, launch: Launch, temporary: Path) -> str:
    """Starts the server in a folder below `temporary`, lets it greet, ends it. Returns its version, "" when it does not
    say.

    Raises:
        ServerStartFailed: with the end of the server's stderr.
    """
    failure: ServerStartFailed | None = ServerStartFailed(
        spec.name, f"The language server {spec.name} did not complete the handshake within {TRIAL_S:g} s."
    )
    with borrowed(temporary) as folder:
        server = LanguageServer(
            spec, folder, launch=launch, settings={}, read_text=_nothing_to_read, temporary=temporary
        )

        async def serve(*, task_status: TaskStatus[ServerStartFailed | None]) -> None:
            try:
                await server.run(task_status=task_status)
            except ServerStartFailed as error:
                task_status.started(error)

        with anyio.move_on_after(TRIAL_S):
            async with anyio.create_task_group() as tasks:
                failure = await tasks.start(serve)
                server.stop()
    if failure is not None:
        raise failure
    return server.server_version


def _nothing_to_read(path: Path) -> Text:
    raise AssertionError(f"nobody asked about a file, and {path} is to be read")
