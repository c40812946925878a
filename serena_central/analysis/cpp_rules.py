"""What is in use in C and C++ although no code names it, read off the text: what loaders, debuggers, hardware and other
languages call by its name, and what frameworks find by their macros. Pure.
"""

import re

from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import CALLABLE

_ATTRIBUTES = "alias|constructor|destructor|ifunc|interrupt|section|signal|used|visibility|weak"
_REGISTERING = re.compile(
    rf"__attribute__\s*\(\(.{{0,300}}?\b_*({_ATTRIBUTES})_*\b|\[\[\s*gnu\s*::\s*({_ATTRIBUTES})\b|__declspec\s*\(\s*dllexport\b"
    r"|\bQ_(?:INVOKABLE|SCRIPTABLE|SIGNAL|SLOT)\b"
)
"""Attributes by which something that nobody names is called or found, and macros of Qt that do the same."""

_ABOVE = re.compile(r"\s*U(?:CLASS|ENUM|FUNCTION|INTERFACE|PROPERTY|STRUCT)\(")
"""Macros of Unreal Engine, which stand in a line of their own."""

_CALLED_BY_LOADERS = re.compile(
    r"DllCanUnloadNow|DllGetClassObject|Dll(?:Unr|R)egisterServer|DriverEntry|JNI_On(?:Unl|L)oad(?:_\w+)?|Java_\w+"
    r"|LLVMFuzzer\w+|PyInit_\w+|R_init_\w+|ServiceMain|_start|android_main|luaopen_\w+"
    r"|napi_register_module\w*|w(?:main|WinMain)"
)
"""Functions that systems and interpreters look for when they load a library or start a program."""

_SLOT_OF_QT = re.compile(r"on_\w+_\w+")

_EXTERN_C = re.compile(r'\bextern\s*"C"')
_EXTERN_C_BLOCK = re.compile(r'\bextern\s*"C"\s*\{')
_STATIC = re.compile(r"\b(?:static|inline)\b")
FAR = 100_000
"""Characters before a function in which a block of `extern "C"` may begin."""


def given_by_name(hit: Hit, text: Text, lines: list[str]) -> str | None:
    """Why somebody else may find a symbol, as a clause. `lines` are those of its heading, that of its name the last."""
    above = text.line(hit.symbol.start_line - 1) if hit.symbol.start_line else ""
    if any(map(_REGISTERING.search, lines)) or _ABOVE.match(above):
        return "it is decorated"
    if hit.symbol.kind not in CALLABLE:
        return None
    if hit.symbol.container >= 0 and _SLOT_OF_QT.fullmatch(hit.symbol.name) and _has_meta_object(hit, text):
        return "Qt connects it by its name"
    if hit.symbol.kind != SymbolKind.FUNCTION or _STATIC.search(lines[-1]):
        return None
    if _CALLED_BY_LOADERS.fullmatch(hit.symbol.name):
        return "an entry point"
    return 'it is linked by its name (extern "C")' if _has_linkage_of_c(hit, text) else None


def _has_meta_object(hit: Hit, text: Text) -> bool:
    return "Q_OBJECT" in text.slice(hit.file.symbols[hit.symbol.container].range)


def _has_linkage_of_c(hit: Hit, text: Text) -> bool:
    """Whether a function is defined so for other languages, or for what loads it."""
    if not text.slice(hit.symbol.range).rstrip().endswith("}"):
        return False
    end = text.offset(hit.symbol.range.start)
    if _EXTERN_C.search(text.line(hit.symbol.start_line)[: hit.symbol.name_position.column]):
        return True
    blocks = list(_EXTERN_C_BLOCK.finditer(text.content, max(end - FAR, 0), end))
    if not blocks:
        return False
    within = text.content[blocks[-1].end() - 1 : end]
    return within.count("{") > within.count("}")
