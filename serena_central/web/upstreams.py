"""Upstreams as /api and the dashboard show them, and what people do with them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from starlette.requests import Request

from serena_central.core.quoting import quoted
from serena_central.processes.usage import usage_of
from serena_central.projects.root_policy import PERSON
from serena_central.tools.call import SEPARATOR
from serena_central.web.responses import NotFound
from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from serena_central.hub.hub import Hub
    from serena_central.hub.snapshots import UpstreamSnapshot


class UpstreamTool(msgspec.Struct, frozen=True):
    """`offered_as`: the name under which clients see it, unless a client starts the server itself. `name`: the part of
    it after the server's, `tool` unless the settings rename it."""

    offered_as: str
    name: str
    tool: str
    description: str
    schema: dict[str, Any]


class UpstreamView(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream, as `UpstreamSnapshot` has it, and the memory of its processes in bytes."""

    id: str
    name: str
    scope: str
    sharing: str
    kind: str
    target: str
    source: str
    place: str
    state: str
    why: str
    pid: int | None
    memory_bytes: int
    started_at: float | None
    last_used_at: float | None
    restarts: int
    calls: int
    errors: int
    users: list[str]
    server: str
    version: str
    protocol: str
    tools: int
    garbage: int


@dataclass(frozen=True)
class Upstreams:
    """The handlers."""

    parts: WebServices

    async def list_upstreams(self, request: Request) -> Any:
        """By name; `project` (name or root) chooses those that it has."""
        return {"upstreams": await views(self.parts, _roots(self.parts, request.query_params.get("project")))}

    async def show_upstream(self, request: Request) -> Any:
        """One name: its processes, and its tools. It is started where its tools are not known."""
        name = request.path_params["upstream"]
        roots = _roots(self.parts, request.query_params.get("project"))
        tools = await tools_of(self.parts, name, roots)  # first: it may start one
        found = [one for one in await views(self.parts, roots) if one.name == name]
        if not found:
            raise no_such_upstream(name)
        return {"name": name, "runs": found, "tools": tools}

    async def restart_upstream(self, request: Request) -> Any:
        """Ends what runs of this name, and forgets its failures; it starts with the next call."""
        name = request.path_params["upstream"]
        return {"upstream": name, "ended": await (await hub_with(self.parts, name)).restart(name)}

    async def stop_upstream(self, request: Request) -> Any:
        """Ends what runs of this name; it starts with the next call."""
        name = request.path_params["upstream"]
        return {"upstream": name, "ended": await (await hub_with(self.parts, name)).stop(name)}


def no_such_upstream(name: str) -> NotFound:
    return NotFound(f"No known project can use an MCP server {quoted(name)}. `serena-central mcp list` says why.")


def known_roots(parts: WebServices) -> list[Path]:
    """The roots of all projects that are known."""
    return [Path(one.root) for one in parts.projects.snapshots()]


async def views(parts: WebServices, roots: Iterable[Path]) -> list[UpstreamView]:
    """The upstreams of these roots, and all that run, by name and scope."""
    hub = await _hub_for(parts, roots)
    if hub is None:
        return []
    found = {(one.key, one.scope): one for root in roots for one in hub.upstreams(root)}
    if set(roots) >= set(known_roots(parts)):
        found |= {(one.key, one.scope): one for one in hub.upstreams()}
    memory = await anyio.to_thread.run_sync(_memory, [one.pid for one in found.values() if one.pid is not None])
    chosen = sorted(found.values(), key=lambda one: (one.name, one.scope, one.key))
    return [_view(one, memory.get(one.pid or 0, 0)) for one in chosen]


async def tools_of(parts: WebServices, name: str, roots: Iterable[Path]) -> list[UpstreamTool]:
    """The tools of the upstream of this name, in the first root that has it."""
    hub = await _hub_for(parts, roots)
    for root in roots:
        if hub is None or name not in (specs := hub.of(root).specs):
            continue
        from serena_central.hub.callers import Caller
        from serena_central.hub.offered_tools import offered_tools

        known = await hub.known(specs.values(), Caller(session="", root=root), hub.policy.learn_wait_s)
        return [
            UpstreamTool(
                offered, one.name, one.own_name, str(one.wire.get("description") or ""), one.wire["inputSchema"]
            )
            for offered, one in offered_tools(known, parts.catalogue.names(), hub.policy.tools).items()
            if one.server == name
        ]
    return []


async def roots_with_tool(parts: WebServices, name: str) -> list[Path]:
    """The known roots with an upstream whose tools are named as this one is. Starts nothing."""
    roots = known_roots(parts)
    hub = await _hub_for(parts, roots) if SEPARATOR in name else None
    if hub is None:
        return []
    from serena_central.hub.names import server_prefix

    return [root for root in roots if any(name.startswith(server_prefix(server)) for server in hub.of(root).specs)]


async def hub_with(parts: WebServices, name: str) -> "Hub":
    """The hub, if any known project has an upstream of this name.

    Raises:
        NotFound
    """
    roots = known_roots(parts)
    hub = await _hub_for(parts, roots)
    if hub is None or not (
        any(name in hub.of(root).specs for root in roots) or any(one.name == name for one in hub.upstreams())
    ):
        raise no_such_upstream(name)
    return hub


async def _hub_for(parts: WebServices, roots: Iterable[Path]) -> "Hub | None":
    """The hub if it runs, or if one of these roots has a server: it is not imported for nothing."""
    if parts.upstreams.running is None and not any(map(parts.upstreams.has_servers, roots)):
        return None
    return await parts.upstreams.hub()


def _roots(parts: WebServices, project: str | None) -> Collection[Path]:
    return [parts.projects.find(project, PERSON)] if project else known_roots(parts)


def _memory(pids: Iterable[int]) -> dict[int, int]:
    return {pid: usage_of(pid).memory_bytes for pid in pids}


def _view(one: "UpstreamSnapshot", memory_bytes: int) -> UpstreamView:
    return UpstreamView(
        id="-".join(filter(None, (one.key[:12], one.scope.replace("/", "-")))),
        memory_bytes=memory_bytes,
        state=one.state.value,
        **{
            name: getattr(one, name)
            for name in UpstreamView.__struct_fields__
            if name not in ("id", "memory_bytes", "state")
        },
    )
