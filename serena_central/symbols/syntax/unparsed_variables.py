"""Which variables of a text that can't be parsed whole are none, or are called otherwise: a parser that has lost a
function takes what stands in it for definitions of the file, and macros that it does not know for names.

Runs in the worker's process, like `outline`. Only for languages in the way of C, whose functions stand at the margin.
"""

import re

from tree_sitter import Node

LANGUAGES = frozenset({"c", "cpp", "cuda-cpp"})

_BODIES = "compound_statement"
_CONTAINERS = frozenset({"declaration_list", "field_declaration_list", "enumerator_list"})

_DECLARING = frozenset({"function_definition", "declaration"})

_RESERVED = b"__"
"""Names that C leaves to compilers and systems, which call attributes so."""

_PARAMETERS = re.compile(rb"(?:[^;{}()#]*;)*\s*\{")
"""What follows a parameter as K&R declared them: further ones, then the body."""

_PARAMETERS_BYTES = 2_000
"""Maximum length, because each variable of a long text is examined."""


def is_of_lost_body(node: Node, source: bytes) -> bool:
    """Whether a definition in a damaged tree is one in a function's body, or a parameter of the function."""
    outer = node.parent
    while outer is not None:
        if outer.type == _BODIES:
            return True
        if outer.type in _CONTAINERS:
            return False
        outer = outer.parent
    line = source.rfind(b"\n", 0, node.start_byte) + 1
    if source[line : line + 1] in (b" ", b"\t"):
        return True
    return _PARAMETERS.match(source, node.end_byte, node.end_byte + _PARAMETERS_BYTES) is not None


def is_invented(declaration: Node) -> bool:
    """Whether a declaration in a damaged tree is the beginning of the one behind it, as `asmlinkage __visible` is in
    `asmlinkage __visible void f(void) {}`: it has no end, and what follows at once declares something by itself."""
    after = _behind_no_end(declaration)
    return after is not None and after.type in _DECLARING


def variable_name(declaration: Node, name: Node, source: bytes) -> Node:
    """What names a variable in a damaged tree: `x`, in `int __read_mostly x = 1` as in `int x __read_mostly`. The
    parser has taken one for the name, and the other for an error, or for the next statement."""
    if not source.startswith(_RESERVED, name.start_byte):
        return name
    errors = (one for one in (name.prev_sibling, name.next_sibling) if one is not None and one.type == "ERROR")
    for beside in (*errors, _behind_no_end(declaration)):
        other = beside
        while other is not None and other.child_count:
            other = other.children[0]
        if other is not None and other.type == "identifier" and not source.startswith(_RESERVED, other.start_byte):
            return other
    return name


def _behind_no_end(declaration: Node) -> Node | None:
    """What stands behind a declaration that has no end."""
    last = declaration.children[-1] if declaration.children else None
    return declaration.next_sibling if last is not None and last.is_missing else None
