"""Finds the edit that wrote a line, by walking a file's edits backwards, as `git blame` does with commits.

It knows edits of this server alone. Where somebody else has changed the lines of an edit since, that edit is passed
over: what it wrote is not there any more.
"""

import zlib
from collections.abc import Sequence

import msgspec

from serena_central.core.decoding import msgpack_decoder
from serena_central.editing.patch import FilePatch, MovedOn, reverted_with_line
from serena_central.store.edit_log import LoggedEdit

_PATCHES = msgpack_decoder(list[FilePatch])


def edit_of_line(text: str, line0: int, path: str, edits: Sequence[LoggedEdit]) -> LoggedEdit | None:
    """The edit that wrote a line of a file, root-relative, as it is now; None where none did. `edits` are those of the
    file, the newest first. A move ends the walk."""
    undone: set[str] = set()
    for place, edit in enumerate(edits):
        if edit.id in undone:
            continue
        older = edits[place + 1].id if place + 1 < len(edits) else None
        if older is not None and edit.undoes == older:  # together they have changed nothing
            undone.add(older)
            continue
        patch = _patch_of(edit, path)
        if patch is None:
            continue
        if patch.moved_to is not None:
            return None
        try:
            text, before = reverted_with_line(text, patch.hunks, line0)
        except MovedOn:
            continue
        if before is None:
            return edit
        line0 = before
    return None


def _patch_of(edit: LoggedEdit, path: str) -> FilePatch | None:
    if edit.patches is None:
        return None
    try:
        found = _PATCHES.decode(zlib.decompress(edit.patches))
    except (zlib.error, msgspec.DecodeError):
        return None
    return next((one for one in found if path in (one.path, one.moved_to)), None)
