"""Finds a name in a text, and whether each occurrence is in code, a string or a comment, by the grammar.

Runs in the worker's process, like `outline`. Knows no files and no language servers.
"""

from itertools import islice

from tree_sitter import Node

from serena_central.core.text import Position, Range, Text, whole_word
from serena_central.symbols.name_case import may_ignore_case
from serena_central.symbols.syntax.messages import Decorator, Function, Kind, Occurrence, Shorthand
from serena_central.symbols.syntax.trees import tree_of

MOST = 5_000
"""Maximum of occurrences returned for one text: data that repeats one word is cut."""

MOST_DECORATORS, MOST_ARGUMENTS = 8, 30
"""Of a function that are told with every parameter, and of each that are looked at: some hold thousands of cases."""

NAME_CHARS = 100
"""Of the names that are told as often."""

CLASS_LEVELS = 20
"""How far above a function classes are looked for; further up there may be any."""

LEVELS = 6
"""How far above a word its string or comment is looked for: they hold at most an escape or a fragment in between."""

_STRINGS = ("string", "char_literal", "heredoc", "jsx_text", "raw_text")
_CODE_IN_STRINGS = ("interpolation", "substitution", "expansion")
_NAMES = ("identifier", "name", "constant")

_PATTERNS = ("shorthand_property_identifier_pattern", "shorthand_field_identifier")
_WHOLE_PATTERN = "field_pattern"
_FUNCTIONS = ("function_definition", "lambda")
_PLAIN_STRING = ["string_start", "string_content", "string_end"]
_MACRO_TOKENS = "token_tree"
_MODIFIERS = (b"ref", b"mut")
_BEFORE_BLOCKS = (b"if", b"while", b"match", b"in")
_SIGNATURES = ("property_signature", "method_signature")
_TYPE_BODIES = ("interface_body", "object_type")
_TAGS = ("jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element")
_INITIALIZERS = ("shorthand_property_identifier", "shorthand_field_initializer")


def occurrences(identifier: str, source: bytes, name: str) -> list[Occurrence]:
    """The places of `name` as a whole word in a text (valid UTF-8), in its order, at most `MOST`; in any case where
    names of the language may have any."""
    root = tree_of(identifier, source).root_node
    text = Text(source.decode())
    found: list[Occurrence] = []
    byte = before = 0
    for match in whole_word(name, ignore_case=may_ignore_case(identifier)).finditer(text.content):
        byte += len(text.content[before : match.start()].encode())
        before = match.start()
        node = root.descendant_for_byte_range(byte, byte + len(match[0].encode()))
        span = Range(text.position(match.start()), text.position(match.end()))
        function = _function(node) if identifier == "python" else None
        short = _shorthand(node, span.start, source)
        found.append(Occurrence(span, _kind_of(node), short, function, _demands(node), _is_tag(node)))
        if len(found) == MOST:
            break
    return found


def _kind_of(node: Node | None) -> Kind:
    """Of the smallest node around a word. What the grammar has no word for (errors, macros) is code."""
    if node is not None and node.type.endswith(_NAMES):
        return "code"
    for _ in range(LEVELS):
        if node is None:
            return "code"
        if "comment" in node.type:
            return "comment"
        if any(part in node.type for part in _CODE_IN_STRINGS):
            return "code"
        if any(part in node.type for part in _STRINGS) or node.type == "text":
            return "string"
        node = node.parent
    return "code"


def _shorthand(node: Node | None, start: Position, source: bytes) -> Shorthand | None:
    """What a word is, if it stands for a field and a value at once. `node` is the smallest one around it."""
    if node is None or node.parent is None:
        return None
    if node.type in _PATTERNS:
        first = node.parent if node.parent.type == _WHOLE_PATTERN else node
        return Shorthand(_before(first, node, start, source), binds=True)
    if node.parent.type == _MACRO_TOKENS and (tokens := _field_tokens(node)):
        return Shorthand(_before(tokens[0], node, start, source), binds=None)
    if node.type in _INITIALIZERS or node.parent.type in _INITIALIZERS:
        return Shorthand(start, binds=False)
    return None


