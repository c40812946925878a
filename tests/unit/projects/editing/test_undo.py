"""Undo by what the store has kept of an edit."""

import zlib

import msgspec
import pytest

from serena_central.core.errors import UndoRefused
from serena_central.editing.patch import FilePatch
from serena_central.projects.editing.undo import patches_of
from serena_central.store.rows import EditRow


def test_what_is_stored_can_be_undone_however_the_clock_was_set_since() -> None:
    patch = FilePatch(path="a.py", created=True)
    row = EditRow(id="e-1", at=0.0, call="c", tool="t", session="s", project_root="/p")
    with pytest.raises(UndoRefused, match="no longer stored"):
        patches_of(row)
    row.patches = zlib.compress(msgspec.msgpack.encode([patch]))
    assert patches_of(row) == [patch]
