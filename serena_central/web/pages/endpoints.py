"""Endpoints of the dashboard: pages, their streams, downloads, and actions of people. Errors become pages here.

Nothing is changed by GET. Who may send an action is checked in `forms`.
"""

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import compile_path

from serena_central.access.auth import login_of, restricted_user
from serena_central.core.errors import InvalidArguments, SerenaCentralError, ToolRefused
from serena_central.web.pages.csrf import ForeignRequest, login_required
from serena_central.web.pages.forms import Form, read_form
from serena_central.web.pages.listing import AFTER
from serena_central.web.pages.live import PAGES_OF_STREAM, Feed, Live
from serena_central.web.pages.long_lists import MOST_CHARS
from serena_central.web.pages.page import BELOW, Frame, Link, Page, Visit
from serena_central.web.pages.rendering import bounded, render
from serena_central.web.responses import HUNG_UP, NotFound, status_of, unexpected
from serena_central.web.web_services import WebServices

USERS_HOME = "/sessions"
"""The first page of a team's users, below /dashboard."""

CAUGHT_UP_S = 0.5
"""How long a page waits for queued writes: a database that is locked must not hold it up."""

QUERY_CHARS = 300
"""Of one choice in an address."""

LONGER: Mapping[str, int] = {"root": 4096, AFTER: MOST_CHARS}
"""Folders of projects have a length of their own, and so has the row that a page of a list follows, which holds what
the list is sorted by."""

HERE_CHARS = 1000
"""Of the address that each form of a page leads back to: of a longer one the path alone."""

Action = Callable[[Visit, Form], Awaitable[str]]
"""Does what a person asked for, and says in a sentence what was done."""

Download = Callable[[Visit], Awaitable[Response]]
"""Answers with a file to keep."""

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoints:
    """Endpoints for pages, streams and actions. `navigation` are the pages that every page leads to."""

    parts: WebServices
    live: Live
    navigation: Sequence[Page]
    digest: str
    """Of the files that pages are made of."""

    @property
    def assets(self) -> str:
        """Where the static files are."""
        return f"{BELOW}/static/{self.digest}"

    def page(self, page: Page) -> Endpoint:
        """Answers with the whole page."""

        async def make(request: Request) -> Response:
            if not page.path and restricted_user(request.scope) is not None:
                return RedirectResponse(BELOW + USERS_HOME)
            return await self._whole(page, request, self._visit(request, page))

        return self.translating(make)

    def form_page(self, page: Page) -> Endpoint:
        """Answers a form with the page that it stands on."""

        async def make(request: Request) -> Response:
            form = await read_form(request)
            return await self._whole(page, request, replace(self._visit(request, page), form=form))

        return self.translating(make)

    async def _whole(self, page: Page, request: Request, visit: Visit) -> Response:
        _check_lengths(visit)
        frame = self._frame(page, request)
        if any(section.recorded for section in page.sections.values()):
            with anyio.move_on_after(CAUGHT_UP_S):
                await self.parts.store.writer.caught_up()
        contexts = await _made(page, visit)
        sections = {
            name: render(section.template, page=frame, section=contexts[name])
            for name, section in page.sections.items()
        }
        return HTMLResponse(render(page.template, page=frame, sections=sections))

    def stream(self, page: Page) -> Endpoint:
        """Answers with what changes on the page, as long as it is open."""

        async def make(request: Request) -> Response:
            feed = Feed(page, self._visit(request, page), self._section_renderer(page, self._frame(page, request)))
            return self.live.open([feed], login_required(request), self.digest)

        return self.translating(make)

    async def streams(self, request: Request) -> Response:
        """Answers with what changes on several pages: the query has the address of each as `page`, in their order."""
        addresses = request.query_params.getlist("page")[:PAGES_OF_STREAM]
        feeds = [self._feed(request, address, number) for number, address in enumerate(addresses)]
        found = [feed for feed in feeds if feed is not None]
        if not found:
            raise NotFound("No such page is kept up to date.")
        return self.live.open(found, login_required(request), self.digest)

    def _feed(self, request: Request, address: str, number: int) -> Feed | None:
        """Of the page at an address below /dashboard; None where none is kept up to date."""
        try:
            parts = urlsplit(address)
        except ValueError:  # brackets that hold no address of a host
            return None
        for page, pattern in self._live_pages:
            if found := pattern.match(unquote(parts.path)):
                path, query = found.groupdict(), dict(parse_qsl(parts.query))
                # As the page itself was asked for.
                asked = Request({**request.scope, "path": parts.path, "query_string": parts.query.encode()})
                asked.scope["path_params"] = path
                render = self._section_renderer(page, self._frame(page, asked))
                visit = Visit(self.parts, path, query, time.time(), restricted_user(request.scope))
                return Feed(page, visit, render, number) if _may_see(visit, page) else None
        return None

    @cached_property
    def _live_pages(self) -> list[tuple[Page, re.Pattern[str]]]:
        return [(page, compile_path(BELOW + page.path)[0]) for page in self.navigation if page.live]

    def _section_renderer(self, page: Page, frame: Frame) -> Callable[[str, msgspec.Struct], str]:
        def rendered(name: str, context: msgspec.Struct) -> str:
            return render(page.sections[name].template, page=frame, section=context)

        return rendered

    def action(self, action: Action, *, for_users: bool = False) -> Endpoint:
        """Does something, and goes back to the page; a button that htmx sends gets the words only. `for_users`: also
        for a team's users, who are administrators of nothing."""

        async def make(request: Request) -> Response:
            form = await read_form(request)
            said = await action(self._visit(request, for_users=for_users), form)
            if "hx-request" in request.headers and "hx-boosted" not in request.headers:
                return HTMLResponse(render("_said.html", said=said, failed=False))
            return RedirectResponse(_back(form), status_code=303)

        return self.translating(make)

    def download(self, download: Download) -> Endpoint:
        """Answers with a file, or a page that says why not."""

        async def make(request: Request) -> Response:
            return await download(self._visit(request))

        return self.translating(make)

    def _refused(self, request: Request, text: str, status: int) -> Response:
        if "hx-request" in request.headers:
            return HTMLResponse(render("_said.html", said=text, failed=True), status)
        if login_of(request.scope) is None:
            return PlainTextResponse(text, status)  # our pages are for those who are signed in
        title = "Not found" if status == 404 else "Request failed"
        page = Page("", title, "error.html", {}, live=False)
        return HTMLResponse(render("error.html", page=self._frame(page, request), text=text), status)

    def translating(self, make: Endpoint) -> Endpoint:
        """What `make` raises becomes a page."""

        async def endpoint(request: Request) -> Response:
            try:
                return await make(request)
            except SerenaCentralError as error:
                status = 403 if isinstance(error, ForeignRequest) else status_of(error)
                return self._refused(request, str(error), status)
            except ClientDisconnect:
                return Response(status_code=HUNG_UP)
            except Exception as error:  # noqa: BLE001 (the boundary of a request: logged by `unexpected`)
                status, _, text = unexpected(error)
                return self._refused(request, text, status)

        return endpoint

    def _visit(self, request: Request, page: Page | None = None, *, for_users: bool = False) -> Visit:
        """Raises: ToolRefused: this is for administrators."""
        user = restricted_user(request.scope)
        visit = Visit(self.parts, request.path_params, _chosen(request), time.time(), user)
        if not for_users and not _may_see(visit, page):
            raise ToolRefused("This is for administrators of the server.")
        return visit

    def _frame(self, page: Page, request: Request) -> Frame:
        path, query = request.url.path.replace(BELOW + "/live", BELOW, 1), request.url.query
        here = f"{path}?{query}" if 0 < len(query) <= HERE_CHARS else path
        return Frame(
            title=page.title_of(self._visit(request, page, for_users=True)),
            version=self.digest,
            csrf=login_required(request).csrf,
            here=here,
            live=page.live,
            assets=self.assets,
            navigation=[
                Link(one.title, BELOW + one.path, _leads_to(one, path))
                for one in self.navigation
                if one.in_navigation and (one.for_users or restricted_user(request.scope) is None)
            ],
            on_hosts=self.parts.cluster is not None,
        )


