"""Why a symbol may be in use although nothing refers to it: rules by language, read off its text. Pure.

A rule that fits keeps a symbol out of the findings. Better one finding too few: a finding is acted upon.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from serena_central.analysis import cpp_rules, java_rules
from serena_central.analysis.self_registered import hands_itself_on
from serena_central.config.policies import ValidationPolicy
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.common_names import is_common
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import CALLABLE, GROUPS, Symbol

_ENTRY_POINTS: Mapping[str, Collection[str]] = {
    "python": {"main", "setUp", "tearDown", "setUpClass", "tearDownClass", "setup", "teardown"},
    "go": {"main", "init", "TestMain"},
    "rust": {"main"},
    "c": {"main", "WinMain", "DllMain"},
    "cpp": {"main", "WinMain", "DllMain"},
    "java": {"agentmain", "main", "premain"},
    "csharp": {"Main"},
    "typescript": {"main", "constructor"},
    "javascript": {"main", "constructor"},
}

_CALLED_BY_SCRIPT = frozenset({"handleEvent", "next", "return", "throw", "toJSON", "toLocaleString"})
_CALLED_BY_GO = """
    AppendBinary AppendText As Error Format GoString GobDecode GobEncode Is IsBoolFlag IsZero LogValue MarshalBinary
    MarshalJSON MarshalJSONTo MarshalText MarshalTOML MarshalXML MarshalYAML Scan String Temporary Timeout
    UnmarshalBinary UnmarshalJSON UnmarshalJSONFrom UnmarshalText UnmarshalTOML UnmarshalXML UnmarshalYAML Unwrap Value
"""
_CALLED_BY_CPP = """
    allocate allocator_type await_ready await_resume await_suspend back begin cbegin cend char_type const_iterator
    const_reference container_type crbegin crend data deallocate difference_type element_type emplace emplace_back empty
    end final_suspend format front get get_return_object hash_value initial_suspend insert iterator iterator_category
    iterator_concept key_type lock lock_shared mapped_type max min other parse pointer pop_back pop_front promise_type
    push_back push_front rbegin rebind reference rend result_type return_value return_void size size_type swap
    traits_type try_lock try_lock_shared unhandled_exception unlock unlock_shared value_type yield_value
