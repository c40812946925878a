"""What a machine or container has left."""

from pathlib import Path

import psutil
import pytest

from serena_central.pool import budget


def test_files_that_were_read_are_free_memory_of_a_container_however_often_they_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that had read its repository twice looked full, and language servers in use were ended."""
    monkeypatch.setattr(budget, "_CGROUP_LIMIT", tmp_path / "memory.max")
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("990000\n")
    (tmp_path / "memory.stat").write_text(
        "anon 300000\nfile 650000\nshmem 20000\ninactive_file 30000\nactive_file 600000\nslab_reclaimable 40000\n"
    )
    assert budget.free_memory_bytes() == 680_000
    (tmp_path / "memory.max").write_text("max\n")
    assert budget.free_memory_bytes() > min(1_000_000, psutil.virtual_memory().total // 100)
