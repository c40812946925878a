"""The adapter over a transport without HTTP: messages of one client, with a sender that the transport made itself."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import ServerMessageMetadata

from serena_central.mcp_server.adapter import Adapter
from serena_central.mcp_server.sender import ClientConnection, Sender
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


class Streams:
    """A transport of one client, whose messages all have the same sender."""

    def __init__(self, server: Server[Any], sender: Sender) -> None:
        self._server = server
        self._sender = sender
        self._open: AbstractAsyncContextManager[Any] | None = None

    async def __aenter__(self) -> Any:
        self._open = self._connected()
        return await self._open.__aenter__()

    async def __aexit__(self, *failure: Any) -> Any:
        assert self._open
        return await self._open.__aexit__(*failure)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        async with create_client_server_memory_streams() as (client, (incoming, outgoing)):
            send, marked = anyio.create_memory_object_stream[Any](1)

            async def mark() -> None:
                async with send:
                    async for message in incoming:
                        message.metadata = ServerMessageMetadata(request_context=self._sender)
                        await send.send(message)

            async def serve() -> None:
                await serve_dual_era_loop(self._server, marked, outgoing, lifespan_state={})

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(mark)
                tasks.start_soon(serve)
                yield client
                tasks.cancel_scope.cancel()


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_calls_of_a_client_without_http_belong_to_the_session_of_their_sender(tmp_path: Path, era: str) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart: ...\n")
    connection = ClientConnection("c-1") if era == "handshake" else None
    sender = Sender(credential="me", explicit_id="s-1", connection=connection)
    async with running_parts(tmp_path) as central:
        adapter = Adapter(sessions=central.sessions, caller=central.caller, version="0")
        mode = "legacy" if era == "handshake" else "2026-07-28"
        async with Client(Streams(adapter.server, sender), mode=mode) as client:
            answer = await client.call_tool("find_symbol", {"name_path_pattern": "Cart", "project": str(root)})
        assert "cart.py" in str(answer.content)
        session = central.sessions.get("s-1")
        assert (session.era, session.calls) == (era, 1)
        assert connection is None or connection.session_id == "s-1"
