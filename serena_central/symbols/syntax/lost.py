"""Which definitions are told of a text that can't be parsed whole, though they are parts of a function's body: a parser
that has lost a function takes what stands in it for definitions of the file.

Runs in the worker's process, like `outline`. Only for languages in the way of C, whose functions stand at the margin.
"""

import re

from tree_sitter import Node

LANGUAGES = frozenset({"c", "cpp", "cuda-cpp"})

_BODIES = "compound_statement"
_CONTAINERS = frozenset({"declaration_list", "field_declaration_list", "enumerator_list"})

_PARAMETERS = re.compile(rb"(?:[^;{}()#]*;)*\s*\{")
"""What follows a parameter as K&R declared them: further ones, then the body."""

_PARAMETERS_BYTES = 2_000
"""They take no more: each variable of a long text is looked at."""


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
