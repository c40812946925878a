"""The definition of a dashboard page: a template and sections, each with a typed context.

A section is what changes as a whole. Its template is part of the page on first load and is sent again alone when its
context has changed, so that the two can't drift apart. This knows neither HTTP nor how pages are kept up to date.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from serena_central.core.errors import SerenaCentralError
from serena_central.core.events import Event
from serena_central.projects.registry import ProjectSnapshot
from serena_central.sessions.session_snapshot import SessionSnapshot
from serena_central.sessions.users import User
from serena_central.web.web_services import WebServices

BELOW = "/dashboard"

TICK_S = 5.0
"""Refresh interval of data without events (memory, a breaker's countdown), in seconds."""


@dataclass(frozen=True)
class Visit:
    """What a page is asked for: the words in its path, its query, and the moment (Unix seconds).

    `form` is what was sent to a page that answers forms itself; `forms` has checked who sent it.
    """

    parts: WebServices
    path: Mapping[str, str]
    query: Mapping[str, str]
    now: float
    user: User | None = None
    """A team's user who sees own things alone; None: an administrator."""
    form: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def owner(self) -> str | None:
        """The credential whose things alone are shown; None: everybody's."""
        return None if self.user is None else self.user.credential

    def sessions(self) -> list[SessionSnapshot]:
        """Those that are shown."""
        known = self.parts.sessions
        if self.user is None:
            return known.snapshots()
        return [known.snapshot(one) for one in known.sessions() if one.credential == self.user.credential]

    def projects(self) -> list[ProjectSnapshot]:
        """Those that are shown."""
        found = self.parts.projects.snapshots()
        return [one for one in found if self.user is None or self.user.may_open(Path(one.root))]


@dataclass(frozen=True)
class Section:
    """`make` builds the context that `template` gets as `section`; it raises NotFound or one of our errors.

    It is rebuilt after events of the classes in `hears`, and every `every_s` seconds. A `recorded` one reads the
    store, and first waits for queued writes; in a flood of calls it does not wait, and is rebuilt until it is current.
    """

    template: str
    make: Callable[[Visit], Awaitable[msgspec.Struct]]
    hears: tuple[type[Event], ...] = ()
    every_s: float = TICK_S
    recorded: bool = False
    of_calls: bool = False
    """It shows what requests and events alone change: while there are none it is not rebuilt by time."""


@dataclass(frozen=True)
class Page:
    """`path` is below /dashboard. `template` gets the sections' HTML as `sections.NAME`, and the `Frame` as `page`."""

    path: str
    title: str
    template: str
    sections: Mapping[str, Section]
    in_navigation: bool = True
    live: bool = True
    """Kept up to date while it is open."""
    for_users: bool = False
    """A team's users are shown it, with what is theirs. All else is for administrators."""
    names: Callable[[Visit], str] | None = None
    """Returns the name of the thing that is shown, which the title begins with; "" where it is not known."""

    def title_of(self, visit: Visit) -> str:
        """As the browser shows it."""
        title = self.title.format_map(visit.path)
        try:
            name = self.names(visit) if self.names else ""
        except SerenaCentralError:
            return title
        return f"{name} · {title}" if name else title


class Link(msgspec.Struct, frozen=True):
    """An entry of the navigation. `current`: the page is this one or lies below it."""

    title: str
    url: str
    current: bool


class Frame(msgspec.Struct, frozen=True):
    """What every template gets as `page`: what stands around the sections.

    `csrf` is the hidden field of each form, `here` the page's own path and query, `live` whether it has a stream,
    `assets` the address of the static files, which changes with the version. `on_hosts`: a cluster's hosts hold the
    projects, and this server opens none.
    """

    title: str
    version: str
    csrf: str
    here: str
    live: bool
    assets: str
    navigation: list[Link]
    on_hosts: bool = False


def link(path: str, /, **query: Any) -> str:
    """The address of a page; values that are None or "" are left out."""
    chosen = {key: value for key, value in query.items() if value not in (None, "")}
    return BELOW + path + ("?" + urlencode(chosen, errors="surrogateescape") if chosen else "")