"""
_CALLED_BY_LIBRARIES: Mapping[str, Collection[str]] = {
    "cpp": frozenset(_CALLED_BY_CPP.split()),
    "go": frozenset(_CALLED_BY_GO.split()),
    "java": java_rules.CALLED_BY_NAME,
    "typescript": _CALLED_BY_SCRIPT,
    "javascript": _CALLED_BY_SCRIPT,
}
"""Methods that are looked for in whatever is handed over, besides those that built-in types have; of C++ also types,
and what the language itself looks for (loops over a range, coroutines)."""

_NOT_CALLED: Mapping[str, Collection[int]] = {
    "cpp": frozenset({SymbolKind.FIELD, SymbolKind.PROPERTY, SymbolKind.VARIABLE, SymbolKind.ENUM_MEMBER})
}
"""Kinds of members that libraries do not look for; elsewhere they may hold a function."""

_READ_BY_COMPILER: Mapping[str, Collection[str]] = {"typescript": {"JSX"}}
"""Namespaces in which the compiler itself looks up types and members by their names."""

_GIVING_IN_GO = ("//export ", "//go:linkname ", "//go:wasmexport ")
"""Directives of Go by which code calls what it does not name in Go."""

_STRING = re.compile(r'"[^"]*"')

_BRACKETS = re.compile(r"\([^()]*\)")

_SAYS_HOW = frozenset(
    {"allow", "cfg", "cold", "deny", "deprecated", "derive", "doc", "expect", "forbid", "inline", "must_use"}
    | {"non_exhaustive", "repr", "track_caller", "warn"}
)
"""Names of attributes of Rust that hand what they stand on to nobody."""

_TEST_FILES = ("test_*", "*_test.*", "*.test.*", "*.spec.*", "conftest.py", "tests.py", "*Test.java", "*Tests.cs")
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec"})

_PACKAGE_ENTRIES = frozenset({"index"})
"""Files, without ending, through which a JavaScript package hands its names out."""

_BASES: Mapping[str, str] = {
    "python": r"class\s+\w+\s*(\[.*?\])?\(\s*[^)\s]",
    "typescript": r"\b(extends|implements)\b",
    "javascript": r"\bextends\b",
    "java": r"\b(extends|implements)\b",
    "csharp": r"class\s+\w+[^{]*:",
    "php": r"\b(extends|implements)\b",
    "cpp": r"(?<!enum )(class|struct)\s+\w+[^{;]*:",
    "rust": r"\bimpl\b[^{]*\bfor\b",
}
"""Language → what the head of a type holds when its methods may be called through another."""

OVERRIDING_UNKNOWN = "whether it implements or overrides a member of another type could not be determined"

_EMBEDDED_BEFORE = re.compile(r"(?:^|[{;])\s*+(?:\*\s*+)?(?:\w++\.)?$")
_EMBEDDED_BEHIND = re.compile(r"(?:\[.*\])?\s*(?:[\"`;}]|//|/\*|$)")
"""Around the name of a type that a struct or an interface of Go embeds: no other name, and no type."""

_LEADING = 12
"""Lines above a name in which its decorators stand."""


class KeepReason(NamedTuple):
    """Why a symbol counts as used. `by_name`: by its name, so that a rename would break that use, too. Without
    `is_known` it is only that something could not be found out in time: another question may tell more. `is_listed`: a
    rename names those places by itself."""

    reason: str
    by_name: bool = True
    is_known: bool = True
    is_listed: bool = False


class LanguageFacts(NamedTuple):
    """What rules must know about a symbol's file besides its text. `library`: other programs may use what it exports.
    `in_interface`: an interface of the project has a member of the symbol's name.

    `may_override`: a base of the symbol's type has a member of its name, or is not in this project. Both are None where
    that could not be found out in time.
    """

    name: str
    library: bool
    in_interface: bool | None
    may_override: bool | None = True

    def supposing(self, *, unknown: bool) -> "LanguageFacts":
        """The same, where what is not known is so, or is not."""
        return self._replace(
            in_interface=unknown if self.in_interface is None else self.in_interface,
            may_override=unknown if self.may_override is None else self.may_override,
        )


def kept(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> KeepReason | None:
    """The first rule that says a symbol is in use, or may say so once more is known; None if none does."""
    found = _kept(hit, text, language.supposing(unknown=False), policy)
    if found is None and _kept(hit, text, language.supposing(unknown=True), policy) is not None:
        return KeepReason(OVERRIDING_UNKNOWN, is_known=False)
    return found


def _kept(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> KeepReason | None:
    for rule in (_named_in_settings, _by_name, _unnamed, _in_test, _decorated, _overriding, _exported):
        reason = rule(hit, text, language, policy)
        if reason:
            return KeepReason(reason)
    reason = _used_unnamed(hit, text, language)
    return KeepReason(reason, by_name=False) if reason else None


_WITH_VALUES = frozenset({"csharp", "dart", "groovy", "kotlin", "php", "scala", "swift"})
"""Languages whose enums can be asked for their constants (`cases()`, `from("a")`, `Enum.Parse`), beside Java."""


def _used_unnamed(hit: Hit, text: Text, language: LanguageFacts) -> str | None:
    """What is in use whatever it is called."""
    if hands_itself_on(hit, text, language.name):
        return "it hands itself to a call where it is declared"
    match language.name:
        case "java":
            return java_rules.given_without_name(hit, text)
        case name if name in _WITH_VALUES and hit.symbol.kind == SymbolKind.ENUM_MEMBER:
            return "an enum gives constants that no code names: all of them, or one by its value"
        case "angular" | "astro" | "html" | "svelte" | "vue" if _is_element(hit, text):
            return "an element of a page works where it stands"
        case "go" if _is_embedded_in_go(hit, text):
            return "it is embedded, and its fields and methods are used as those of what holds it"
        case "go" if _tag_of_go(hit, text):
            return "its tag gives it to libraries"
        case "javascript" | "typescript" if _is_expression_of_script(hit, text):
            return "it is an expression, and is used where it stands"
        case _:
            return None


def _is_element(hit: Hit, text: Text) -> bool:
    before = text.line(hit.symbol.name_line)[: hit.symbol.name_position.column]
    return before.endswith("<") or text.line(hit.symbol.start_line).lstrip().startswith(f"<{hit.symbol.name}")


def _is_embedded_in_go(hit: Hit, text: Text) -> bool:
    line, name = text.line(hit.symbol.name_line), hit.symbol.name_position
    before, behind = line[: name.column], line[name.column + len(hit.symbol.name) :]
    return hit.symbol.container >= 0 and bool(_EMBEDDED_BEFORE.search(before) and _EMBEDDED_BEHIND.match(behind))


def _is_expression_of_script(hit: Hit, text: Text) -> bool:
    """Whether a function or class with a name is called, assigned or handed over where it stands."""
    if hit.symbol.kind not in (SymbolKind.FUNCTION, SymbolKind.CLASS):
        return False
    start = text.offset(hit.symbol.range.start)
    if not _FUNCTION_OR_CLASS.match(text.content, start):
        return False
    end = _end_of_code_before(text.content, start)
    goes_on = _GOES_ON if "\n" in text.content[end:start] else _GOES_ON_IN_LINE
    return goes_on.search(text.content[max(end - _BEFORE_EXPRESSION, 0) : end]) is not None


def _end_of_code_before(content: str, end: int) -> int:
    """Where the code of a script before a place ends, other than comments."""
    while True:
        while end > 0 and content[end - 1].isspace():
            end -= 1
        first = max(end - _LONGEST_COMMENT, 0)
        comment = _LINE_COMMENT.search(content, content.rfind("\n", first, end) + 1 or first, end)
        block = content.rfind("/*", 0, end) if content.endswith("*/", 0, end) else -1
        opened = [comment.start()] if comment else []
        if block >= 0 and content.find("*/", block + 2) == end - 2:
            opened.append(block)
        if not opened:
            return end
        end = min(opened)


_FUNCTION_OR_CLASS = re.compile(r"(?:async\s+)?(?:function|class)\b")
_LINE_COMMENT = re.compile(r"(?<![:\w\"'`])//")
_LONGEST_COMMENT = 2000
"""Characters of a line that are looked through for one: minified scripts have lines of megabytes."""
_BEFORE_EXPRESSION = 20
"""Characters before an expression that tell what it belongs to."""

_GOES_ON_IN_LINE = re.compile(
    r"(?:[(\[=,:!?&|+~>-]|(?<![\w$.])(?:await|case|delete|in|new|of|return|throw|typeof|void|yield))\Z"
)
"""What stands before a function or class that is a value, and never before one that is declared in the same line."""

_GOES_ON = re.compile(r"(?:[(\[=,:?&|~]|=>|(?<!\+)\+|(?<!-)-|(?<![\w$.])(?:await|case|delete|in|new|typeof))\Z")
"""The same in a line above, where what may end a statement ends it: `i++`, `Map<Key, Value>`, `found!`, `return`."""


def is_test(path: str) -> bool:
    """Whether a file is there for tests: what they hold is called by their runner."""
    file = PurePosixPath(path)
    return any(fnmatchcase(file.name, pattern) for pattern in _TEST_FILES) or not _TEST_FOLDERS.isdisjoint(
        file.parts[:-1]
    )


def _named_in_settings(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    if any(fnmatchcase(hit.path, glob) for glob in policy.keep_paths):
        return "its file matches validation.keep_paths"
    if any(fnmatchcase(name, glob) for glob in policy.keep_names for name in (hit.name_path, hit.symbol.name)):
        return "it matches validation.keep_names"
    return None


def _by_name(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    name = hit.symbol.name
    if name.startswith("__") and (name.endswith("__") or language.name == "php"):
        return "the language calls it by its name"
    looked_into = _READ_BY_COMPILER.get(language.name, ())
    if looked_into and any(one.kind in GROUPS and one.name in looked_into for one in _outwards(hit)):
        return "the compiler looks it up by its name"
    if hit.symbol.container >= 0 or hit.symbol.kind == SymbolKind.METHOD:
        called = _CALLED_BY_LIBRARIES.get(language.name, ())
        is_called = name in called and hit.symbol.kind not in _NOT_CALLED.get(language.name, ())
        if is_called or name.startswith("["):
            return f"libraries {'call it' if hit.symbol.kind in CALLABLE else 'look it up'} by its name"
        if hit.symbol.kind in CALLABLE and is_common(language.name, name):
            return "built-in types have a member of the same name"
    return "an entry point" if name in _ENTRY_POINTS.get(language.name, ()) else None


def _unnamed(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    """C++ calls most operators, and what makes and ends values, without a name; its library does so in templates, whose
    instances no server lists."""
    if language.name != "cpp":
        return None
    symbol, container = hit.symbol, hit.symbol.container
    holder = hit.file.symbols[container].name if container >= 0 else ""
    if re.match(r"operator\b(?!\s*$)", symbol.name):
        return "operators are called without their name"
    if symbol.kind == SymbolKind.CONSTRUCTOR or symbol.name.startswith("~"):
        return "constructors and destructors are called without their name"
    if any(name.endswith(">") for name in (symbol.name, holder)):
        return "a specialization is chosen by its arguments"
    return None


def _in_test(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    return "its file contains tests" if is_test(hit.path) else None


def _decorated(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    """Decorators and attributes hand what they stand on to somebody; those that only say how to compile don't."""
    if language.name == "java":
        return java_rules.annotated(hit, text)
    lines = [text.line(line0).strip() for line0 in _heading(hit, text)]
    match language.name:
        case "c" | "cpp":
            return cpp_rules.given_by_name(hit, text, lines)
        case "rust":
            lines[-1] = text.line(hit.symbol.name_line)[: hit.symbol.name_position.column]
            decorated = _hands_on("\n".join(line for line in lines if not line.startswith("//")))
            if not decorated and (deriving := _derived_by(hit, text)):
                return f"its type derives {deriving}, which may use its members by their names"
        case "go":
            given = any(line.startswith(_GIVING_IN_GO) for line in lines)
            if not given and (tag := _tag_of_go(hit, text)) and _USES_NAME.search(tag):
                return "its tag gives it to libraries by its name"
            return "a directive gives it to C or to other packages by its name" if given else None
        case "csharp":
            decorated = any(line.startswith("[") for line in lines)
        case _:
            decorated = any(line.startswith(("@", "#[")) for line in lines)
    return "it is decorated" if decorated else None


