"""Names that code composes: from a string with the beginning or the end of one, as in `getattr(self, f"visit_{kind}")`,
`this["handle" + kind]` and `getattr(self, kind + "_handler")`, or in C by a macro, `visit_##kind`. In code that clangd
does not see as it is built, it knows nothing of the latter."""

import re
from collections.abc import Mapping, Sequence

import anyio.to_thread

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Text
from serena_central.files.containing import find_containing
from serena_central.files.open_words import BEGUN, ENDED
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

SHORTEST = 3
"""Characters of a beginning, its `_` included."""

_WITHOUT_NAMES = frozenset({"cpp", "rust"})
"""Languages whose programs look nothing up by a name that they compose."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

AROUND = 200
"""Characters before and behind the sign `##` in which a part of a name is looked for."""

_FILLED_IN = frozenset({"bash", "groovy", "kotlin", "perl", "php", "powershell", "scala"})
"""Languages in which a `$` behind a beginning puts the value of a variable there, in a string or without one."""

_NEVER = r"(?!)"


Lines = Mapping[str, int]
"""Word → the line in which it first stands."""


class ComposedNames:
    """Knows such things of one project, and remembers what it looked up. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._files: dict[str | None, Sequence[str]] = {}
        """Language → files …"""
        self._begun: dict[tuple[str | None, str], str | None] = {}
        """… and, with a beginning, in what it stands."""
        self._open: dict[str, tuple[Lines, Lines]] = {}
        """File → the words in it that are left to be ended, and to be begun."""

    async def reason(self, hit: Hit) -> str | None:
        """Why a symbol's name may be put together in the project's code of its language, as a clause."""
        name, language = hit.symbol.name, self._project.languages.language_of(hit.path)
        cuts = [at for at in range(1, len(name) - 1) if name[at] == "_" != name[at - 1]]
        humps = [match.start() for match in _HUMP.finditer(name)]
        if not cuts and not humps:
            return None
        if language not in self._files:
            named = ((path, self._project.languages.language_of(path)) for path in list(self._project.tree.files))
            self._files[language] = [path async for path, its in paced(named) if its == language]
        files = self._files[language]
        if language == "cpp" and (pasted := await _pasted(self._project, name, cuts, files)):
            return pasted
        beginnings = [name[: at + 1] for at in cuts if at + 1 >= SHORTEST]
        for beginning in reversed(beginnings):
            key = language, beginning
            if key not in self._begun:
                self._begun[key] = await _beginning(self._project, files, language, beginning)
            if begun := self._begun[key]:
                return begun
        if language in _WITHOUT_NAMES:
            return None
        beginnings += [name[:at] for at in humps]
        return await self._composed(files, beginnings, [name[at:] for at in (*cuts, *humps)])

    async def _composed(self, files: Sequence[str], beginnings: Sequence[str], ends: Sequence[str]) -> str | None:
        """Where a string that something else is put behind or before is one of the beginnings or ends, as a clause."""
        for path in await self._project.navigation.possible.composing(files, beginnings=beginnings, ends=ends):
            if path not in self._open:
                try:
                    text = (await self._project.read(path)).text
                except PathError:
                    continue
                self._open[path] = await anyio.to_thread.run_sync(_first_lines, text)
            begun, ended = self._open[path]
            for part, known, words in (("beginning", begun, beginnings), ("end", ended, ends)):
                if first := min(((known[word], word) for word in words if word in known), default=None):
                    line0, word = first
                    return f"a string in {path}:{line0} is the {part} of its name, {word}, and something is added to it"
        return None


async def _beginning(project: Project, files: Sequence[str], language: str | None, beginning: str) -> str | None:
    """Where a beginning of a name stands by itself in a string, or before a variable, as a clause."""
    maybe = await project.navigation.possible.holding(files, beginning)
    if language in _FILLED_IN and (filled := await _filled_in(project, maybe, beginning)):
        return filled
    found = (await find_containing(project.root, maybe, beginning, encoding=project.languages.encoding)).files
    for path in sorted(found):
        if (line0 := await _string_with(project, path, beginning)) is not None:
            return f"a string in {path}:{line0} holds the beginning of its name, {beginning}"
    return None


async def _filled_in(project: Project, paths: Sequence[str], beginning: str) -> str | None:
    """Where a variable follows a beginning of a name, as a clause."""
    sought, encoding = re.compile(rf"(?<![\w$]){re.escape(beginning)}\$"), project.languages.encoding
    found = (await find_containing(project.root, paths, f"{beginning}$", whole=False, encoding=encoding)).files
    for path in sorted(found):
        try:
            text = (await project.read(path)).text
        except PathError:
            continue
        if match := sought.search(text.content):
            line0 = text.position(match.start()).line0
            return f"in {path}:{line0} a variable follows the beginning of its name, {beginning}"
    return None


def _first_lines(text: Text) -> tuple[Lines, Lines]:
    begun, ended = dict[str, int](), dict[str, int]()
    for pattern, lines in ((BEGUN, begun), (ENDED, ended)):
        for match in pattern.finditer(text.content):
            if match[1] not in lines:
                lines[match[1]] = text.position(match.start(1)).line0
    return begun, ended


async def _string_with(project: Project, path: str, word: str) -> int | None:
    """The line of a string in which a word stands, if a grammar can tell."""
    try:
        occurrences = await project.languages.syntax.occurrences(path, word)
    except (LanguageServerError, PathError):
        return None
    return next((one.range.start.line0 for one in occurrences if one.kind == "string"), None)


async def _pasted(project: Project, name: str, cuts: Sequence[int], files: Sequence[str]) -> str | None:
    """Which macro puts a name together that begins or ends as this one, as a clause."""
    beginnings = [name[: at + 1] for at in cuts if at + 1 >= SHORTEST]
    ends = [name[at:] for at in cuts if len(name) - at >= SHORTEST]
    maybe = {path for part in (*beginnings, *ends) for path in await project.navigation.possible.holding(files, part)}
    found = (await find_containing(project.root, sorted(maybe), "##", encoding=project.languages.encoding)).files
    before = re.compile(rf"\b(?:{'|'.join(map(re.escape, beginnings)) or _NEVER})\s*\Z")
    after = re.compile(rf"\s*(?:{'|'.join(map(re.escape, ends)) or _NEVER})\b")
    for path in sorted(found):
        try:
            text = (await project.read(path)).text
        except PathError:
            continue
        # The sign is looked for first: one expression for all takes a second for a header of 24 MB.
        async for sign in paced(re.finditer("##", text.content)):
            start = max(sign.start() - AROUND, 0)
            head, tail = text.content[start : sign.start()], text.content[sign.end() : sign.end() + AROUND]
            if (match := before.search(head) or after.match(tail)) is not None:
                line0 = text.position(sign.start()).line0
                shown = f"{match[0]}##" if match.re is before else f"##{match[0]}"
                return f"a macro in {path}:{line0} puts names together that begin or end as its own, {shown}"
    return None
