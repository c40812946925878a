"""What a declaration runs where it stands, and what would no longer run without it: a call that gives a variable its
value, a static block of a class, an object of C++ whose constructor may register it.

Runs in the worker's process, like `outline`. Knows trees and bytes only.
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

from serena_central.symbols.syntax.messages import Built

_NOT_RUN = re.compile(
    r"accessor|annotation|arrow|attribute_|class|closure|comment|computed_property|decltype|decorator|func_literal"
    r"|function(?!_call)|[gs]etter|lambda|method_(?:decl|def)|noexcept|requires|sizeof|static_assert"
    r"|type(?!_assertion)"
)
"""Parts of a declaration that are run later, or never."""

_CLASS = re.compile(
    r"(?:abstract_)?class(?:_de(?:claration|finition))?|(?:enum|interface|record)_declaration"
    r"|(?:class|struct|union)_specifier"
)
"""Of these only some parts run with the declaration."""

_OF_JAVA = frozenset({"class_declaration", "enum_declaration", "interface_declaration", "record_declaration"})

_OPENING = re.compile(rb"[(`]")
"""Of arguments."""

_SETTING = frozenset({"assignment", "augmented_assignment"})

MOST_BUILT = 20
"""Objects of a namespace that are named."""

_GROUPS_OF_CPP = frozenset({"declaration_list", "linkage_specification", "namespace_definition", "translation_unit"})
_TYPES_WITH_CONSTRUCTORS = frozenset({"qualified_identifier", "template_type", "type_identifier"})
_NAMES_IN_CPP = frozenset({"field_identifier", "identifier"})
_LAST_NAME = re.compile(rb"(\w+)\s*(?:<.*)?\Z", re.DOTALL)
_NOT_BUILT_AT_START = re.compile(rb"\b(?:constexpr|extern)\b")


def first_call(declaration: Node, source: bytes) -> int | None:
    """Where the arguments of a call begin in it, other than in what is not run there, as an offset in bytes: a bracket,
    or the template behind a tag."""
    pending = [declaration]
    for one in pending:
        found = _call_in(one, source, pending)
        if found is not None:
            return found
    return None


def _call_in(part: Node, source: bytes, pending: list[Node]) -> int | None:
    """The same in one part of a declaration. What runs of the classes in it becomes `pending`."""
    cursor, around = part.walk(), ["", ""]
    opening = part.start_byte  # the next one, or where it is looked for
    while (node := cursor.node) is not None:
        if opening < node.end_byte:
            found = _OPENING.search(source, max(opening, node.start_byte), part.end_byte)
            if found is None:
                return None
            opening = found.start()
        if (node.type == "(" and ("argument" in around[-1] or "call" in around[-2])) or (
            node.type == "template_string" and "call" in around[-1]
        ):
            return node.start_byte
        holds = opening < node.end_byte
        if holds and node.is_named and _CLASS.fullmatch(node.type):
            pending.extend(_run_with_class(node))
        elif holds and not _NOT_RUN.search(node.type) and cursor.goto_first_child():
            around.append(node.type)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return None
            around.pop()
    return None


def _run_with_class(node: Node) -> Iterator[Node]:
    """What of a class runs where it stands: static blocks, values of static fields, and statements in a body of Python.
    Not the calls by which most classes of Python and Java fill their fields (`logger = getLogger()`): what they do is
    mostly for the class alone."""
    body = node.child_by_field_name("body")
    if body is None:
        return
    match body.type:
        case "block":
            yield from _statements_of_python(body)
        case "field_declaration_list":
            yield from (one for part in body.named_children if (one := _static_value_of_cpp(part)) is not None)
        case "class_body" | "enum_body" | "interface_body":
            yield from _run_with_members(node, body)
        case _:
            pass


def _statements_of_python(body: Node) -> Iterator[Node]:
    blocks = [body]
    for block in blocks:
        for one in block.named_children:
            if one.type == "class_definition":
                yield one
            elif one.type == "expression_statement":
                if one.named_children and one.named_children[0].type not in _SETTING:
                    yield one
            elif one.type == "block" or one.type.endswith(("_clause", "_statement")):
                blocks.append(one)


def _static_value_of_cpp(field: Node) -> Node | None:
    is_static = any(one.type == "storage_class_specifier" and one.text == b"static" for one in field.children)
    return field.child_by_field_name("default_value") if is_static else None


def _run_with_members(node: Node, body: Node) -> Iterator[Node]:
    for one in body.named_children:
        match one.type:
            case "class_static_block":
                yield from one.named_children
            case "field_definition" | "public_field_definition" if any(part.type == "static" for part in one.children):
                value = one.child_by_field_name("value")
                if value is not None:
                    yield value
            case "static_initializer":
                yield from one.named_children
            case "enum_body_declarations":
                yield from _run_with_members(node, one)
            case nested if nested in _OF_JAVA:
                yield one
            case _:
                pass


def built_at_start(declaration: Node) -> list[Built]:
    """Types of the objects of C++ that a declaration makes without brackets of arguments: `static Registrar one{1};`,
    and those in a namespace. Constructors may run for them when the program starts."""
    node: Node | None = declaration
    while node is not None and (node.type in _NAMES_IN_CPP or node.type in ("array_declarator", "init_declarator")):
        node = node.parent
    found = list[Built]()
    pending = [node] if node is not None else []
    for one in pending:
        if one.type in _GROUPS_OF_CPP:
            pending.extend(one.named_children)
        elif one.type in ("declaration", "field_declaration") and len(found) < MOST_BUILT:
            found.extend(_built_by(one))
    return list(dict.fromkeys(found))


def _built_by(declaration: Node) -> Iterator[Built]:
    kind = declaration.child_by_field_name("type")
    if kind is None or kind.type not in _TYPES_WITH_CONSTRUCTORS:
        return
    before = (declaration.text or b"")[: kind.start_byte - declaration.start_byte]
    name = _LAST_NAME.search(kind.text or b"")
    is_member = declaration.type == "field_declaration"
    value = declaration.child_by_field_name("default_value")
    if name is None or _NOT_BUILT_AT_START.search(before) or (is_member and (b"static" not in before or value is None)):
        return
    for one in declaration.children_by_field_name("declarator"):
        its = one.child_by_field_name("declarator") if one.type == "init_declarator" else one
        while its is not None and its.type == "array_declarator":
            its = its.child_by_field_name("declarator")
        if its is None or its.type not in _NAMES_IN_CPP:
            continue  # pointers, references and functions
        value = one.child_by_field_name("value") if one.type == "init_declarator" else value
        is_known = (kind.text or b"").startswith((b"std::", b"::std::"))
        yield Built(name[1].decode(), not is_known and value is not None and _is_behind_name(value))


def _is_behind_name(value: Node) -> bool:
    """Whether values stand in braces right behind a name, without `=`, by which plain structures are mostly filled."""
    before = value.prev_sibling
    return bool(value.type == "initializer_list" and value.named_children and before is not None and before.type != "=")
