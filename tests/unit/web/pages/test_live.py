"""Streams of open pages: what is sent, when, and how they end."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import anyio
import msgspec
import pytest
from starlette.types import Message

from serena_central.access.browsers import Login
from serena_central.core.event_kinds import CallFinished, SessionEvent, SessionKilled
from serena_central.core.events import Event, EventBus
from serena_central.core.rest import RESTS_AFTER_S, Rest
from serena_central.web.pages import live as live_module
from serena_central.web.pages.live import LEAVE, STREAMS_PER_BROWSER, Feed, Live
from serena_central.web.pages.page import Page, Section, Visit, WebServices
from serena_central.web.responses import NotFound
from tests.support.events import call_finished, server_moved

pytestmark = pytest.mark.anyio

NEVER = 1e9


class Shown(msgspec.Struct, frozen=True):
    words: str


class Words:
    """A section that shows what a test tells it, and counts how often it was made."""

    def __init__(self) -> None:
        self.now = "first"
        self.made = 0

    async def make(self, _visit: Visit) -> Shown:
        self.made += 1
        if self.now == "gone":
            raise NotFound("gone")
        return Shown(self.now)


class Browser:
    """The other end of a stream: what it read, and whether it reads at all."""

    def __init__(self) -> None:
        self.read: list[bytes] = []
        self.awake = anyio.Event()
        self.awake.set()
        self.news = anyio.Event()
        self.ended = anyio.Event()
        self.left = anyio.Event()

    async def send(self, message: Message) -> None:
        await self.awake.wait()
        if message["type"] == "http.response.body":
            self.read.append(message["body"])
            self.news.set()
            if not message["more_body"]:
                self.ended.set()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def until(self, words: bytes) -> None:
        while not any(words in part for part in self.read):
            self.news = anyio.Event()
            await self.news.wait()


@asynccontextmanager
async def streaming(
    live: Live,
    words: Words,
    browser: Browser,
    *,
    path: Mapping[str, str] = {},
    writer: Any = None,
    hears: Sequence[type[Event]] = (CallFinished,),
    expires_at: float = NEVER,
    who: str = "b",
    every_s: float = NEVER,
    sessions: Any = None,
) -> AsyncGenerator[None]:
    """`writer`: whose rows the section is made of; `sessions`: whose requests it shows."""
    section = Section(
        "", words.make, tuple(hears), every_s=every_s, recorded=writer is not None, of_calls=sessions is not None
    )
    page = Page("", "", "", {"words": section})
    visit = Visit(
        cast("WebServices", SimpleNamespace(store=SimpleNamespace(writer=writer), sessions=sessions)), path, {}, 0.0
    )

    def render(_name: str, context: msgspec.Struct) -> str:
        return f"<p>{cast('Shown', context).words}</p>"

    stream = live.open([Feed(page, visit, render)], Login(who, "", time.time() + expires_at), "v1")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream, cast("Any", {}), browser.receive, browser.send)
            yield
            tasks.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "LEAST_S", 0.0)


async def test_a_page_without_news_is_told_that_the_server_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "PING_S", 0.0)
    monkeypatch.setattr(live_module, "RESTING_S", 0.01)
    words, browser = Words(), Browser()
    async with streaming(Live(EventBus()), words, browser):
        await browser.until(b"event: here\ndata: .\n\n")
    assert words.made == 1


async def test_what_a_page_shows_is_sent_first_and_then_what_changed() -> None:
    bus = EventBus()
    live, words, browser = Live(bus), Words(), Browser()
    async with streaming(live, words, browser):
        await browser.until(b"event: words\ndata: <p>first</p>\n\n")
        assert browser.read[0] == b"retry: 1000\nevent: version\ndata: v1\n\n"
        words.now = "second"
        bus.publish(call_finished())
        await browser.until(b"<p>second</p>")


async def test_what_a_person_did_is_shown_at_once_although_others_have_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Live, "pause_s", lambda _live, _spent_s: NEVER)
    bus = EventBus()
    live, words, browser = Live(bus), Words(), Browser()
    async with streaming(live, words, browser, hears=(CallFinished, SessionEvent)):
        await browser.until(b"first")
        words.now = "second"
        bus.publish(call_finished())
        await anyio.wait_all_tasks_blocked()
        assert words.made == 1
        bus.publish(SessionKilled())
        await browser.until(b"second")


async def test_what_is_the_same_is_not_sent_again_and_other_events_make_nothing() -> None:
    bus = EventBus()
    live, words, browser = Live(bus), Words(), Browser()
    async with streaming(live, words, browser):
        await browser.until(b"first")
        bus.publish(server_moved())
        bus.publish(call_finished())
        words.now = "second"
        bus.publish(call_finished())
        await browser.until(b"second")
        assert b"".join(browser.read).count(b"event: words") == 2
        assert words.made <= 3


async def test_a_sleeping_browser_costs_nothing_and_sees_what_is_true_when_it_wakes() -> None:
    bus = EventBus()
    live, words, browser = Live(bus), Words(), Browser()
    async with streaming(live, words, browser):
        await browser.until(b"first")
        browser.awake = anyio.Event()
        for number in range(1000):
            words.now = f"number {number}"
            bus.publish(call_finished())
            await anyio.lowlevel.checkpoint()
        assert words.made <= 3
        browser.awake.set()
        await browser.until(b"number 999")
        assert words.made <= 5


async def test_a_section_that_several_browsers_show_is_built_once_for_all() -> None:
    bus = EventBus()
    live, words, browsers = Live(bus), Words(), [Browser(), Browser(), Browser()]
    async with (
        streaming(live, words, browsers[0]),
        streaming(live, words, browsers[1], who="c"),
        streaming(live, words, browsers[2], who="d"),
    ):
        for browser in browsers:
            await browser.until(b"first")
        made = words.made
        for number in range(3):
            words.now = f"number {number}"
            bus.publish(call_finished())
            for browser in browsers:
                await browser.until(words.now.encode())
        assert words.made == made + 3


async def test_what_calls_alone_change_is_not_built_again_while_there_are_none() -> None:
    bus, sessions = EventBus(), SimpleNamespace(requests=0)
    live, timed, still, clock, browser = Live(bus), Words(), Words(), Browser(), Browser()
    async with (
        streaming(live, timed, clock, every_s=0.01, path={"page": "timed"}, hears=()),
        streaming(live, still, browser, every_s=0.01, path={"page": "still"}, hears=(), sessions=sessions),
    ):
        await browser.until(b"first")
        for words in ("second", "third"):  # it is built once more by time, before it counts as still
            timed.now = words
            await clock.until(words.encode())
        made, still.now = still.made, "hidden"
        for words in ("fourth", "fifth", "sixth"):
            timed.now = words
            await clock.until(words.encode())
        assert still.made == made
        still.now, sessions.requests = "called", 1
        await browser.until(b"called")
        still.now = "happened"
        bus.publish(server_moved())
        await browser.until(b"happened")


async def test_a_page_rests_with_the_process_and_is_looked_at_again_when_anything_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    resting, rests = Rest(lambda: now[0]), anyio.Event()

    def aligned(_after_s: float) -> float:
        rests.set()
        return 3600

    monkeypatch.setattr(live_module, "rest", resting)
    monkeypatch.setattr(live_module, "aligned", aligned)
    words, browser = Words(), Browser()
    async with streaming(Live(EventBus()), words, browser, every_s=0.01, hears=()):
        await browser.until(b"first")
        words.now = "second"
        await browser.until(b"second")
        now[0] = RESTS_AFTER_S
        await rests.wait()
        words.now = "third"
        made = words.made
        await anyio.sleep(0.1)
        assert words.made == made
        resting.stir()
        await browser.until(b"third")


async def test_a_page_about_a_session_hears_of_no_other() -> None:
    bus = EventBus()
    live = Live(bus)
    (mine, own), (all_of, every) = ((Words(), Browser()) for _ in range(2))
    async with streaming(live, mine, own, path={"session": "mine"}), streaming(live, all_of, every):
        await own.until(b"first")
        await every.until(b"first")
        mine.now = all_of.now = "second"
        bus.publish(call_finished(session="other"))
        await every.until(b"second")
        assert mine.made == 1
        bus.publish(call_finished(session="mine"))
        await own.until(b"second")


class Behind:
    """A writer that is flooded as long as a test says."""

    def __init__(self) -> None:
        self.flooded = True

    async def caught_up(self) -> bool:
        return not self.flooded


async def test_what_is_written_after_the_last_news_of_a_flood_is_shown_all_the_same() -> None:
    live, words, browser, writer = Live(EventBus()), Words(), Browser(), Behind()
    async with streaming(live, words, browser, writer=writer):
        await browser.until(b"first")
        words.now = "written now"
        await browser.until(b"written now")
        words.now, writer.flooded = "the last", False
        await browser.until(b"the last")
        await anyio.wait_all_tasks_blocked()
        made = words.made
        await anyio.wait_all_tasks_blocked()
        assert words.made == made


async def test_what_hears_of_nothing_is_not_made_again_because_of_a_flood() -> None:
    live, words, browser = Live(EventBus()), Words(), Browser()
    async with streaming(live, words, browser, writer=Behind(), hears=()):
        await browser.until(b"first")
        await anyio.wait_all_tasks_blocked()
        assert words.made == 1


async def test_a_page_whose_subject_is_gone_is_told_to_load_anew() -> None:
    bus = EventBus()
    live, words, browser = Live(bus), Words(), Browser()
    async with streaming(live, words, browser):
        await browser.until(b"first")
        words.now = "gone"
        bus.publish(call_finished())
        await browser.ended.wait()
        assert LEAVE in browser.read


async def test_streams_end_with_their_browser_the_login_and_the_server() -> None:
    live = Live(EventBus())
    for end in ("left", "sign out", "expired", "stop"):
        words, browser = Words(), Browser()
        async with streaming(live, words, browser, expires_at=0.2 if end == "expired" else NEVER):
            await browser.until(b"first")
            assert live.count == 1
            if end == "left":
                browser.left.set()
            if end == "sign out":
                live.sign_out("other")
                live.sign_out("b")
            if end == "stop":
                live.close()
            await browser.ended.wait()
            assert live.count == 0
    late = Browser()
    async with streaming(live, Words(), late):
        await late.ended.wait()


async def test_a_browser_has_so_many_streams_and_then_the_oldest_ends() -> None:
    live = Live(EventBus())
    browsers = [Browser() for _ in range(STREAMS_PER_BROWSER + 1)]
    async with anyio.create_task_group() as tasks:

        async def hold(browser: Browser, who: str) -> None:
            async with streaming(live, Words(), browser, who=who):
                await anyio.sleep_forever()

        stranger = Browser()
        tasks.start_soon(hold, stranger, "stranger")
        with anyio.fail_after(60):
            for browser in browsers:
                tasks.start_soon(hold, browser, "b")
                await browser.until(b"first")
            await browsers[0].ended.wait()
        assert live.count == STREAMS_PER_BROWSER + 1
        assert not stranger.ended.is_set()
        tasks.cancel_scope.cancel()


def test_all_streams_together_take_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "LEAST_S", 0.25)
    live = Live(EventBus())
    assert live.pause_s(0.0) == 0.25
    for _ in range(4):
        live.join(cast("Any", _Stream()))
    assert live.pause_s(0.005) == pytest.approx(1.0)
    assert live.pause_s(1.0) == live_module.MOST_S


class _Stream:
    login = Login("b", "", NEVER)