_TAG_OF_GO = re.compile(r"[^;`\n]*(`[^`\n]*\w:\"[^`\n]*`)")
_USES_NAME = re.compile(r":\"(?:,|\")")
"""A key of a tag without a name of its own: `json:",omitempty"`."""


def _tag_of_go(hit: Hit, text: Text) -> str | None:
    """The tag of a field, by which libraries fill it or write it out (`json:"count"`): of exported ones only."""
    if hit.symbol.kind != SymbolKind.FIELD or not hit.symbol.name[:1].isupper():
        return None
    end = hit.symbol.name_position.column + len(hit.symbol.name)
    found = _TAG_OF_GO.match(text.line(hit.symbol.name_line), end)
    return found[1] if found else None


_DERIVE = re.compile(r"\bderive\s*\(([^()]*)\)")
_DERIVED_ALONE = frozenset(
    {"Clone", "Copy", "Debug", "Default", "Eq", "Error", "Hash", "Ord", "PartialEq", "PartialOrd"}
)
"""Traits of Rust whose derived code does the same whatever members there are."""

_MEMBERS_OF_RUST = frozenset({SymbolKind.FIELD, SymbolKind.ENUM_MEMBER})


def _derived_by(hit: Hit, text: Text) -> str | None:
    """A trait that code of others derives for the type of a field or variant: `Serialize`."""
    place, symbols = hit.place, hit.file.symbols
    if symbols[place].kind not in _MEMBERS_OF_RUST:
        return None
    while place >= 0 and symbols[place].kind in _MEMBERS_OF_RUST:
        place = symbols[place].container
    if place < 0:
        return None
    lines = (text.line(line0).strip() for line0 in _heading(Hit(hit.path, hit.file, place), text))
    given = _DERIVE.findall("\n".join(line for line in lines if not line.startswith("//")))
    names = [name.rpartition("::")[2].strip() for one in given for name in one.split(",")]
    return next((name for name in names if name and name not in _DERIVED_ALONE), None)


