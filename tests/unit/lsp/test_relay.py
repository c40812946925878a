"""The process that stands in for a language server which listens on TCP already."""

import sys
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from serena_central.core.places import Places
from serena_central.lsp.catalogue import Launching, ServerSpec
from serena_central.lsp.locate import RELAY, locate

pytestmark = pytest.mark.anyio


def command(port: int, places: Places) -> list[str]:
    spec = ServerSpec(name="far", title="Far", languages=("gdscript",), launch=Launching(connect=f"127.0.0.1:{port}"))
    return locate(spec, Path("/"), places, untrusted=None).command


async def test_bytes_go_both_ways_and_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    async def shout(client: SocketStream) -> None:
        async with client:
            async for chunk in client:
                await client.send(chunk.upper())

    with anyio.fail_after(60):
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, shout)
            line = command(listener.extra(SocketAttribute.local_port), Places(tmp_path))
            assert line[:4] == [sys.executable, "-I", "-S", str(RELAY)]
            async with await anyio.open_process(line) as relay:
                assert relay.stdin
                assert relay.stdout
                await relay.stdin.send(b"hello")
                assert await relay.stdout.receive() == b"HELLO"
                await relay.stdin.aclose()
                assert await relay.wait() == 0
            tasks.cancel_scope.cancel()


async def test_where_nobody_listens_it_says_so(tmp_path: Path) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
    done = await anyio.run_process(command(port, Places(tmp_path)), check=False)
    assert done.returncode == 1
    assert f"nothing listens at 127.0.0.1:{port}".encode() in done.stderr
