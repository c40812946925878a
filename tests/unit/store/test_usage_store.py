"""The usage store of an earlier version."""

import sqlite3
from pathlib import Path

from serena_central.store.usage_store import StoredRequest, UsageStore


def request(key: bytes, origin: int, *, unpriced: bool) -> StoredRequest:
    return StoredRequest(
        key=key, at=1_790_000_000_000, origin=origin, input=10, output=20, write_5m=0, write_1h=0, read=0, searches=0,
        fast=False, sidechain=False, stated_cost=None, cost=None if unpriced else 0.5, unpriced=unpriced,
    )  # fmt: skip


def test_a_store_of_the_first_schema_keeps_its_requests_and_learns_which_calls_lack_a_price(tmp_path: Path) -> None:
    path = tmp_path / "usage.db"
    with UsageStore(path) as store, store.writing() as writer:
        for name, unpriced in (("known", False), ("homemade", True)):
            origin = writer.origin(("codex", "/p", "s", "", name))
            writer.put_requests([request(name.encode(), origin, unpriced=unpriced)])
            writer.put_tools([(name.encode(), name.encode(), "shell")])
    with sqlite3.connect(path) as old:
        old.execute("ALTER TABLE tool_total DROP COLUMN unpriced")
        old.execute("PRAGMA user_version = 1")
    old.close()
    with UsageStore(path) as store:
        assert sorted((one.model, one.cost, one.unpriced) for one in store.tool_totals()) == [
            ("homemade", 0.0, 1),
            ("known", 0.5, 0),
        ]
        assert len(store.totals()) == 2
