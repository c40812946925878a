"""Words that can't name a symbol, by LSP language identifier. Words with a meaning in some places only (`match` in
Python, `type` in TypeScript, `async` in C#) are names, too, and not listed."""

import keyword
from collections.abc import Mapping

_SCRIPT = """
    await break case catch class const continue debugger default delete do else enum export extends false finally for
    function if import in instanceof new null return super switch this throw true try typeof var void while with
    implements interface let package private protected public static yield
"""
_C = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_CPP = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_CSHARP = """
    abstract as base bool break byte case catch char checked class const continue decimal default delegate do double
    else enum event explicit extern false finally fixed float for foreach goto if implicit in int interface internal is
    lock long namespace new null object operator out override params private protected public readonly ref return sbyte
    sealed short sizeof stackalloc static string struct switch this throw true try typeof uint ulong unchecked unsafe
    ushort using virtual void volatile while
"""
_GO = """
    break case chan const continue default defer else fallthrough for func go goto if import interface map package range
    return select struct switch type var
"""
_JAVA = """
    abstract assert boolean break byte case catch char class const continue default do double else enum extends false
    final finally float for goto if implements import instanceof int interface long native new null package private
    protected public return short static strictfp super switch synchronized this throw throws transient true try void
    volatile while _
"""
_KOTLIN = """
    as break class continue do else false for fun if in interface is null object package return super this throw true
    try typealias typeof val var when while
"""
_LUA = """
    and break do else elseif end false for function goto if in local nil not or repeat return then true until while
"""
_PHP = """
    abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty
    enddeclare endfor endforeach endif endswitch endwhile exit extends final finally fn for foreach function global goto
    if implements include include_once instanceof insteadof interface isset list match namespace new or print private
    protected public readonly require require_once return static switch throw trait try unset use var while xor yield
"""
_RUBY = """
    alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue
    retry return self super then true undef unless until when while yield
"""
_RUST = """
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl
    in let loop macro match mod move mut override priv pub ref return self Self static struct super trait true try type
    typeof unsafe unsized use virtual where while yield _
"""
_SHELL = "case coproc do done elif else esac fi for function if in select then time until while"

_SCRIPT_WORDS, _CPP_WORDS = frozenset(_SCRIPT.split()), frozenset(_CPP.split())

KEYWORDS: Mapping[str, frozenset[str]] = {
    "c": frozenset(_C.split()),
    "cpp": _CPP_WORDS,
    "csharp": frozenset(_CSHARP.split()),
    "cuda-cpp": _CPP_WORDS,
    "go": frozenset(_GO.split()),
    "java": frozenset(_JAVA.split()),
    "javascript": _SCRIPT_WORDS,
    "javascriptreact": _SCRIPT_WORDS,
    "kotlin": frozenset(_KOTLIN.split()),
    "lua": frozenset(_LUA.split()),
    "php": frozenset(_PHP.split()),
    "python": frozenset(keyword.kwlist),
    "ruby": frozenset(_RUBY.split()),
    "rust": frozenset(_RUST.split()),
    "bash": frozenset(_SHELL.split()),
    "shellscript": frozenset(_SHELL.split()),
    "typescript": _SCRIPT_WORDS,
    "typescriptreact": _SCRIPT_WORDS,
}
"""LSP language identifier → its keywords."""

_FREE_MEMBERS = frozenset({"javascript", "javascriptreact", "php", "ruby", "typescript", "typescriptreact"})
"""Languages in which a member may have a keyword's name, as in `map.delete()`."""


_NO_TYPES: Mapping[str, frozenset[str]] = {"java": frozenset({"permits", "record", "sealed", "var", "yield"})}
"""Words that may be names, but not of types."""


def is_keyword(identifier: str, name: str, *, member: bool, of_type: bool = False) -> bool:
    """Whether a name is a keyword of a language, and so no name; `member`: of what a type has, `of_type`: of a type."""
    if of_type and name in _NO_TYPES.get(identifier, ()):
        return True
    return name in KEYWORDS.get(identifier, ()) and not (member and identifier in _FREE_MEMBERS)
