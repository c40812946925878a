"""What a request costs: rates of the user's settings, else of `genai-prices`, as they were at the request's time.

That package takes 0.4 s to import and 20 µs for each request; so its rates are taken from it once for a model, an hour
and a speed, and multiplied here (a test compares the two). It is imported when a model is first asked for, and reaches
no network.
"""

import importlib.util
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from serena_central.config.policies import ModelPrice
from serena_central.core.late_imports import import_to_stay
from serena_central.transcripts.requests import Request

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

PER = 1_000_000
"""Rates are dollars for this many tokens."""

HOUR_MS = 3_600_000

SYNTHETIC = "<synthetic>"
"""What Claude Code calls the model of messages that it makes itself: no request was sent."""


class Rate(msgspec.Struct, frozen=True):
    """Dollars for a million tokens; `tiers` maps a number of input tokens to the rate of requests with more."""

    base: float
    tiers: tuple[tuple[int, float], ...] = ()

    def of(self, input_tokens: int) -> float:
        found = self.base
        if not self.tiers:
            return found
        for start, rate in self.tiers:
            if input_tokens > start:
                found = rate
        return found


NOTHING = Rate(0.0)


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of one model. `searches` is for a thousand web searches."""

    input: Rate
    output: Rate
    write_5m: Rate
    write_1h: Rate
    read: Rate
    searches: float = 0.0

    def cost(self, request: Request) -> float:
        """Dollars."""
        given = request.input + request.read + request.write_5m + request.write_1h
        tokens = (
            request.input * self.input.of(given)
            + request.output * self.output.of(given)
            + request.write_5m * self.write_5m.of(given)
            + request.write_1h * self.write_1h.of(given)
            + request.read * self.read.of(given)
        )
        return tokens / PER + request.searches * self.searches / 1000


def rates_of(price: ModelPrice) -> Rates:
    """A price of the settings; what it leaves out as the provider of Claude has it."""

    def rate(given: float | None, otherwise: float) -> Rate:
        return Rate(otherwise if given is None else given)

    return Rates(
        input=Rate(price.input),
        output=Rate(price.output),
        write_5m=rate(price.cache_write, price.input * 1.25),
        write_1h=rate(price.cache_write_1h, price.input * 2),
        read=rate(price.cache_read, price.input / 10),
    )


class Prices:
    """Prices requests. `overrides` maps a model's name, or the beginning of one that ends in `*`, to its rates."""

    def __init__(self, overrides: Mapping[str, ModelPrice] | None = None) -> None:
        self._overrides = {name: rates_of(one) for name, one in (overrides or {}).items()}
        self._known: dict[tuple[str, int, bool], Rates | None] = {}

    def cost(self, request: Request) -> float | None:
        """Dollars; None where the model's rates are unknown. What the client has noted itself counts first."""
        if request.stated_cost is not None:
            return request.stated_cost
        model = request.origin.model
        if model == SYNTHETIC:
            return 0.0
        key = model, request.at // HOUR_MS, request.fast
        if key in self._known:
            rates = self._known[key]
        else:
            rates = self._known[key] = self._overridden(model) or _published(model, request.at, fast=request.fast)
        return None if rates is None else rates.cost(request)

    def _overridden(self, model: str) -> Rates | None:
        exact = self._overrides.get(model)
        if exact is not None:
            return exact
        fitting = [name for name in self._overrides if name.endswith("*") and model.startswith(name[:-1])]
        return self._overrides[max(fitting, key=len)] if fitting else None

    def stamp(self) -> str:
        """What differs when a request may cost something else than before."""
        found = importlib.util.find_spec("genai_prices")
        data = Path(found.origin).with_name("data.py").stat() if found and found.origin else None
        given = sorted((name, msgspec.to_builtins(rates)) for name, rates in self._overrides.items())
        return f"{data and (data.st_size, data.st_mtime_ns)} {given}"


@contextmanager
def imported_beside() -> Generator[None]:
    """Imports the published prices while the block runs: its first requests need them, and reading does not."""
    with ThreadPoolExecutor(1, "prices") as thread:
        thread.submit(_snapshot)
        yield


@cache
def _snapshot() -> "DataSnapshot":
    """Imported late: 0.4 s, and nobody needs it who has no new request."""
    import_to_stay("genai_prices.data_snapshot")
    from genai_prices import data_snapshot

    return data_snapshot.get_snapshot()


def _published(model: str, at: int, *, fast: bool) -> Rates | None:
    """What `genai-prices` knows of a model at a time."""
    try:
        _, info = _snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    context = {"speed": "fast"} if fast else None
    prices = info.get_prices(datetime.fromtimestamp(at / 1000, UTC), context)
    given = prices.input_mtok
    return Rates(
        input=_rate(given),
        output=_rate(prices.output_mtok),
        write_5m=_rate(prices.cache_write_mtok, given),
        write_1h=_rate(prices.cache_write_1h_mtok, prices.cache_write_mtok or given),
        read=_rate(prices.cache_read_mtok, given),
        searches=_rate(prices.web_searches_kcount).base,
    )


def _rate(price: Any, otherwise: Any = None) -> Rate:
    """A `Decimal`, or a price with tiers; where a provider names no price of its own, `otherwise` holds."""
    if price is None:
        return NOTHING if otherwise is None else _rate(otherwise)
    if hasattr(price, "base"):
        return Rate(float(price.base), tuple((int(tier.start), float(tier.price)) for tier in price.tiers))
    return Rate(float(price))
