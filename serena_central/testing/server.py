"""A server in memory: the real MCP face and the real tools' names, schemas and argument checks, with scripted answers.

No project, no language server, no disk. What has no scripted answer is refused, with what was asked. httpx2 comes with
the MCP SDK, whose client takes no other.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from starlette.types import ASGIApp, Receive, Scope, Send

from serena_central.access.auth import lend_credential
from serena_central.core.errors import SerenaCentralError, ToolRefused
from serena_central.core.events import EventBus
from serena_central.core.progress import Listener
from serena_central.mcp_server.adapter import Adapter
from serena_central.mcp_server.endpoint import McpEndpoint
from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.mcp_server.transports import HandshakeTransports
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session
from serena_central.tools.answer import Answer
from serena_central.tools.call import ToolCaller, Waiting
from serena_central.tools.catalogue import Tool
from serena_central.tools.families import CATALOGUE

URL = "http://serena-central.test"
"""No such host: requests never leave the process."""

Era = Literal["handshake", "modern"]
_MODES: Mapping[Era, str] = {"handshake": "legacy", "modern": "2026-07-28"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call that came in: the tool's name, and its arguments as they were sent."""

    tool: str
    arguments: dict[str, Any]


class ScriptedServer:
    """Returns scripted answers, and records all calls in `calls`. Use it inside `async with server.running()`."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._lines: list[_Line] = []
        sessions = SessionManager(bus=EventBus(), interest=_Nobody())
        adapter = Adapter(sessions=sessions, caller=_ScriptedTools(self), version="0")
        sdk = SdkLane(lambda: adapter)
        self._endpoint = McpEndpoint(sdk, HandshakeTransports(sdk, sessions=sessions))

    def answer(self, tool: str, *answers: Answer | SerenaCentralError, when: Mapping[str, Any] | None = None) -> None:
        """Scripts answers, or failures, given in turn and the last one again and again; the newest script that fits
        counts. `when` limits it to calls with these arguments among theirs.

        Raises:
            ValueError: there is no such tool, or no answer.
        """
        if CATALOGUE.get(tool) is None:
            raise ValueError(f"serena-central has no tool {tool!r}")
        if not answers:
            raise ValueError("a script needs an answer")
        self._lines.insert(0, _Line(tool, dict(when or {}), list(answers)))

    def calls_of(self, tool: str) -> list[dict[str, Any]]:
        """The arguments of each call of one tool, in order."""
        return [call.arguments for call in self.calls if call.tool == tool]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[ASGIApp]:
        """Serves while the block runs; yields the ASGI application, whose `/mcp` speaks both eras of MCP."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._endpoint.run)
            yield self._serve
            self._endpoint.close_streams()
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def client(self, era: Era = "modern", *, name: str = "test") -> AsyncGenerator[Client]:
        """MCP's official client, connected in memory to a server that runs while the block does."""
        async with self.running() as app, httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
            transport = streamable_http_client(f"{URL}/mcp", http_client=http)
            async with Client(
                transport, mode=_MODES[era], client_info=Implementation(name=name, version="0")
            ) as client:
                yield client

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Without a token: only this process can reach it."""
        lend_credential(scope, "test")
        await self._endpoint(scope, receive, send)

    def next_answer(self, call: Call) -> Answer:
        """What a call gets. Raises what was scripted, or ToolRefused."""
        self.calls.append(call)
        for line in self._lines:
            if line.tool == call.tool and line.when.items() <= call.arguments.items():
                answer = line.answers.pop(0) if len(line.answers) > 1 else line.answers[0]
                if isinstance(answer, SerenaCentralError):
                    raise answer
                return answer
        raise ToolRefused(f"The test scripted no answer for {call.tool} with {call.arguments}.")


@dataclass(frozen=True, slots=True)
class _Line:
    tool: str
    when: dict[str, Any]
    answers: list[Answer | SerenaCentralError]


class _ScriptedTools(ToolCaller):
    """Stands where the real tools stand."""

    def __init__(self, server: ScriptedServer) -> None:  # pyright: ignore[reportMissingSuperCall] - it has none of it
        self._server = server
        self._catalogue = CATALOGUE

    def tools_for(self, session: Session) -> list[Tool]:
        return list(CATALOGUE)

    async def upstreams_tools_for(self, session: Session) -> list[Tool]:
        return []

    def upstreams_version(self, session: Session) -> None:
        return None

    def switched_off(self, session: Session) -> frozenset[str]:
        return frozenset()

    def wants_plain_schemas(self, session: Session) -> bool:
        return False

    async def call(
        self,
        session: Session,
        name: str,
        arguments: Mapping[str, Any],
        *,
        on_progress: Listener | None = None,
        request: str | None = None,
        person: bool = False,
        from_hook: str = "",
        waiting: Waiting | None = None,
    ) -> Answer:
        tool = self._find(name)
        tool.parse(arguments)
        return self._server.next_answer(Call(tool.name, dict(arguments)))


class _Nobody:
    """These sessions are not registered with any project."""

    def attach(self, root: str) -> None: ...
    def detach(self, root: str) -> None: ...
