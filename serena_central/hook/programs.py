"""Programs that search, and what their words say. A program that is used for more than a search is left alone: one that
counts, tests, inverts, deletes or runs another program on what it finds.
"""

import re
from collections.abc import Callable, Sequence

from serena_central.hook.options import Parsed, Syntax, parse
from serena_central.hook.search import Search, compiled
from serena_central.hook.shell import UNKNOWN

TYPES: dict[str, tuple[str, ...]] = {
    "py": ("*.py", "*.pyi"),
    "python": ("*.py", "*.pyi"),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "javascript": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "typescript": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "tsx": ("*.tsx",),
    "jsx": ("*.jsx",),
    "go": ("*.go",),
    "rust": ("*.rs",),
    "java": ("*.java",),
    "kotlin": ("*.kt", "*.kts"),
    "scala": ("*.scala", "*.sbt"),
    "c": ("*.c", "*.h", "*.H", "*.cats"),
    "cpp": ("*.cpp", "*.cc", "*.cxx", "*.C", "*.hpp", "*.hh", "*.hxx", "*.h", "*.H", "*.inl"),
    "cs": ("*.cs",),
    "csharp": ("*.cs",),
    "rb": ("*.rb", "*.rbw", "*.rake", "*.gemspec"),
    "ruby": ("*.rb", "*.rbw", "*.rake", "*.gemspec"),
    "php": ("*.php",),
    "swift": ("*.swift",),
    "lua": ("*.lua",),
    "dart": ("*.dart",),
    "elixir": ("*.ex", "*.exs"),
    "haskell": ("*.hs", "*.hsc", "*.lhs"),
    "zig": ("*.zig",),
    "vue": ("*.vue",),
    "svelte": ("*.svelte",),
    "sh": ("*.sh", "*.bash", "*.ksh", "*.zsh", "*.csh"),
}
"""Names of file types, as ripgrep, ugrep, ag and ack have them."""

_GREP = Syntax(
    "efmABCDd",
    (
        *("regexp", "file", "max-count", "include", "exclude", "exclude-dir", "exclude-from", "after-context"),
        *("before-context", "context", "label", "devices", "directories", "binary-files"),
    ),
)
_RIPGREP = Syntax(
    "efgtTmABCMjrEd",
    (
        *("regexp", "file", "glob", "iglob", "type", "type-not", "max-count", "after-context", "before-context"),
        *("context", "max-columns", "max-depth", "threads", "replace", "encoding", "sort", "sortr", "color", "colors"),
        *("max-filesize", "engine", "ignore-file", "path-separator", "context-separator", "pre", "pre-glob"),
    ),
)
_UGREP = Syntax("efgtOMmABCJ", (*_GREP.long, "glob", "file-type", "file-extension", "max-depth"))
_AG = Syntax("GgmABC", ("file-search-regex", "ignore", "ignore-dir", "max-count", "depth", "after", "before"))
_GIT = Syntax("efmABCO", (*_GREP.long, "max-depth", "threads"))

_NO_PLAIN_SEARCH = ("v", "invert-match", "q", "quiet", "silent", "c", "count", "f", "file", "L", "files-without-match")
_LOOKS_EVERYWHERE = (
    "u",
    "uu",
    "uuu",
    "unrestricted",
    "no-ignore",
    "no-ignore-vcs",
    "U",
    "multiline",
    "skip-vcs-ignores",
)
"""Of rg and ag: files that a project ignores, and matches over several lines."""
_REPLACES = ("r", "replace")


def search_by(words: Sequence[str], *, fed: bool) -> Search | None:
    """The search that a command makes; None for anything else. `fed`: it has something to read already."""
    program = words[0].rpartition("/")[2].removesuffix(".exe")
    reader = _READERS.get(program)
    found = reader(list(words[1:]), fed) if reader else None
    if found is None or any(UNKNOWN in part for part in (found.pattern, found.folder, *found.paths, *found.globs)):
        return None
    return found


def _grep(words: list[str], fed: bool) -> Search | None:
    said = parse(words, _GREP)
    return _grep_like(said, fed=fed, basic=not said.has("E", "P", "extended-regexp", "perl-regexp"))


def _egrep(words: list[str], fed: bool) -> Search | None:
    return _grep_like(parse(words, _GREP), fed=fed, basic=False)


def _fgrep(words: list[str], fed: bool) -> Search | None:
    return _grep_like(parse(["-F", *words], _GREP), fed=fed, basic=False)


