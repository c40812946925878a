from datetime import UTC, datetime

import pytest
from genai_prices import Usage, calc_price
from hypothesis import given
from hypothesis import strategies as st

from serena_central.config.policies import ModelPrice
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.requests import Origin, Request

AT = 1_790_000_000_000


def asked(model: str, **counts: int) -> Request:
    return Request(key=0, at=AT, origin=Origin("claude-code", "/p", "s", "", model), **counts)


@given(
    st.sampled_from(
        ["claude-sonnet-4-5-20250929", "claude-opus-4-1", "gpt-5-codex", "gemini-2.5-pro", "claude-haiku-4-5"]
    ),
    st.lists(st.integers(0, 150_000), min_size=5, max_size=5),
)
def test_costs_are_those_of_the_published_prices_with_their_tiers(model: str, counts: list[int]) -> None:
    given, output, short, long, read = counts
    usage = Usage(
        input_tokens=given + short + long + read,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=short + long,
        cache_write_1h_tokens=long,
    )
    published = calc_price(usage, model, genai_request_timestamp=datetime.fromtimestamp(AT / 1000, UTC))
    own = Prices().cost(asked(model, input=given, output=output, write_5m=short, write_1h=long, read=read))
    assert own == pytest.approx(float(published.total_price), abs=1e-9)


def test_a_model_that_nobody_knows_has_no_cost() -> None:
    assert Prices().cost(asked("homemade-1", input=5)) is None
    assert Prices().cost(asked("", input=5)) is None


def test_messages_that_the_client_makes_itself_cost_nothing() -> None:
    assert Prices().cost(asked("<synthetic>", output=5)) == 0


def test_the_settings_prices_replace_the_published_ones_by_name_or_beginning() -> None:
    prices = Prices(
        {
            "homemade-*": ModelPrice(input=1, output=2),
            "homemade-2": ModelPrice(input=10, output=20, cache_read=0),
            "claude-*": ModelPrice(input=0, output=0),
        }
    )
    million = 1_000_000
    assert prices.cost(asked("homemade-1", input=million, read=million)) == pytest.approx(1.1)
    assert prices.cost(asked("homemade-2", input=million, read=million)) == 10
    assert prices.cost(asked("homemade-1", write_5m=million, write_1h=million)) == pytest.approx(3.25)
    assert prices.cost(asked("claude-opus-4-1", output=million)) == 0


def test_what_the_client_has_noted_itself_counts() -> None:
    request = asked("claude-opus-4-1", output=1000)
    request.stated_cost = 0.125
    assert Prices().cost(request) == 0.125


def test_fast_mode_has_prices_of_its_own() -> None:
    slow, fast = asked("claude-opus-4-8", output=1_000_000), asked("claude-opus-4-8", output=1_000_000)
    fast.fast = True
    assert (Prices().cost(slow), Prices().cost(fast)) == (25, 50)


def test_other_prices_have_another_stamp() -> None:
    assert Prices().stamp() == Prices({}).stamp() != Prices({"m": ModelPrice(input=1, output=1)}).stamp()
