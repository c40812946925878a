"""Components of Java's records and the methods that have their names: accessors, and what these implement.

jdtls renames a component without them, and them without a component.
"""

from collections.abc import Iterable

from serena_central.core.text import Position
from serena_central.editing.rename import Rename
from serena_central.files.text import FileText
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.navigation import Navigation
from serena_central.symbols.index import Hit
from serena_central.symbols.java_declarations import is_component, takes_nothing


async def of_same_accessor(navigation: Navigation, hit: Hit, rename: Rename) -> list[Hit]:
    """Methods that a component's accessor is or implements, or components whose accessor a method is or is implemented
    by, and which keep the old name."""
    if navigation.questions.identifier(hit.path) != "java" or hit.symbol.kind not in (
        SymbolKind.FIELD,
        SymbolKind.METHOD,
    ):
        return []
    beside = [Hit(hit.path, hit.file, place) for place in hit.file.others(hit.place)]
    namesakes = [*beside, *(await navigation.possible.kin_called(hit, hit.symbol.name) or ())]
    texts = await navigation.places.readings({one.path for one in (hit, *namesakes)})
    edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
    return [one for one in namesakes if _place(one) not in edited and _are_accessor(texts, (hit, one))]


def _are_accessor(texts: dict[str, FileText], both: Iterable[Hit]) -> bool:
    """Whether one of two symbols is a component and the other a method without parameters."""
    component, method = sorted(both, key=lambda one: one.symbol.kind == SymbolKind.METHOD)
    if component.path not in texts or method.path not in texts or method.symbol.kind != SymbolKind.METHOD:
        return False
    return is_component(component, texts[component.path].text) and takes_nothing(method, texts[method.path].text)


def _place(hit: Hit) -> tuple[str, Position]:
    return hit.path, hit.symbol.name_position