def _grep_like(said: Parsed, *, fed: bool, basic: bool) -> Search | None:
    """grep reads what it is fed, unless it was given files or told to go through folders."""
    pattern, paths = _pattern_and_paths(said, basic=basic)
    recursive = said.has("r", "R", "recursive", "dereference-recursive")
    if pattern is None or (not paths and (fed or not recursive)) or "-" in paths:
        return None
    return _placed(pattern, paths, said.values("include", "g", "glob"), said)


def _ripgrep(words: list[str], fed: bool) -> Search | None:
    said = parse(words, _RIPGREP)
    globs = [*said.values("g", "glob", "iglob"), *_of_types(said.values("t", "type"))]
    if said.has("files"):
        wanted = tuple(_base(glob) for glob in globs if not glob.startswith("!"))
        if not wanted or fed or said.has(*_LOOKS_EVERYWHERE):
            return None
        return Search(wanted[0], by_name=True, paths=tuple(said.rest), globs=wanted[1:] and wanted)
    pattern, paths = _pattern_and_paths(said, basic=False)
    if pattern is None or said.has(*_REPLACES, *_LOOKS_EVERYWHERE) or (fed and not paths) or "-" in paths:
        return None
    smart = said.has("S", "smart-case") and not said.has("s", "case-sensitive")
    return _placed(pattern, paths, globs, said, smart=smart)


def _ugrep(words: list[str], fed: bool) -> Search | None:
    said = parse(words, _UGREP)
    pattern, paths = _pattern_and_paths(said, basic=said.has("G", "basic-regexp"))
    if pattern is None or (fed and not paths) or "-" in paths:
        return None
    endings = [f"*.{ending}" for value in said.values("O", "file-extension") for ending in value.split(",")]
    globs = [*said.values("g", "glob", "include"), *endings, *_of_types(said.values("t", "file-type"))]
    return _placed(pattern, paths, globs, said)


def _ag_or_ack(words: list[str], fed: bool) -> Search | None:
    said = parse(words, _AG)
    names = said.values("g")
    if names:
        plain = names[0].strip("^$").replace("\\.", ".")
        is_plain = re.fullmatch(r"[\w.-]+", plain) is not None
        return Search(f"*{plain}*", by_name=True, paths=tuple(said.rest)) if is_plain else None
    pattern, paths = _pattern_and_paths(said, basic=False)
    if pattern is None or said.has(*_LOOKS_EVERYWHERE) or (fed and not paths) or "-" in paths:
        return None
    types = [name for name, value in said.options if not value and name in TYPES] + said.values("type")
    endings = [f"*.{found[1]}" for value in said.values("G") if (found := re.search(r"\\?\.(\w+)\$?$", value))]
    return _placed(pattern, paths, [*_of_types(types), *endings], said, smart=not said.has("s", "case-sensitive"))


def _git(words: list[str], _fed: bool) -> Search | None:
    """`git grep` in the working tree; what looks into history or the index is left alone."""
    folder = ""
    while words[:1] == ["-C"] and len(words) > 1:
        folder, words = words[1], words[2:]
    if words[:1] != ["grep"]:
        return None
    said = parse(words[1:], _GIT)
    basic = not said.has("E", "P", "extended-regexp", "perl-regexp")
    pattern, paths = _pattern_and_paths(said, basic=basic)
    named_before_dashes = said.after_dashes and len(paths) > said.after_dashes
    odd = ("cached", "no-index", "untracked", "and", "or", "not", "O", "open-files-in-pager")
    if pattern is None or named_before_dashes or said.has(*odd) or any(path.startswith(":") for path in paths):
        return None
    return _placed(pattern, paths, [], said)._replace(folder=folder)


def _pattern_and_paths(said: Parsed, *, basic: bool) -> tuple[str | None, list[str]]:
    """The pattern as a regular expression of Python's kind; None where this is no plain search."""
    if said.has(*_NO_PLAIN_SEARCH):
        return None, []
    patterns, paths = said.values("e", "regexp"), list(said.rest)
    if not patterns:
        if not paths:
            return None, []
        patterns = [paths.pop(0)]
    if said.has("F", "fixed-strings", "Q", "literal"):
        patterns = [re.escape(pattern) for pattern in patterns]
    else:
        patterns = [as_python(from_basic(pattern) if basic else pattern) for pattern in patterns]
    whole = "|".join(patterns)
    if compiled(whole) is None:
        return None, []
    if said.has("w", "word-regexp"):
        whole = rf"\b(?:{whole})\b" if "|" in whole else rf"\b{whole}\b"
    return whole, paths


_BASIC = re.compile(r"\\?[|(){}+?]|\\.", re.S)


