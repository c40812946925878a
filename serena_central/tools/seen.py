"""What a session was shown of symbols, told to the conflict guard: shared by the tools that read.

A hash counts only if text and symbols are of the same moment; where the symbols of a text that was shown are not known,
what the session knew of that file before counts no more.
"""

from collections.abc import Iterable

from serena_central.core.errors import PathError
from serena_central.files.text import FileText
from serena_central.projects.editing.conflicts import WHOLE_FILE
from serena_central.projects.navigation.symbol_views import ReferenceView, SymbolView
from serena_central.projects.project import Project
from serena_central.symbols.bodies import body_hash, body_hashes
from serena_central.tools.context import ToolCall


def saw_bodies(call: ToolCall, target: Project, views: Iterable[SymbolView]) -> None:
    """The session was shown these symbols' sources, as far as the views hold them."""
    for view in views:
        if view.hashes:
            call.services.views.saw(call.session, str(target.root), view.path, view.hashes)
        if view.digest:
            _saw_where_lines_are(call, target, view.path, view.digest)


async def saw_names(call: ToolCall, target: Project, path: str) -> None:
    """The session was shown the names of all symbols of a file."""
    try:
        read = await target.read(path)
    except PathError:  # gone since its symbols were told
        return
    symbols = target.symbols_in(path, read)
    if symbols is not None:
        hashes = body_hashes(read.text, symbols)
        call.services.views.saw(call.session, str(target.root), path, hashes, in_full=False)
        _saw_where_lines_are(call, target, path, read.digest)


def _saw_where_lines_are(call: ToolCall, target: Project, path: str, digest: str) -> None:
    """The session was told of symbols where they stand: it may edit the file by those lines."""
    call.services.views.saw(call.session, str(target.root), path, {WHOLE_FILE: digest}, in_full=False)


def saw_uses(call: ToolCall, target: Project, uses: Iterable[ReferenceView]) -> None:
    """The session was shown lines of the symbols that use another one."""
    for use in uses:
        if use.holder is not None and use.holder.hashes:
            call.services.views.saw(call.session, str(target.root), use.path, use.holder.hashes, in_full=False)


def saw_lines(call: ToolCall, target: Project, path: str, read: FileText, first: int, last: int) -> None:
    """The session was shown lines of a file: symbols that lie in them as a whole, others in part."""
    views, session, root = call.services.views, call.session, str(target.root)
    symbols = target.symbols_in(path, read)
    if symbols is None:
        views.forget(session, root, path)
    else:
        for symbol, name_path in ((symbol, symbols.name_path(place)) for place, symbol in enumerate(symbols.symbols)):
            if symbol.start_line <= last and first <= symbol.end_line:
                whole = first <= symbol.start_line and symbol.end_line <= last
                views.saw(session, root, path, {name_path: body_hash(read.text, symbol)}, in_full=whole)
    views.saw(session, root, path, {WHOLE_FILE: read.digest})
