"""Records what a session has read of one project, and checks that record before each edit.

A hash counts only if text and symbols are of the same moment; where the symbols of a text that was shown are not known,
what the session had read of that file before counts no more.
"""

from collections.abc import Iterable, Mapping

from serena_central.core.errors import PathError
from serena_central.files.text import FileText
from serena_central.projects.editing.conflicts import WHOLE_FILE
from serena_central.projects.editing.edits import Edited
from serena_central.projects.navigation.symbol_views import ReferenceView, SymbolView
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import body_hash, body_hashes
from serena_central.tools.context import ToolCall

SHARED_SESSION = (
    "Several clients may share this session, and what one of them read counts for all: an edit may overwrite "
    "changes that another one made since."
)


class ReadSet:
    """Of the session of one call. Paths are root-relative; hashes are those of symbols/symbol.py, by name path."""

    def __init__(self, call: ToolCall, target: Project) -> None:
        self._call = call
        self._target = target
        self._views = call.services.views
        self._session = call.session
        self._root = str(target.root)

    # --- around an edit ------------------------------------------------------------------------------------------

    async def check(self, hit: Hit, *, within: bool = True) -> Mapping[str, str]:
        """What the session last read of a symbol, and of those in it unless not `within`: what the edit's conflict
        guard compares with.

        Raises:
            PathRefused: the file is not edited here.
        """
        self._check_editable(hit.path)
        if within:
            return await self._views.seen_within(self._session, self._root, hit.path, hit.name_path)
        seen = await self._views.seen(self._session, self._root, hit.path, hit.name_path)
        return {hit.name_path: seen} if seen is not None else {}

    async def check_file(self, path: str) -> str | None:
        """The digest of what the session last read of a whole file.

        Raises:
            PathRefused
        """
        self._check_editable(path)
        return await self._views.seen(self._session, self._root, path, WHOLE_FILE)

    def _check_editable(self, path: str) -> None:
        self._target.edits.check_editable(path)
        if self._session.shared:
            self._call.note(SHARED_SESSION)

    def record(self, edited: Edited, *, about: str | None = None) -> None:
        """Records an edit (of the symbol `about`, if it was one): what the session wrote counts as read; what
        contains it keeps its state."""
        known = {
            (body.path, body.name_path): body.after
            for body in edited.consequences.bodies
            if (about is not None and (body.name_path == about or body.name_path.startswith(f"{about}/")))
            or body.before is None
            or self._views.known(self._session, self._root, body.path, body.name_path) == body.before
        }
        for path in edited.consequences.unknown:
            self._views.forget(self._session, self._root, path)
        for (path, name_path), after in known.items():
            self._record(path, {name_path: after})

    # --- what was shown ------------------------------------------------------------------------------------------

    def record_bodies(self, views: Iterable[SymbolView]) -> None:
        """The session was shown these symbols' sources, as far as the views hold them."""
        for view in views:
            if view.hashes:
                self._record(view.path, view.hashes)
            if view.digest:
                self._record_lines_known(view.path, view.digest)

    async def record_names(self, path: str) -> None:
        """The session was shown the names of all symbols of a file."""
        try:
            read = await self._target.read(path)
        except PathError:  # gone since its symbols were told
            return
        symbols = self._target.symbols_in(path, read)
        if symbols is not None:
            self._record(path, body_hashes(read.text, symbols), in_full=False)
            self._record_lines_known(path, read.digest)

    def record_references(self, references: Iterable[ReferenceView]) -> None:
        """The session was shown lines of the symbols that refer to another one."""
        for one in references:
            if one.holder is not None and one.holder.hashes:
                self._record(one.path, one.holder.hashes, in_full=False)

    def record_lines(self, path: str, read: FileText, first: int, last: int) -> None:
        """The session was shown lines of a file: symbols that lie in them as a whole, others in part."""
        symbols = self._target.symbols_in(path, read)
        if symbols is None:
            self._views.forget(self._session, self._root, path)
        else:
            for symbol, name_path in ((symbol, symbols.name_path(at)) for at, symbol in enumerate(symbols.symbols)):
                if symbol.start_line <= last and first <= symbol.end_line:
                    whole = first <= symbol.start_line and symbol.end_line <= last
                    self._record(path, {name_path: body_hash(read.text, symbol)}, in_full=whole)
        self._record(path, {WHOLE_FILE: read.digest})

    def _record_lines_known(self, path: str, digest: str) -> None:
        """The session was shown where symbols stand, so that it may edit the file by those lines."""
        self._record(path, {WHOLE_FILE: digest}, in_full=False)

    def _record(self, path: str, hashes: Mapping[str, str], *, in_full: bool = True) -> None:
        self._views.saw(self._session, self._root, path, hashes, in_full=in_full)