def from_basic(pattern: str) -> str:
    r"""POSIX's basic syntax as the extended one: `\|` means what `|` means there, and the other way round."""
    marks = "|(){}+?"
    return _BASIC.sub(
        lambda found: (
            found[0][-1]
            if found[0][0] == "\\" and found[0][1] in marks
            else (found[0] if found[0][0] == "\\" else "\\" + found[0])
        ),
        pattern,
    )


_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "word": r"\w",
    "xdigit": "0-9a-fA-F",
    "punct": r"!-/:-@\[-`{-~",
}
"""POSIX's names of what a set of characters holds."""

_POSIX = re.compile(r"(?P<kept>\\[^<>])|\\[<>]|\[:(?P<name>[a-z]+):\]", re.S)


def as_python(pattern: str) -> str:
    """A pattern of grep or rg in the words that Python has for it."""

    def one(found: re.Match[str]) -> str:
        if found["kept"]:
            return found["kept"]
        return _CLASSES.get(found["name"], found[0]) if found["name"] else r"\b"

    return _POSIX.sub(one, pattern)


def _placed(pattern: str, paths: Sequence[str], globs: Sequence[str], said: Parsed, *, smart: bool = False) -> Search:
    """A path with wildcards, which the shell fills, is a folder and a glob. `smart`: a pattern without capitals is
    about both."""
    names = [_base(glob) for glob in globs if glob and not glob.startswith("!")]
    filled: list[str] = []
    places: list[str] = []
    for path in paths:
        if any(mark in path for mark in "*?["):
            folder, _, name = path.rpartition("/")
            places.append(re.split(r"/?[^/]*[*?\[]", folder)[0] or ("/" if path.startswith("/") else "."))
            filled.append(name)
        else:
            places.append(path)
    if len(filled) == len(paths):
        names += filled
    if any(re.search(r"[*?.\[]", name) is None for name in names):
        names = []  # it names a folder, below which all files count
    no_case = said.has("i", "ignore-case", "y") or (smart and re.search("[A-Z]", re.sub(r"\\.", "", pattern)) is None)
    return Search(pattern, paths=tuple(dict.fromkeys(places)), globs=tuple(dict.fromkeys(names)), no_case=no_case)


def _base(glob: str) -> str:
    return glob.rpartition("/")[2] or glob


def _of_types(types: Sequence[str]) -> list[str]:
    """A type that we don't know is nearly always named like its files' ending."""
    return [glob for name in types for glob in globs_of_type(name)]


def globs_of_type(name: str) -> tuple[str, ...]:
    return TYPES.get(name, (f"*.{name}",)) if name else ()


_FIND_TESTS = {"-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-maxdepth", "-mindepth"}
_FIND_MARKS = {
    "-o",
    "-or",
    "-a",
    "-and",
    "-not",
    "!",
    "(",
    ")",
    "-print",
    "-L",
    "-P",
    "-H",
    "-xdev",
    "-prune",
    "-follow",
}


def _find(words: list[str], _fed: bool) -> Search | None:
    """`find … -name`, and `find … -exec grep …`; with any other test or action it does what no tool of ours does."""
    if "-exec" in words:
        return _find_and_grep(words)
    names: list[str] = []
    paths: list[str] = []
    left = list(words)
    negated = no_case = False
    while left:
        word = left.pop(0)
        if word in _FIND_TESTS and left:
            value = left.pop(0)
            if word in ("-name", "-iname") and not negated:
                names.append(value)
                no_case = no_case or word == "-iname"
            if word == "-type" and value != "f":
                return None
            negated = False
        elif word in _FIND_MARKS:
            negated = word in ("-not", "!")
        elif word.startswith("-"):
            return None
        else:
            paths.append(word)
    if not names:
        return None
    return Search(names[0], by_name=True, paths=tuple(paths), globs=tuple(names), no_case=no_case)


def _find_and_grep(words: list[str]) -> Search | None:
    at = words.index("-exec")
    inner = [word for word in words[at + 1 :] if word not in (";", "+", "{}")]
    # `-H` and the like need no file here: find gives them.
    found = search_by([*inner, "."], fed=False) if inner else None
    where = _find(words[:at], False) or Search("", paths=tuple(w for w in words[:at] if not w.startswith("-"))[:1])
    if found is None or found.by_name:
        return None
    return found._replace(paths=where.paths, globs=() if where.no_case else (*where.globs, *found.globs))


_READERS: dict[str, Callable[[list[str], bool], Search | None]] = {
    "grep": _grep,
    "ggrep": _grep,
    "egrep": _egrep,
    "fgrep": _fgrep,
    "rg": _ripgrep,
    "ugrep": _ugrep,
    "ug": _ugrep,
    "ag": _ag_or_ack,
    "ack": _ag_or_ack,
    "git": _git,
    "find": _find,
    "gfind": _find,
}
