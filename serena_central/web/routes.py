"""The routes of the web application. Token, Host and Origin have been checked before."""

from starlette.routing import BaseRoute, Route

from serena_central.web import schemas
from serena_central.web.api import Api
from serena_central.web.hooks import Hooks
from serena_central.web.metrics import Metrics
from serena_central.web.pages.table import Dashboard
from serena_central.web.presence import Presence
from serena_central.web.responses import answering
from serena_central.web.warming import Warming

OPEN_PATHS = ("/health",)
"""What needs no token: it says nothing that a stranger may not know."""


def routes(
    api: Api, metrics: Metrics, presence: Presence, *, hooks: Hooks, warming: Warming, dashboard: Dashboard
) -> list[BaseRoute]:
    return [
        Route("/api/dashboard/link", answering(dashboard.invite, status=201), methods=["POST"]),
        Route("/metrics", metrics.answer, methods=["GET"]),
        Route("/health", answering(api.health), methods=["GET"]),
        Route("/api/sessions", answering(api.list_sessions), methods=["GET"]),
        Route("/api/sessions", answering(api.open_session, status=201), methods=["POST"]),
        Route("/api/sessions/{session}", answering(api.show_session), methods=["GET"]),
        Route("/api/sessions/{session}", answering(api.kill_session), methods=["DELETE"]),
        Route("/api/sessions/{session}/close", answering(api.close_session), methods=["POST"]),
        Route("/api/sessions/{session}/presence", answering(presence.hold), methods=["GET"]),
        Route("/api/sessions/{session}/revive", answering(api.revive_session), methods=["POST"]),
        Route("/api/tools", answering(api.list_tools), methods=["GET"]),
        Route("/api/tools/{tool}", answering(api.call_tool), methods=["POST"]),
        Route("/api/projects", answering(api.list_projects), methods=["GET"]),
        Route("/api/coverage", answering(hooks.coverage), methods=["GET"]),
        Route("/api/conversations/close", answering(hooks.close_conversation), methods=["POST"]),
        Route("/api/warm", answering(warming.warm), methods=["POST"]),
        Route("/api/servers", answering(api.list_servers), methods=["GET"]),
        Route("/api/servers/{server}/restart", answering(api.restart_server), methods=["POST"]),
        Route("/api/servers/{server}/stop", answering(api.stop_server), methods=["POST"]),
        Route("/api/edits", answering(api.list_edits), methods=["GET"]),
        Route("/api/edits/{edit}/undo", answering(api.undo_edit), methods=["POST"]),
        Route("/api/events", answering(api.list_events), methods=["GET"]),
        Route("/api/v1/schemas", answering(schemas.list_schemas), methods=["GET"]),
        Route("/api/v1/schemas/{name}", answering(schemas.show_schema), methods=["GET"]),
        Route("/api/stats", answering(api.show_statistics), methods=["GET"]),
        Route("/api/shutdown", answering(api.shut_down, status=202), methods=["POST"]),
        *dashboard.routes(),
    ]
