"""Whether a declaration calls something where it stands, such as what gives a variable its value.

Runs in the worker's process, like `outline`. Knows trees and bytes only.
"""

import re

from tree_sitter import Node

_NOT_RUN = re.compile(
    r"accessor|annotation|arrow|attribute_|class|closure|comment|computed_property|decorator|func_literal"
    r"|function(?!_call)|[gs]etter|lambda|method_(?:decl|def)|type(?!_assertion)"
)
"""Parts of a declaration that are run later, or never."""


def calls_something(declaration: Node, source: bytes) -> bool:
    """Whether brackets of arguments stand in it, other than in what is not run there."""
    cursor, around = declaration.walk(), ["", ""]
    bracket = declaration.start_byte  # the next one, or where it is looked for
    while (node := cursor.node) is not None:
        if bracket < node.end_byte:
            bracket = source.find(b"(", max(bracket, node.start_byte), declaration.end_byte)
            if bracket < 0:
                return False
        if node.type == "(" and ("argument" in around[-1] or "call" in around[-2]):
            return True
        if bracket < node.end_byte and not _NOT_RUN.search(node.type) and cursor.goto_first_child():
            around.append(node.type)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            around.pop()
    return False
