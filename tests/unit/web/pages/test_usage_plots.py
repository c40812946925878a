"""The plot of the running 5-hour block shows what the block counts."""

from serena_central.store.usage_store import BUCKET_MS, Total
from serena_central.transcripts.reports import Block
from serena_central.web.pages.usage_plots import burn_rate

START = 1_795_435_200
"""2026-11-23T12:00Z"""


def spent(client: str, cost: float, quarter: int) -> Total:
    at = START * 1000 + quarter * BUCKET_MS
    return Total(client, "/p", "s", "", "m", at // BUCKET_MS, 1, 1, 1, 0, 0, 0, cost, 0, at, at)


def test_the_burn_rate_is_of_what_is_in_the_block() -> None:
    block = Block(key="2026-11-23T12:00Z", ends_at=START + 5 * 3600)
    totals = [spent("claude-code", 3, 0), spent("messages", 4, 0), spent("messages", 5, 2), spent("codex", 60, 2)]
    assert [mark.says.split()[0] for mark in burn_rate(totals, block).marks] == ["$7.00", "$5.00"]
