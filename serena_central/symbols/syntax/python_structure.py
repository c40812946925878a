"""What a text of Python tries, imports and declares, whatever version of Python it is written for: the interpreter's
own `ast` refuses what is newer than itself.

Runs in the worker's process, like `outline`.
"""

from collections.abc import Iterator
from functools import cache

from tree_sitter import Node, Query, QueryCursor

from serena_central.symbols.syntax.messages import Imported, PythonStructure, Tried
from serena_central.symbols.syntax.trees import errors_in, parsed, tools

LANGUAGE = "python"

_QUERY = """
(try_statement) @try
[(import_statement) (import_from_statement) (future_import_statement)] @import
(class_definition name: (_) @name) @class
(function_definition name: (_) @name)
(assignment left: (_) @target)
(augmented_assignment left: (_) @target)
(for_statement left: (_) @target)
(for_in_clause left: (_) @target)
(named_expression name: (_) @target)
(as_pattern_target (_) @target)
(type_alias_statement left: (type [(identifier) @name (generic_type . (identifier) @name) (attribute) @target]))
[(print_statement) (exec_statement) "<>"] @python2
"""

_BODIES = frozenset({"block", "comment"})


def structure(source: bytes) -> PythonStructure:
    """Of a text (valid UTF-8)."""
    root = parsed(LANGUAGE, source).root_node
    found = QueryCursor(_query()).captures(root)
    imports = [(one, list(_imported(one))) for one in found.get("import", ())]
    names = [(node.start_byte, _text(node)) for node in found.get("name", ())]
    names += [(one.start_byte, _text(one)) for node in found.get("target", ()) for one in _bound(node)]
    names += [(node.start_byte, name) for node, some in imports for _, bound in some for name in bound]
    return PythonStructure(
        [tried for node in found.get("try", ()) if (tried := _tried(node)) is not None],
        [one for _, some in imports for one, _ in some],
        _placed(names, found.get("class", [])),
        bool("python2" in found or errors_in(root)),
    )


@cache
def _query() -> Query:
    parser, _ = tools(LANGUAGE)
    assert parser.language is not None
    return Query(parser.language, _QUERY)


def _tried(node: Node) -> Tried | None:
    body = node.child_by_field_name("body")
    handlers = [child for child in node.children if child.type.startswith("except")]
    if body is None or not handlers:
        return None
    handled: list[str] | None = []
    for handler in handlers:
        names = _expected(handler)
        handled = None if handled is None or not names else [*handled, *names]
    return Tried(body.start_point.row, body.end_point.row, handled)


def _expected(handler: Node) -> list[str]:
    """The names before the body of an `except`; none of one that expects everything."""
    names: list[str] = []
    waiting = [child for child in handler.children if child.type not in _BODIES]
    while waiting:
        node = waiting.pop()
        if node.type == "identifier":
            names.append(_text(node))
        waiting += node.children
    return names


def _imported(statement: Node) -> Iterator[tuple[Imported, list[str]]]:
    """What a statement imports, each with the names that it binds."""
    first, last = statement.start_point.row, statement.end_point.row
    some = [_names(node) for node in statement.children_by_field_name("name")]
    if statement.type == "import_statement":
        for name, bound in some:
            yield Imported(first, last, 0, name, []), [bound]
        return
    if any(child.type == "wildcard_import" for child in statement.children):
        some = [("*", "*")]
    module = statement.child_by_field_name("module_name")
    written = "__future__" if module is None else "".join(_text(module).split())
    plain = written.lstrip(".")
    yield (
        Imported(first, last, len(written) - len(plain), plain, [name for name, _ in some]),
        [bound for _, bound in some],
    )


def _names(node: Node) -> tuple[str, str]:
    """What is imported, and what that is called here."""
    alias = node.child_by_field_name("alias")
    name = "".join(_text(node.child_by_field_name("name") or node).split())
    return name, name.rpartition(".")[2] if alias is None else _text(alias)


def _bound(target: Node) -> Iterator[Node]:
    """The names that an assignment to it sets, of objects as well."""
    waiting = [target]
    while waiting:
        node = waiting.pop()
        if node.type == "identifier":
            yield node
        elif node.type == "attribute":
            waiting += node.children_by_field_name("attribute")
        elif node.type not in ("subscript", "call"):
            waiting += node.children


def _placed(names: list[tuple[int, str]], classes: list[Node]) -> list[tuple[str, str]]:
    """Names by where they stand in a text, with the classes around each: `Outer/Inner`."""
    begins = sorted((node.start_byte, node.end_byte, node.child_by_field_name("name")) for node in classes)
    placed: set[tuple[str, str]] = set()
    around: list[tuple[int, str]] = []
    number = 0
    for at, name in sorted(names):
        while number < len(begins) and (own := begins[number][2]) is not None and own.start_byte < at:
            start, end, _ = begins[number]
            _leave(around, start)
            around.append((end, f"{around[-1][1]}/{_text(own)}" if around else _text(own)))
            number += 1
        _leave(around, at)
        placed.add((around[-1][1] if around else "", name))
    return sorted(placed)


def _leave(around: list[tuple[int, str]], at: int) -> None:
    while around and around[-1][0] <= at:
        around.pop()


def _text(node: Node) -> str:
    return (node.text or b"").decode()
