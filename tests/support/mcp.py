"""Clients of the MCP endpoint for tests: the official SDK's in both eras, and raw HTTP.

`ScriptedTools` stands where the real tools stand, for what those can't be made to do on command: wait, report, fail.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import httpx2
import msgspec
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import encode_header_value
from mcp_types import Implementation

from serena_central.core.errors import SymbolNotFound, ToolRefused, UnknownTool
from serena_central.core.progress import Listener
from serena_central.sessions.session import RunningCall, Session
from serena_central.testing.server import Era
from serena_central.tools.answer import Answer
from serena_central.tools.call import ToolCaller, Waiting
from serena_central.tools.catalogue import Catalogue, Tool, tool, tool_of

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}


def _scripted(name: str) -> Tool:
    async def function(call: Any, text: str = "") -> str:
        """Does what its name says."""
        return text

    function.__name__ = name
    made = tool_of(tool(name.title())(function))
    assert made is not None
    return made


class ScriptedTools(ToolCaller):
    """Tools that do what a test tells them. `started` and `ended` count calls of `wait`; a call of `finish` is made to
    its end, as an edit is."""

    def __init__(self) -> None:
        self.started = anyio.Semaphore(0)
        self.ended: list[str] = []
        self.release = anyio.Event()
        self.finish = anyio.Event()
        self.catalogue = Catalogue(map(_scripted, ("echo", "whoami", "wait", "finish", "report", "refuse", "break")))

    def tools_for(self, session: Session | None = None) -> list[Tool]:
        return list(self.catalogue)

    async def upstreams_tools_for(self, session: Session) -> list[Tool]:
        return []

    def upstreams_version(self, session: Session) -> None:
        return None

    def switched_off(self, session: Session) -> frozenset[str]:
        return frozenset()

    def wants_plain_schemas(self, session: Session) -> bool:
        return False

    def tool(self, name: str) -> Tool | None:
        return self.catalogue.get(name)

    def only_reads(self, name: str) -> bool:
        return True

    async def call(
        self,
        session: Session,
        name: str,
        arguments: Mapping[str, Any],
        *,
        on_progress: Listener | None = None,
        request: str | None = None,
        person: bool = False,
        waiting: Waiting | None = None,
    ) -> Answer:
        running = RunningCall(f"c-{len(session.running)}-{name}", name, 0.0, anyio.CancelScope())
        session.running[running.id] = running
        try:
            with running.scope:
                return Answer([await self._do(session, name, arguments, on_progress)])
            raise ToolRefused(running.cancelled_because or "cancelled")
        finally:
            del session.running[running.id]

    async def _do(self, session: Session, name: str, arguments: Mapping[str, Any], on_progress: Listener | None) -> str:
        match name:
            case "echo":
                return arguments["text"]
            case "whoami":
                return msgspec.json.encode(
                    {
                        "session": session.id,
                        "identified_by": session.identified_by.value,
                        "client": session.client_name,
                        "folder": session.working_folder,
                        "context": session.context,
                    }
                ).decode()
            case "wait":
                self.started.release()
                try:
                    await self.release.wait()
                finally:
                    self.ended.append("released" if self.release.is_set() else "cancelled")
                return "done"
            case "finish":
                self.started.release()
                with anyio.CancelScope(shield=True):
                    await self.finish.wait()
                return "finished"
            case "report":
                for step in range(3):
                    if on_progress is not None:
                        on_progress(f"step {step}", step / 2)
                    self.started.release()
                await self.release.wait()
                return "reported"
            case "refuse":
                raise SymbolNotFound("Foo/bar", "the project")
            case "break":
                raise ZeroDivisionError("a secret of the inside")
            case _:
                raise UnknownTool(name)


@asynccontextmanager
async def sdk_client(
    url: str,
    era: Era,
    headers: Mapping[str, str],
    *,
    name: str = "test-client",
    timeout_s: float = 30,
    **options: Any,
) -> AsyncGenerator[Client]:
    """The official client, connected."""
    async with httpx2.AsyncClient(headers=dict(headers), timeout=timeout_s) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(
            transport,
            mode="legacy" if era == "handshake" else MODERN,
            client_info=Implementation(name=name, version="1"),
            **options,
        ) as client:
            yield client


class RawClient:
    """One client by plain HTTP. In the handshake era, `open` has to come first."""

    def __init__(self, http: httpx.AsyncClient, era: Era, *, name: str = "raw", version: str = HANDSHAKE) -> None:
        """`version` is that of the handshake era."""
        self.http = http
        self.version = version
        self.era: Era = era
        self.name = name
        self.session_id: str | None = None
        self._next_id = 0

    async def open(self) -> None:
        """The handshake; nothing in the modern era."""
        if self.era == "modern":
            return
        response = await self.send(
            "initialize",
            {
                "protocolVersion": self.version,
                "capabilities": {},
                "clientInfo": {"name": self.name, "version": "1"},
            },
        )
        assert response.status_code == 200, response.text
        self.session_id = response.headers["mcp-session-id"]
        assert (await self.notify("notifications/initialized")).status_code == 202

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = dict(ACCEPT)
        if self.era == "modern":
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
            if "name" in params or "uri" in params:
                headers["mcp-name"] = encode_header_value(params.get("name") or params["uri"])
        elif self.session_id is not None:
            headers |= {"mcp-session-id": self.session_id, "mcp-protocol-version": self.version}
        return headers

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> httpx.Request:
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                **params.get("_meta", {}),
            }
        self._next_id += 1
        body = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        headers = self.headers(method, params) | {"content-type": "application/json"}
        # In ASCII, as most clients write it: half of a surrogate pair has no other form.
        return self.http.build_request("POST", "/mcp", content=json.dumps(body), headers=headers)

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> httpx.Response:
        return await self.http.send(self.request(method, params))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> httpx.Response:
        body = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        return await self.http.post("/mcp", json=body, headers=self.headers(method, {}))

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON-RPC answer of one request."""
        return messages_in((await self.send(method, params)).text)[-1]

    async def call(self, tool: str, _meta: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """The result of one tool call."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if _meta:
            params["_meta"] = dict(_meta)
        return (await self.ask("tools/call", params))["result"]


def text_of(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


def messages_in(text: str) -> list[dict[str, Any]]:
    """JSON-RPC messages of an answer that is JSON or an event stream."""
    if text.startswith("{"):
        return [json.loads(text)]
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ") and line != "data: "]
