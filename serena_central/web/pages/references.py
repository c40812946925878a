"""Links from an event to what it is about: its server, project, session and edit."""

from functools import cached_property
from pathlib import Path

import msgspec

from serena_central.core.event_kinds import CallFinished
from serena_central.core.events import Event
from serena_central.pool.key import ServerKey
from serena_central.sessions.session import SessionState
from serena_central.sessions.session_snapshot import SessionSnapshot
from serena_central.store.rows import EventRow
from serena_central.web.pages.page import Visit, link
from serena_central.web.pages.rendering import bounded
from serena_central.web.views import server_id, server_named
from serena_central.web.web_services import WebServices

NAME_CHARS = 60
"""Of a name in a title."""


class PageLink(msgspec.Struct, frozen=True):
    """`url` is "" where it has no page, or none any more."""

    label: str
    url: str


class ProjectLink(msgspec.Struct, frozen=True):
    """A project that a page can be about; `current`: it is about this one."""

    name: str
    url: str
    current: bool


def project_links(visit: Visit, path: str, current: str) -> list[ProjectLink]:
    """The known projects by name, for a page at `path` that gets the `current` one's root in its query."""
    return [
        ProjectLink(one.name, link(path, root=one.root), one.root == current)
        for one in sorted(visit.parts.projects.snapshots(), key=lambda one: one.name)
    ]


def edit_page(edit: str) -> str:
    return link(f"/edits/{edit}")


def call_page(call: str) -> str:
    return link(f"/calls/{call}")


def tool_page(tool: str) -> str:
    return link(f"/tools/{tool}")


def upstream_page(name: str) -> str:
    return link(f"/upstreams/{name}")


def server_page(key: ServerKey) -> str:
    return link(f"/servers/{server_id(key)}")


def project_page(root: str) -> str:
    return link("/projects/one", root=root)


def session_page(session: str) -> str:
    return link(f"/sessions/{session}")


AWAITED = "awaited"
"""How a session is shown whose client has not come back since the server was restarted: nothing is wrong with it."""

SHOWN_STATES = (*(state.value for state in SessionState), AWAITED)


def shown_state(one: SessionSnapshot) -> str:
    """The state of a session, as pages show it and filter by it."""
    return AWAITED if one.awaited and one.state is SessionState.DISCONNECTED else one.state.value


class PageLinks:
    """What has a page at this moment; looked at when an event first asks."""

    def __init__(self, parts: WebServices) -> None:
        self._parts = parts

    @cached_property
    def _clients(self) -> dict[str, str]:
        return {session.id: session.client_name for session in self._parts.sessions.sessions()}

    @cached_property
    def _servers(self) -> dict[tuple[str, str], str]:
        return {(one.server, str(one.root)): server_page(one.key) for one in self._parts.pool.snapshot()}

    @cached_property
    def _upstreams(self) -> set[str]:
        hub = self._parts.upstreams.running
        return {one.name for one in hub.upstreams()} if hub is not None else set()

    @cached_property
    def _roots(self) -> dict[str, str]:
        """The root that a name or a root stands for; "" for a name of several."""
        roots: dict[str, str] = {}
        for one in self._parts.projects.snapshots():
            roots[one.root] = one.root
            roots[one.name] = "" if one.name in roots else one.root
        return roots

    def of(self, event: Event | EventRow) -> list[PageLink]:
        """From the narrowest on: where one of them is enough, the first leads to where something can be done."""
        found: list[PageLink] = []
        if edit := event.data.get("edit"):
            found.append(PageLink("edit", edit_page(edit)))
        if event.kind == CallFinished.kind and (call := event.data.get("call")):
            found.append(PageLink("call", call_page(call)))
        root = event.data.get("root", "")
        if event.server and event.kind.startswith("upstream."):
            found.append(PageLink(event.server, upstream_page(event.server) if event.server in self._upstreams else ""))
        elif event.server:
            found.append(PageLink(event.server, self._servers.get((event.server, root), "")))
        if event.session:
            known = event.session in self._clients
            client = self._clients.get(event.session) or event.data.get("client") or event.session
            found.append(PageLink(client, session_page(event.session) if known else ""))
        if event.project:
            # An event names its project as its publisher knows it: by its name, or by its root.
            name = Path(event.project).name if event.project.startswith("/") else event.project
            own = self._roots.get(root or event.project)
            found.append(PageLink(name, project_page(own) if own else ""))
        return found


def session_named(visit: Visit) -> str:
    """The client of the session that a page shows."""
    return bounded(visit.parts.sessions.get(visit.path["session"]).client_name, NAME_CHARS)


def server_named_in(visit: Visit) -> str:
    """The language server that a page shows, and its folder."""
    key = server_named(visit.parts.pool, visit.path["server"])
    return f"{key.server} in {key.root.name}"


def project_named(visit: Visit) -> str:
    """The project that the query of a page names."""
    root = visit.query.get("root", "")
    return next((one.name for one in visit.parts.projects.snapshots() if one.root == root), "")
