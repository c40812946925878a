"""`serena-proxy` as a client runs it: a real child process, spoken to line by line."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.child import PATIENCE_S, environment
from tests.support.mcp import HANDSHAKE, MODERN, Era

PROXY = (sys.executable, "-I", "-m", "serena_central.proxy")

LONGEST = 128 * 1024 * 1024


class ProxyClient:
    """One client of one proxy. Answers are kept by id as they come; everything else in `told`."""

    def __init__(self, process: Process, era: Era, log: Path) -> None:
        assert process.stdin
        assert process.stdout
        self.process = process
        self.era: Era = era
        self.log = log
        self.answers: dict[Any, list[dict[str, Any]]] = {}
        self.told: list[dict[str, Any]] = []
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._next_id = 0

    def said(self) -> str:
        """What it wrote to stderr."""
        return self.log.read_text()

    async def send_line(self, line: bytes) -> None:
        await self._stdin.send(line + b"\n")

    async def send_raw(self, data: bytes) -> None:
        await self._stdin.send(data)

    async def end_input(self) -> None:
        await self._stdin.aclose()

    def message(self, method: str, params: Mapping[str, Any] | None, message_id: Any = None) -> bytes:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        if message_id is not None:
            body["id"] = message_id
            if self.era == "modern":
                body["params"]["_meta"] = {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "proxied", "version": "1"},
                    **body["params"].get("_meta", {}),
                }
        return json.dumps(body).encode()

    async def begin(self, method: str, params: Mapping[str, Any] | None = None, *, as_id: Any = None) -> Any:
        """Sends a request; its id."""
        if as_id is None:
            self._next_id += 1
            as_id = self._next_id
        await self.send_line(self.message(method, params, as_id))
        return as_id

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self.send_line(self.message(method, params))

    async def read(self) -> dict[str, Any]:
        """The next message of the proxy. Raises anyio.EndOfStream or anyio.IncompleteRead at its end."""
        message = json.loads(await self._stdout.receive_until(b"\n", LONGEST))
        if "method" in message:
            self.told.append(message)
        else:
            self.answers.setdefault(message["id"], []).append(message)
        return message

    async def answer(self, message_id: Any) -> dict[str, Any]:
        """The one answer to a request."""
        with anyio.fail_after(PATIENCE_S):
            while message_id not in self.answers:
                await self.read()
        (answer,) = self.answers[message_id]
        return answer

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return await self.answer(await self.begin(method, params))

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]

    async def open(self, **capabilities: Any) -> None:
        """The handshake; nothing in the modern era."""
        if self.era == "modern":
            return
        about = {"name": "proxied", "version": "1"}
        answer = await self.ask(
            "initialize", {"protocolVersion": HANDSHAKE, "capabilities": capabilities, "clientInfo": about}
        )
        assert "result" in answer, answer
        await self.notify("notifications/initialized")

    async def session(self) -> str:
        """The id that the server knows it by."""
        return json.loads((await self.call("get_current_config"))["content"][0]["text"])["session"]

    async def ended(self, within_s: float = PATIENCE_S) -> int:
        """Its exit code."""
        with anyio.fail_after(within_s):
            return await self.process.wait()


@asynccontextmanager
async def proxying(
    folder: Path, era: Era, *arguments: str, command: tuple[str, ...] = PROXY, **more: str
) -> AsyncGenerator[ProxyClient]:
    """Runs a proxy for the server whose home is below `folder`, until the block ends."""
    (folder / "home").mkdir(exist_ok=True)
    log = folder / f"proxy-{len(list(folder.glob('proxy-*.log')))}.log"
    with log.open("wb") as sink:
        process = await anyio.open_process(
            [*command, *arguments],
            cwd=folder,
            env=environment(folder, SERENA_CENTRAL_SERVER_PORT="0", **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
        )
    try:
        yield ProxyClient(process, era, log)
    finally:
        with anyio.move_on_after(PATIENCE_S, shield=True):
            if process.returncode is None:
                process.terminate()
            await process.wait()
            await process.aclose()