def _demands(node: Node | None) -> bool:
    """Whether a word names a member of an interface or a type literal of TypeScript."""
    signature = node.parent if node is not None else None
    if node is None or signature is None or signature.type not in _SIGNATURES or signature.parent is None:
        return False
    return signature.parent.type in _TYPE_BODIES and signature.child_by_field_name("name") == node


def _is_tag(node: Node | None) -> bool:
    element = node.parent if node is not None else None
    return element is not None and element.type in _TAGS and element.child_by_field_name("name") == node


def _function(node: Node | None) -> Function | None:
    """The function of Python that a word names, or takes as a parameter. `node` is the smallest one around it."""
    if node is None or node.type != "identifier" or node.parent is None:
        return None
    holder = node.parent.parent if node.parent.type == "typed_parameter" else node.parent
    has_parameter = holder is not None and holder.type == "parameters"
    function = holder.parent if holder is not None and has_parameter else holder
    if function is None or function.type != "function_definition":
        return None
    name = function.child_by_field_name("name")
    if name is None or not (has_parameter or name == node):
        return None
    around = function.parent
    parts = around.children if around is not None and around.type == "decorated_definition" else []
    decorators = islice((_decorator(part) for part in parts if part.type == "decorator"), MOST_DECORATORS)
    return Function(_text(name)[:NAME_CHARS], list(decorators), has_parameter, _classes_around(function))


def _decorator(node: Node) -> Decorator:
    if not node.named_child_count:
        return Decorator("")
    made = node.named_child(0)
    if made.type != "call":
        return Decorator(_text(made)[:NAME_CHARS])
    called, arguments = made.child_by_field_name("function"), made.child_by_field_name("arguments")
    return Decorator(
        _text(called)[:NAME_CHARS] if called is not None else "",
        _name_given(arguments) if arguments is not None else None,
    )


def _name_given(arguments: Node) -> str | None:
    for one in map(arguments.named_child, range(min(arguments.named_child_count, MOST_ARGUMENTS))):
        if one.type != "keyword_argument":
            continue
        key, value = one.child_by_field_name("name"), one.child_by_field_name("value")
        if key is not None and key.text == b"name" and value is not None:
            is_plain = value.type == "string" and [part.type for part in value.children[:4]] == _PLAIN_STRING
            return _text(value.children[1])[:NAME_CHARS] if is_plain else ""
    return None


def _classes_around(function: Node) -> list[str] | None:
    """The classes of Python around a function, the innermost first; None if it is in another function."""
    classes: list[str] = []
    around = function.parent
    for _ in range(CLASS_LEVELS):
        if around is None:
            return classes
        if around.type in _FUNCTIONS:
            return None
        if around.type == "class_definition" and (name := around.child_by_field_name("name")) is not None:
            classes.append(_text(name)[:NAME_CHARS])
        around = around.parent
    return [*classes, "…"]


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _field_tokens(node: Node) -> list[Node]:
    """A word among the tokens of a Rust macro, with its modifiers, if it is all that stands for a field of a structure
    (`Name { word, .. }`); nothing else."""
    group = node.parent
    tokens = group.children if group is not None else []
    first = last = tokens.index(node)
    while first > 0 and tokens[first - 1].text in _MODIFIERS:
        first -= 1
    is_between = (
        first > 0 and tokens[first - 1].type in "{," and last + 1 < len(tokens) and tokens[last + 1].type in ",}"
    )
    return tokens[first : last + 1] if is_between and tokens[0].type == "{" and _is_structure(group) else []


def _is_structure(group: Node | None) -> bool:
    """Whether tokens in braces follow the name of a type, and are not the block of an `if` that ends with one."""
    token = group.prev_sibling if group is not None else None
    if token is None or not (token.type == ">" or (token.text or b"")[:1].isupper()):
        return False
    while token is not None and token.type not in (",", ";", "(", "{", "["):
        if token.text in _BEFORE_BLOCKS:
            return False
        if token.text == b"let":
            return True
        token = token.prev_sibling
    return True


def _before(first: Node, node: Node, start: Position, source: bytes) -> Position:
    """Where `first` begins, if that is in the line of `node`, which begins at `start`."""
    modifiers = source[first.start_byte : node.start_byte].decode()
    return Position(start.line0, start.column - len(modifiers)) if "\n" not in modifiers else start
