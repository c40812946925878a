"""Types that JSDoc comments declare (`@typedef`, `@callback`), which TypeScript's server lists for JavaScript.

Runs in the worker's process, like `outline`.
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

_BRACES = rb"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"

_DECLARED = re.compile(rb"@(?:typedef|callback)\s+(?:%b[\s*]*)?(?P<name>[\w$]+(?:\.[\w$]+)*)" % _BRACES)


def declared_types(comment: Node) -> Iterator[tuple[int, int, int, str]]:
    """Where each declaration in a comment starts and ends and where its name starts, in bytes, and the name. A comment
    belongs to the statement or member behind it; one with nothing behind it in its block declares nothing."""
    text = comment.text or b""
    found = list(_DECLARED.finditer(text)) if text.startswith(b"/**") else []
    if not found or not _leads(comment):
        return
    ends = [*(match.start() for match in found[1:]), text.rfind(b"*/")]
    for match, end in zip(found, ends, strict=True):
        first = comment.start_byte
        last = first + len(text[:end].rstrip(b" \t\r\n*"))
        yield first + match.start(), last, first + match.start("name"), match["name"].decode()


def _leads(comment: Node) -> bool:
    behind = comment.next_named_sibling
    while behind is not None and behind.type == "comment":
        behind = behind.next_named_sibling
    return behind is not None or (comment.parent is not None and comment.parent.type == "program")