def _hands_on(heading: str) -> bool:
    """Whether an attribute of Rust does more than say how to compile what follows, if only under a condition."""
    return any(
        re.findall(r"\w*", given.strip())[0] not in _SAYS_HOW
        for attribute in _STRING.sub("", heading).split("#[")[1:]
        for given in _attributes_in(attribute.lstrip())
    )


def _attributes_in(attribute: str) -> list[str]:
    """One attribute, or those that it gives under a condition."""
    conditional = re.match(r"cfg_attr\s*\(", attribute)
    if conditional is None:
        return [attribute]
    flat, before = attribute[conditional.end() :], ""
    while flat != before:
        flat, before = _BRACKETS.sub("", flat), flat
    _condition, *given = flat.partition(")")[0].rstrip(", \n").split(",")
    return given


def _heading(hit: Hit, text: Text) -> list[int]:
    """Lines that belong to a symbol and stand before its name, and that of its name."""
    name_line = hit.symbol.name_line
    lines: list[int] = []
    for line0 in range(name_line - 1, max(name_line - _LEADING, 0) - 1, -1):
        line = text.line(line0).strip()
        if line0 < hit.symbol.start_line and not line.startswith(("@", "#[", "///", "//", "/*", "*")):
            break
        lines.append(line0)
    return [*reversed(lines), name_line]


