"""fastmcp's client; see README.md. It runs in an environment of its own, which has nothing of ours."""

import json
import sys
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

ERA, URL, TOKEN, PROJECT = sys.argv[1:]


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def connection() -> Client[Any]:
    transport = StreamableHttpTransport(URL, headers={"Authorization": f"Bearer {TOKEN}"})
    return Client(transport, mode="legacy" if ERA == "handshake" else "auto")


async def text_of(client: Client[Any], tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments, raise_on_error=False)
    return result.content[0].text, result.is_error


async def find(client: Client[Any]) -> str:
    text, is_error = await text_of(client, "find_symbol", name_path_pattern="Cart", project=PROJECT)
    assert not is_error, text
    return text


async def cancel_what_never_ends(client: Client[Any]) -> None:
    with anyio.CancelScope() as scope:

        async def heard(_progress: float, _total: float | None, message: str | None) -> None:
            if not scope.cancel_called:
                tell(progress=message)
            scope.cancel()

        arguments = {"name_path": "Cart/total", "project": PROJECT}
        await client.call_tool("find_referencing_symbols", arguments, progress_handler=heard)
    assert scope.cancelled_caught
    tell(cancelled="by its scope")


async def session_of(client: Client[Any]) -> str:
    text, _ = await text_of(client, "get_current_config")
    return json.loads(text)["session"]


async def main() -> None:
    async with connection() as first, connection() as second:
        tell(tools=[tool.name for tool in await first.list_tools()])
        tell(found=await find(first))
        text, is_error = await text_of(first, "read_file", relative_path="missing.py", project=PROJECT)
        assert is_error
        tell(refused=text)
        try:
            text, is_error = await text_of(first, "no_such_tool")
            assert is_error
        except Exception as error:  # noqa: BLE001 - either will do
            text = str(error)
        tell(unknown=text)
        await cancel_what_never_ends(first)
        tell(sessions=[await session_of(client) for client in (first, second)])
        tell(ready=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        tell(again=await find(first))


anyio.run(main)
