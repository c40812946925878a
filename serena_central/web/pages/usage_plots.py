"""The plots of the usage page: cost and tokens by day (all, by model, by project), and the running 5-hour block."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import PurePath

from serena_central.store.usage_store import BUCKET_MS, Total
from serena_central.transcripts.reports import IN_BLOCKS, Block
from serena_central.web.pages.plot import Plot, Series, Timeline, plot
from serena_central.web.pages.rendering import count

DAYS = 30
DAY_S = 86_400
BUCKET_S = BUCKET_MS // 1000

NAMED = 4
"""Models or projects with a line of their own, those that cost the most; the others are one line."""

OTHERS = "others"

Key = Callable[[Total], str]
Measure = Callable[[Total], float]


def by_day(totals: Sequence[Total], today: float) -> list[Plot]:
    """Of the 30 days that end with the one that began at `today` (Unix time)."""
    starts = [today - back * DAY_S for back in reversed(range(DAYS))]
    axis = Timeline(starts[0], today + DAY_S, starts, DAY_S)
    places = {int(start) // DAY_S: index for index, start in enumerate(starts)}
    shown = [(one, index) for one in totals if (index := places.get(one.bucket * BUCKET_S // DAY_S)) is not None]
    plots: list[Plot] = []
    for title, key, kind in (("", _all, "bars"), (" by model", _model, "line"), (" by project", _project, "line")):
        names = _names([one for one, _ in shown], key)
        for what, unit, measure, show, tell in (
            ("Cost", "dollars per day (UTC)", _cost, _dollars, _dollars),
            ("Tokens", "per day (UTC)", _tokens, _short, count),
        ):
            series = [Series(name, _values(shown, key, names, name, measure), kind) for name in names]  # type: ignore[arg-type]
            plots.append(plot(f"{what}{title}", unit, series, axis, show=show, says_of=_teller(series, tell)))
    return plots


def burn_rate(totals: Sequence[Total], block: Block) -> Plot:
    """Dollars by quarter of an hour in a block, from its start to its end."""
    start = datetime.fromisoformat(block.key).timestamp()
    times = [start + step * BUCKET_S for step in range(round((block.ends_at - start) / BUCKET_S))]
    spent: dict[int, float] = {}
    for one in totals:
        if one.client in IN_BLOCKS:
            spent[one.bucket] = spent.get(one.bucket, 0.0) + one.cost
    values = [spent.get(int(at) // BUCKET_S, 0.0) for at in times]
    unit = f"dollars per quarter of an hour since {time.strftime('%H:%M', time.gmtime(start))} UTC"
    axis = Timeline(start, block.ends_at, times, BUCKET_S)
    series = [Series("cost", values, "bars")]
    return plot("Burn rate of the 5-hour block", unit, series, axis, show=_dollars, says_of=_teller(series, _dollars))


def quarter(at: datetime) -> int:
    """The bucket of a time."""
    return int(at.astimezone(UTC).timestamp()) // BUCKET_S


def _names(totals: Sequence[Total], key: Key) -> list[str]:
    """Those with a line, the one of the highest cost first, and `others` where there are more."""
    sums: dict[str, tuple[float, float]] = {}
    for one in totals:
        cost, tokens = sums.get(key(one), (0.0, 0.0))
        sums[key(one)] = cost + one.cost, tokens + _tokens(one)
    names = sorted(sums, key=lambda name: (sums[name], name), reverse=True)
    return [*names[:NAMED], *([OTHERS] if len(names) > NAMED else [])] or ["all"]


def _values(
    shown: Sequence[tuple[Total, int]], key: Key, names: Sequence[str], name: str, measure: Measure
) -> list[float]:
    values = [0.0] * DAYS
    for one, index in shown:
        own = key(one)
        if own == name or (name == OTHERS and own not in names):
            values[index] += measure(one)
    return values


def _teller(series: Sequence[Series], show: Callable[[float], str]) -> Callable[[int], str]:
    def tell(index: int) -> str:
        values = [(one.name, one.values[index] or 0.0) for one in series]
        if len(values) == 1:
            return show(values[0][1])
        return ", ".join(f"{name} {show(value)}" for name, value in values if value)

    return tell


def _all(_: Total) -> str:
    return "all"


def _model(one: Total) -> str:
    return one.model or "(no name)"


def _project(one: Total) -> str:
    return PurePath(one.project).name or one.project


def _cost(one: Total) -> float:
    return one.cost


def _tokens(one: Total) -> float:
    return one.input + one.output + one.write_5m + one.write_1h + one.read


def _dollars(value: float) -> str:
    return f"${value:,.2f}"


def _short(value: float) -> str:
    """A number that fits beside an axis: 1.5M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"
