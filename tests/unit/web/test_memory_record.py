"""What language servers take is written when it says something new."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from serena_central.store.rows import MemoryTotalRow
from serena_central.web import memory_record
from serena_central.web.memory_record import MEMORY_SPANS_S, MemoryRecord


def test_a_total_is_written_again_only_when_it_grows_or_its_span_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_020.0  # a minute begins at 1,000,020
    server = SimpleNamespace(pid=7, root=Path("/app"), memory_bytes=50)
    written: list[MemoryTotalRow] = []
    pool = SimpleNamespace(snapshot=lambda: [server])
    record = MemoryRecord(cast("Any", pool), cast("Any", SimpleNamespace(put=written.append)))
    monkeypatch.setattr(memory_record, "time", SimpleNamespace(time=lambda: now))

    def recorded() -> list[tuple[int, str, int]]:
        written.clear()
        record.record()
        return [(row.span, row.root, row.memory_bytes) for row in written]

    everything = [(span, root, 50) for root in ("/app", "") for span in MEMORY_SPANS_S]
    assert recorded() == everything
    assert recorded() == []
    server.memory_bytes = 40
    assert recorded() == []
    server.memory_bytes = 50
    assert recorded() == [], "the most is what is kept"
    server.memory_bytes = 60
    assert [row[2] for row in recorded()] == [60] * 4
    now += 60
    assert recorded() == [(60, "/app", 60), (60, "", 60)]
    now -= 3600  # the clock was set
    assert len(recorded()) == 4
