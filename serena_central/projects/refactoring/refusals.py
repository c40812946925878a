"""Why a symbol is not renamed: its new name, what is known of its references, or what its server proposes. Pure."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from serena_central.core.errors import EditRefused, listed
from serena_central.core.text import Position, Range
from serena_central.editing.rename import Rename
from serena_central.lsp.answers import SymbolKind, WorkspaceEdit
from serena_central.projects.editing.edits import Site
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.symbols.index import Hit


def incomplete(hit: Hit, known: Uses) -> str | None:
    """Why the uses are not known completely, or lie where nothing can be changed."""
    if known.note:
        return f"The references to {hit.name_path} may be incomplete: {known.note.rstrip('.')}."
    if known.outside:
        places = "1 place" if known.outside == 1 else f"{known.outside} places"
        return f"{hit.name_path} is referenced in {places} outside this project, such as generated code."
    return None


def unread(hit: Hit, names: Sequence[str]) -> str | None:
    """What speaks against a change where some files and folders can't be read."""
    if not names:
        return None
    return (
        f"{listed(names)}, which the server's user has no permission to read, may refer to {hit.name_path}. Make such "
        "files readable, or ignore them (.gitignore, `ignored_paths`)."
    )


def check_read(hit: Hit, names: Sequence[str]) -> None:
    """Raises EditRefused where files that can't be read may use the symbol."""
    if problem := unread(hit, names):
        raise EditRefused(f"Nothing was changed: {problem} Pass force=true to rename it without them.")


def check_free(hit: Hit, objections: Sequence[str], *, force: bool) -> None:
    """Raises EditRefused for a name that something objects to, unless it is forced."""
    if objections and not force:
        raise EditRefused(
            f"Nothing was changed: {hit.name_path} can't have that name. {' '.join(objections)} Choose another name, "
            "or pass force=true to rename it anyway."
        )


def check_complete(hit: Hit, known: Uses) -> None:
    """Raises EditRefused for uses that are not known completely, or lie where nothing can be changed."""
    problem = incomplete(hit, known)
    if problem:
        raise EditRefused(
            f"Nothing was changed: {problem} find_referencing_symbols lists the places that are known, replace_content "
            "changes them as text."
        )


def check_beside(known: Uses) -> None:
    """Raises EditRefused where files of another server may use the symbol, and that server failed to say."""
    if known.beside_failed:
        raise EditRefused(
            f"Nothing was changed: {(known.beside or '').rstrip('.')}. References in there would keep the old name: "
            "pass force=true to rename without them."
        )


def check_implemented(hit: Hit, others: Collection[Hit]) -> None:
    """Raises EditRefused for a member that others which keep the old name implement, or that implements them."""
    if others:
        named = listed(f"{one.name_path} in {one.path}:{one.symbol.name_line}" for one in others)
        raise EditRefused(
            f"Nothing was changed: {hit.name_path} must have the same name as {named}, which implement it, or which "
            f"it implements. The language server does not rename them with it: pass force=true to rename "
            f"{hit.name_path} without them, and rename each of them, too."
        )


def check_apart(hit: Hit, others: Collection[Hit]) -> None:
    """Raises EditRefused for a method that some class inherits beside others which keep the old name."""
    if others:
        named = listed(f"{one.name_path} in {one.path}:{one.symbol.name_line}" for one in others)
        raise EditRefused(
            f"Nothing was changed: a class inherits {hit.name_path}, or what is renamed with it, beside {named}. Where "
            "one of them implements the other, they must have the same name, and the language server does not rename "
            f"them together: pass force=true to rename {hit.name_path} alone, and rename each that must follow, too."
        )


def check_alone(hit: Hit, others: Sequence[str], places: Sequence[str]) -> None:
    """Raises EditRefused where `places` that get the new name also lead to `others`, which keep the old one."""
    if others:
        raise EditRefused(
            f"Nothing was changed: {listed(dict.fromkeys(places))} may mean {hit.name_path} or {listed(others)}, such "
            "as members of the types of a union, which must have the same name. The language server does not rename "
            f"them together: pass force=true to rename {hit.name_path} alone, and rename each of the others, too."
        )


def not_ours(path: Path) -> EditRefused:
    return EditRefused(
        f"Nothing was changed: the rename would also change {path}, which is ignored or outside this project."
    )


def check_renamable(hit: Hit, proposal: WorkspaceEdit | None, rename: Rename) -> None:
    """Raises EditRefused where a server that renames proposes nothing, and nothing names the symbol but its definition:
    that may be a word of the language (`constructor`), or something whose references the server does not see. And for a
    namespace, of which each file has a part, where the server renames nothing."""
    if proposal is None and hit.symbol.kind == SymbolKind.NAMESPACE:
        raise EditRefused(
            "Nothing was changed: the language server renames no namespaces, and other files may have parts of "
            f"{hit.name_path}. Edit them as text (replace_content)."
        )
    if proposal is not None and not proposal.replacements and rename.added == [(hit.path, name_range(hit))]:
        raise EditRefused(
            f"Nothing was changed: the language server does not rename {hit.name_path} in {hit.path}:"
            f"{hit.symbol.name_line}. It is a word of the language, or the server does not see what refers to it: "
            "find_referencing_symbols lists where its name stands, replace_content changes it as text."
        )


def check_changing(hit: Hit, rename: Rename) -> None:
    """Raises EditRefused where all that names the symbol is said to name others, its definition included."""
    if not rename.places:
        raise EditRefused(
            f"Nothing was changed: the language server does not tell {hit.name_path} in {hit.path}:"
            f"{hit.symbol.name_line} apart from other symbols of its name. find_referencing_symbols lists where its "
            "name stands, replace_content changes it as text."
        )


def check_usable(hit: Hit, proposal: WorkspaceEdit) -> None:
    if proposal.unusable:
        raise EditRefused(
            f"Nothing was changed: to rename {hit.name_path}, the language server would create or delete files, or "
            "change files that can't be read."
        )


def name_range(hit: Hit) -> Range:
    start = hit.symbol.name_position
    return Range(start, Position(start.line0, start.column + len(hit.symbol.name)))


def check_named(site: Site) -> None:
    """Raises EditRefused where the name does not stand where the language server says."""
    name, found = site.hit.symbol.name, site.text.slice(name_range(site.hit))
    if found != name:
        raise EditRefused(
            f"Nothing was changed: the language server reports the name of {site.hit.name_path} in "
            f"{site.hit.path}:{site.hit.symbol.name_line}, where the text is {found!r}. Edit it as text "
            "(replace_content)."
        )


_EXPORTS = re.compile(r"(?<![\w$.])module\s*\.\s*\Z")


def check_own_name(site: Site) -> None:
    """Raises EditRefused for what a module of Node exports as a whole: `module.exports` is Node's name."""
    symbol = site.hit.symbol
    before = site.text.line(symbol.name_line)[: symbol.name_position.column]
    if symbol.name == "exports" and _EXPORTS.search(before):
        raise EditRefused(
            f"Nothing was changed: module.exports in {site.hit.path}:{symbol.name_line} is a name of Node's. What "
            "requires the module calls it as it likes: rename the variable there."
        )
