"""The page of one language server: its runs, resource use, state history and the end of its stderr."""

import math
from collections.abc import Sequence

import msgspec

from serena_central.core.event_kinds import ServerEvent
from serena_central.pool.key import ServerKey
from serena_central.pool.key_history import Measured
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.plot import Plot, Series, Timeline, plot
from serena_central.web.pages.references import server_named_in
from serena_central.web.pages.rendering import count, size
from serena_central.web.pages.servers import PATH, ServerRow, server_row
from serena_central.web.responses import NotFound
from serena_central.web.views import server_named

PACE_S = 5.0
"""About how far measurements are apart."""

WINDOW_S = 900.0
"""Of the plots, up to now."""


class State(msgspec.Struct, frozen=True):
    """The key's runs, the newest first: one that serves or served last, and those that finish their calls beside it."""

    id: str
    runs: list[ServerRow]
    runs_now: bool


class Load(msgspec.Struct, frozen=True):
    memory: Plot
    cpu: Plot


class Step(msgspec.Struct, frozen=True):
    """A move of a run; `at` is Unix time."""

    at: float
    run: int
    source: str
    to: str
    reason: str


class History(msgspec.Struct, frozen=True):
    """The newest first."""

    steps: list[Step]


class StderrTail(msgspec.Struct, frozen=True):
    """The end of what the newest run wrote to stderr."""

    text: str


def _key(visit: Visit) -> ServerKey:
    try:
        return server_named(visit.parts.pool, visit.path["server"])
    except NotFound as error:
        raise NotFound("This language server stopped and is no longer shown.") from error


async def state(visit: Visit) -> State:
    pool, key = visit.parts.pool, _key(visit)
    runs = [server_row(one, pool.memory_budget_bytes, visit.now) for one in pool.snapshot() if one.key == key]
    return State(visit.path["server"], runs, any(run.pid is not None for run in runs))


async def load(visit: Visit) -> Load:
    return plots(list(visit.parts.pool.history(_key(visit)).measured), visit.now)


def plots(measured: Sequence[Measured], now: float) -> Load:
    """Plots of these measurements, up to now: where it did not run, nothing is drawn."""
    until = math.ceil(now / PACE_S) * PACE_S
    axis = Timeline(until - WINDOW_S, until, [one.at - PACE_S / 2 for one in measured], PACE_S)
    return Load(
        memory=plot(
            "Memory",
            "",
            [Series("memory", [one.memory_bytes for one in measured])],
            axis,
            show=size,
            says_of=lambda index: size(measured[index].memory_bytes),
            kilo=1024,
        ),
        cpu=plot(
            "CPU",
            "percent of one core",
            [Series("CPU", [one.cpu_percent for one in measured])],
            axis,
            show=count,
            says_of=lambda index: f"{measured[index].cpu_percent:.3g} %",
        ),
    )


async def history(visit: Visit) -> History:
    moves = visit.parts.pool.history(_key(visit)).moves
    return History([Step(one.at, one.run, one.source, one.to, one.reason) for one in reversed(moves)])


async def last_words(visit: Visit) -> StderrTail:
    key = _key(visit)
    return StderrTail(next((one.stderr_tail for one in visit.parts.pool.snapshot() if one.key == key), ""))


PAGE = Page(
    path=f"{PATH}/{{server}}",
    title="Language server {server}",
    template="server.html",
    sections={
        "state": Section("server/_state.html", state, (ServerEvent,)),
        "load": Section("server/_load.html", load),
        "history": Section("server/_history.html", history, (ServerEvent,)),
        "stderr": Section("server/_stderr.html", last_words),
    },
    in_navigation=False,
    names=server_named_in,
)