def _overriding(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    may_be_inherited = _may_be_inherited(hit, text, language)
    if language.in_interface and may_be_inherited and hit.symbol.kind in (SymbolKind.METHOD, SymbolKind.FUNCTION):
        return "an interface has a member of the same name"
    if language.name == "java" and java_rules.overrides(hit, text):
        return "it overrides a method"
    container = hit.symbol.container
    if container < 0 or language.name not in _BASES or not language.may_override:
        return None
    holder = hit.file.symbols[container]
    if holder.kind == SymbolKind.INTERFACE:
        return "a part of an interface"
    if not may_be_inherited:
        return None
    # Of Java, the range begins with the doc comment, in which a brace may stand.
    first0 = holder.name_line if language.name == "java" else holder.start_line
    head = " ".join(text.line(line0) for line0 in range(first0, min(holder.name_line + 3, holder.end_line + 1)))
    return "it may be an override" if re.search(_BASES[language.name], head.partition("{")[0]) else None


def _may_be_inherited(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    match language.name:
        case "java":
            return java_rules.may_override(hit, text)
        case "php":
            before = text.line(hit.symbol.name_line)[: hit.symbol.name_position.column]
            return hit.symbol.kind in CALLABLE and re.search(r"\bprivate\b", before) is None
        case _:
            return True


def _exported(hit: Hit, text: Text, language: LanguageFacts, policy: ValidationPolicy) -> str | None:
    if policy.exported == "report":
        return None
    rule = _EXPORTED.get(language.name)
    return "it is exported" if rule is not None and rule(hit, text, language) else None


def _exported_by_python(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    quoted = re.compile(rf"""(['"]){re.escape(hit.symbol.name)}\1""")
    return any(quoted.search(text.content, *span) for span in _listed_in_all(text.content))


_ALL = re.compile(r"^[^\S\n]*__all__\s*(?::[^=\n]*)?(?:\+?=|\.(?:append|extend|insert)\b)", re.MULTILINE)
_BRACKET_OR_LINE = re.compile(r"#[^\n]*|\\\r?\n|[()\[\]{}\n]")
"""Also comments, whose brackets are none, and line ends that don't end a statement."""


def _listed_in_all(content: str) -> Iterator[tuple[int, int]]:
    """Where statements stand that give a module's `__all__` names: each as far as its brackets and lines go."""
    end = 0
    while statement := _ALL.search(content, end):
        depth, end = 0, len(content)
        for mark in _BRACKET_OR_LINE.finditer(content, statement.end()):
            depth += (mark[0] in "([{") - (mark[0] in ")]}")
            if mark[0] == "\n" and depth <= 0:
                end = mark.start()
                break
        yield statement.end(), end


def _exported_by_script(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    top = hit.file.symbols[outermost(hit)]
    if PurePosixPath(hit.path).name.partition(".")[0] not in _PACKAGE_ENTRIES and not language.library:
        return False
    return text.line(top.name_line).lstrip().startswith("export")


def _exported_by_go(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    private = "internal" in PurePosixPath(hit.path).parts[:-1]
    main = re.search(r"^package\s+main\b", text.content, re.MULTILINE) is not None
    return hit.symbol.name[:1].isupper() and not private and not main


def _exported_by_rust(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    symbol = hit.symbol
    while symbol.container >= 0 and hit.file.symbols[symbol.container].kind in _AS_PUBLIC_AS_WHOLE:
        symbol = hit.file.symbols[symbol.container]
    return language.library and re.match(r"\s*pub\s+(?!\()", text.line(symbol.name_line)) is not None


_AS_PUBLIC_AS_WHOLE = (SymbolKind.ENUM, SymbolKind.ENUM_MEMBER, SymbolKind.INTERFACE)
"""In Rust, variants, their fields and members of traits have no visibility of their own."""


def _exported_by_modifier(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    return re.search(r"\b(public|protected)\b", text.line(hit.symbol.name_line)) is not None


def _exported_by_java(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    return java_rules.is_exported(hit, text)


def _exported_by_header(hit: Hit, text: Text, language: LanguageFacts) -> bool:
    return PurePosixPath(hit.path).suffix in (".h", ".hh", ".hpp", ".hxx")


_EXPORTED = {
    "python": _exported_by_python,
    "typescript": _exported_by_script,
    "javascript": _exported_by_script,
    "go": _exported_by_go,
    "rust": _exported_by_rust,
    "java": _exported_by_java,
    "csharp": _exported_by_modifier,
    "c": _exported_by_header,
    "cpp": _exported_by_header,
}


def outermost(hit: Hit) -> int:
    """The place of the symbol at the top of the file that holds a symbol, or is it."""
    place = hit.place
    while hit.file.symbols[place].container >= 0:
        place = hit.file.symbols[place].container
    return place


def _outwards(hit: Hit) -> Iterator[Symbol]:
    """A symbol and what holds it, up to the top of its file."""
    place = hit.place
    while place >= 0:
        yield hit.file.symbols[place]
        place = hit.file.symbols[place].container