async def _made(page: Page, visit: Visit) -> dict[str, msgspec.Struct]:
    """The sections' contexts, made beside each other: those that read the store wait for a worker thread.

    Raises:
        SerenaCentralError: of the first section that failed; other errors as they come.
    """
    made: dict[str, msgspec.Struct] = {}
    failed: dict[str, SerenaCentralError] = {}

    async def make(name: str) -> None:
        try:
            made[name] = await page.sections[name].make(visit)
        except SerenaCentralError as error:
            failed[name] = error

    async with anyio.create_task_group() as tasks:
        for name in page.sections:
            tasks.start_soon(make, name)
    for name in page.sections:
        if name in failed:
            raise failed[name]
    return made


def _check_lengths(visit: Visit) -> None:
    """Every link of a list repeats what was chosen: a page would be many times as large as what was sent.

    Raises:
        InvalidArguments
    """
    for name, value in visit.query.items():
        most = LONGER.get(name, QUERY_CHARS)
        if max(len(name), len(value)) > most:
            raise InvalidArguments(f"{bounded(name, 40)!r} in the address has more than {most} characters.")


def _may_see(visit: Visit, page: Page | None) -> bool:
    return visit.user is None or (page is not None and page.for_users)


def _chosen(request: Request) -> dict[str, str]:
    """The query without what a form left empty."""
    return {name: value for name, value in request.query_params.items() if value}


def _leads_to(page: Page, path: str) -> bool:
    own = BELOW + page.path
    return path == own or (page.path != "" and path.startswith(own + "/"))


def _back(form: Form) -> str:
    """The page that an action came from; only ever one of ours."""
    (back, *_) = form.get("back", [""])
    return back if back == BELOW or back.startswith((BELOW + "/", BELOW + "?")) else BELOW
