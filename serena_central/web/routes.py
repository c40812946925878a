"""The routes of the web application. Token, Host and Origin have been checked before."""

from starlette.routing import BaseRoute, Route

from serena_central.web import schemas
from serena_central.web.api import Api
from serena_central.web.calls import Calls
from serena_central.web.gates import Gates
from serena_central.web.hooks import Hooks
from serena_central.web.metrics import Metrics
from serena_central.web.pages.table import Dashboard
from serena_central.web.presence import Presence
from serena_central.web.responses import Handler, answering
from serena_central.web.warming import Warming

API = "/api/v1"
"""Another version of the API would have a prefix of its own; within one, answers only gain members."""

OPEN_PATHS = ("/health",)
"""What needs no token: it says nothing that a stranger may not know."""


def routes(
    api: Api,
    metrics: Metrics,
    presence: Presence,
    *,
    hooks: Hooks,
    warming: Warming,
    calls: Calls,
    gates: Gates,
    dashboard: Dashboard,
) -> list[BaseRoute]:
    return [
        Route("/health", answering(api.health, query=("nonce",)), methods=["GET"]),
        Route("/metrics", metrics.answer, methods=["GET"]),
        _get("/sessions", api.list_sessions, "state", "client", "project", "limit"),
        _post("/sessions", api.open_session, status=201),
        _get("/sessions/{session}", api.show_session, "limit"),
        _delete("/sessions/{session}", api.kill_session, "by"),
        _post("/sessions/{session}/close", api.close_session),
        _get("/sessions/{session}/presence", presence.hold),
        _post("/sessions/{session}/revive", api.revive_session),
        _post("/sessions/{session}/resume", gates.resume_session, "by"),
        _get("/halted", gates.list_halted),
        _get("/tools", api.list_tools, "session"),
        _post("/tools/{tool}", api.call_tool),
        _get("/projects", api.list_projects, "open", "limit"),
        _get("/coverage", hooks.coverage, "path", "name"),
        _post("/conversations/close", hooks.close_conversation),
        _post("/warm", warming.warm),
        _get("/servers", api.list_servers, "state", "server", "root", "limit"),
        _post("/servers/{server}/restart", api.restart_server),
        _post("/servers/{server}/stop", api.stop_server),
        _get("/calls", calls.list_calls, "session", "project", "tool", "failed", "since", "before", "limit"),
        _get("/calls/{call}", calls.show_call),
        _get("/edits", api.list_edits, "session", "project", "file", "symbol", "since", "before", "limit"),
        _post("/sessions/{session}/undo", api.undo_session, "by", "since"),
        _post("/edits/{edit}/undo", api.undo_edit, "by"),
        _get("/events", api.list_events, "kind", "session", "project", "severity", "before", "limit"),
        _get("/schemas", schemas.list_schemas),
        _get("/schemas/{name}", schemas.show_schema),
        _get("/stats", api.show_statistics),
        _post("/dashboard/link", dashboard.invite, status=201),
        _post("/shutdown", api.shut_down, status=202),
        *dashboard.routes(),
    ]


def _get(path: str, handler: Handler, *query: str) -> Route:
    return Route(API + path, answering(handler, query=query), methods=["GET"])


def _post(path: str, handler: Handler, *query: str, status: int = 200) -> Route:
    return Route(API + path, answering(handler, status=status, query=query), methods=["POST"])


def _delete(path: str, handler: Handler, *query: str) -> Route:
    return Route(API + path, answering(handler, query=query), methods=["DELETE"])
