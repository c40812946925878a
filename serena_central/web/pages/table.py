"""The routes of the dashboard: its pages in the order of the navigation, its actions, sign-in and sign-out."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, Router

from serena_central.web.pages import (
    about,
    actions,
    analysis_status,
    call,
    configuration,
    connect,
    edit,
    edits,
    events,
    findings,
    graph,
    graph_references,
    hooks,
    memory,
    nodes,
    overview,
    plans,
    project,
    project_needs,
    project_settings,
    projects,
    server,
    server_log,
    servers,
    session,
    sessions,
    settings,
    statistics,
    tasks,
    tool,
    tools,
    transcripts,
    trust_section,
    upstreams,
    usage,
)
from serena_central.web.pages.assets import Assets
from serena_central.web.pages.endpoints import Action, Download, Endpoints
from serena_central.web.pages.live import Live
from serena_central.web.pages.page import BELOW, Page
from serena_central.web.pages.sign_in import SignIn
from serena_central.web.responses import NotFound
from serena_central.web.web_services import WebServices

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    sessions.PAGE,
    session.PAGE,
    call.PAGE,
    edits.PAGE,
    edit.PAGE,
    servers.PAGE,
    server.PAGE,
    tasks.PAGE,
    tasks.ONE,
    plans.PAGE,
    plans.ONE,
    upstreams.PAGE,
    upstreams.ONE,
    projects.PAGE,
    project.PAGE,
    memory.PAGE,
    project_settings.PAGE,
    graph.PAGE,
    graph_references.PAGE,
    findings.PAGE,
    hooks.PAGE,
    events.PAGE,
    server_log.PAGE,
    statistics.PAGE,
    usage.PAGE,
    transcripts.PAGE,
    transcripts.ONE,
    tools.PAGE,
    tool.PAGE,
    connect.PAGE,
    configuration.PAGE,
    settings.PAGE,
    about.PAGE,
)

PAGES_OF_CLUSTERS: tuple[Page, ...] = (nodes.PAGE,)
"""Where other machines hold the projects."""

ACTIONS: dict[str, Action] = {
    "/terminate": actions.terminate,
    "/revive": actions.revive,
    "/cancel": actions.cancel,
    "/undo": actions.undo_edit,
    **edits.ACTIONS,
    **servers.ACTIONS,
    **tasks.ACTIONS,
    **plans.ACTIONS,
    **upstreams.ACTIONS,
    **hooks.ACTIONS,
    **projects.ACTIONS,
    **trust_section.ACTIONS,
    **memory.ACTIONS,
    **project_needs.ACTIONS,
    **project_settings.ACTIONS,
    **settings.ACTIONS,
    **analysis_status.ACTIONS,
}
"""Path below /dashboard → what a POST to it does."""

USER_ACTIONS = frozenset({"/terminate", "/undo"})
"""Those that a team's users may do, to what is theirs."""

DOWNLOADS: dict[str, Download] = {events.EXPORT: events.export}
"""Path below /dashboard → the file that a GET of it answers with."""


class Pages:
    """What a browser gets."""

    def __init__(self, parts: WebServices, live: Live) -> None:
        self.pages = PAGES if parts.cluster is None else (*PAGES[:1], *PAGES_OF_CLUSTERS, *PAGES[1:])
        self._assets = Assets()
        self._endpoints = Endpoints(parts, live, self.pages, self._assets.digest)
        self.sign_in = SignIn(parts, self._endpoints)
        self.router = Router(self._routes(), redirect_slashes=False)

    def _routes(self) -> list[BaseRoute]:
        endpoints = self._endpoints
        gets = {
            **{f"/live{page.path}": endpoints.stream(page) for page in self.pages if page.live},
            "/live-pages": endpoints.translating(endpoints.streams),
            **{page.path: endpoints.page(page) for page in self.pages},
            **{path: endpoints.download(download) for path, download in DOWNLOADS.items()},
            "/": _without_slash,
            "/enter": self.sign_in.enter,
            "/static/{name:path}": self._assets.answer,
        }
        posts = {
            tool.PAGE.path: endpoints.form_page(tool.PAGE),
            **{path: endpoints.action(action, for_users=path in USER_ACTIONS) for path, action in ACTIONS.items()},
            "/sign-out": self.sign_in.leave,
            "/sign-in": self.sign_in.sign_in,
        }
        return [
            *(Route(BELOW + path, endpoint, methods=["GET"]) for path, endpoint in gets.items()),
            *(Route(BELOW + path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
            Route(BELOW + "/{nowhere:path}", endpoints.translating(_nowhere)),
        ]


async def _without_slash(_request: Request) -> Response:
    return RedirectResponse(BELOW)


async def _nowhere(_request: Request) -> Response:
    raise NotFound("There is no such page.")
