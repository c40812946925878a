"""The table of tree-sitter grammars by language: one line each, and a query beside it. A query marks definitions by the
capture that names their kind (`@class`, `@function`, … see `outline.KINDS`) and by `@name`; `@scope` marks what hides
local variables without being a symbol, `@hidden` what hides all in it, and `@leading` what belongs to the definition
behind it, as decorators do; `@documented` a comment that may declare types. A name may be composed: it begins at
`@from`, without what `@without` marks, or its `@receiver` contains it. What has no name gets one by `(#set! name "…")`;
by `(#set! level "1")` a heading becomes its section, by `(#set! static "yes")` a function in a type is no method, by
`(#set! outside "yes")` it belongs to what holds the function in which it stands, and by `(#set! once "yes")` only the
first of its name in a container counts. Where two patterns meet one name, the first one in the file counts.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

QUERIES = Path(__file__).with_name("queries")

REVISION = 9
"""Raised when queries or their reading change, so that cached symbols of the one before are not believed."""


class Grammar(msgspec.Struct, frozen=True):
    """A grammar's package, the function in it that gives the language, and the query's name in `queries/`."""

    title: str
    package: str
    query: str
    function: str = "language"


_JAVASCRIPT = Grammar("JavaScript", "tree_sitter_javascript", "javascript")
_CPP = Grammar("C++", "tree_sitter_cpp", "cpp")

GRAMMARS = {
    "bash": Grammar("Bash", "tree_sitter_bash", "bash"),
    "c": Grammar("C", "tree_sitter_c", "c"),
    "cpp": _CPP,
    "csharp": Grammar("C#", "tree_sitter_c_sharp", "csharp"),
    "cuda-cpp": _CPP,
    "go": Grammar("Go", "tree_sitter_go", "go"),
    "java": Grammar("Java", "tree_sitter_java", "java"),
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "lua": Grammar("Lua", "tree_sitter_lua", "lua"),
    "markdown": Grammar("Markdown", "tree_sitter_markdown", "markdown"),
    "php": Grammar("PHP", "tree_sitter_php", "php", "language_php"),
    "python": Grammar("Python", "tree_sitter_python", "python"),
    "ruby": Grammar("Ruby", "tree_sitter_ruby", "ruby"),
    "rust": Grammar("Rust", "tree_sitter_rust", "rust"),
    "shellscript": Grammar("Bash", "tree_sitter_bash", "bash"),
    "toml": Grammar("TOML", "tree_sitter_toml", "toml"),
    "typescript": Grammar("TypeScript", "tree_sitter_typescript", "typescript", "language_typescript"),
    "typescriptreact": Grammar("TypeScript", "tree_sitter_typescript", "typescript", "language_tsx"),
}
"""LSP language identifier → grammar. Ruby, Bash and Lua come with the extra `grammars`, the others always."""

SHORTHANDS = frozenset({"javascript", "javascriptreact", "rust", "typescript", "typescriptreact"})
"""Languages in which one word may stand for a field and a value at once: texts of others need not be parsed for it."""


@cache
def grammar_of(identifier: str) -> Grammar | None:
    """The grammar for files of an LSP language identifier, if its package is installed. Imports nothing."""
    grammar = GRAMMARS.get(identifier)
    return grammar if grammar is not None and find_spec(grammar.package) is not None else None
