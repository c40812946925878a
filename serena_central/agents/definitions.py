"""Definitions of agents: `agents/*.md` of the user and of the project, as Claude Code writes them.

A file is a head of YAML (name, description, tools, model) and a body, which is the agent's system prompt. Heads that
are not valid YAML, such as descriptions with colons, are read line by line, as their own client does. What a repository
brings counts only while it is trusted; its files are parts of what a person approves. Pure but for reading the files.
"""

import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec

from serena_central.claude_config.locations import AGENTS, Locations
from serena_central.claude_config.problems import Place, Problem, Severity, brief
from serena_central.config.document import Document, DocumentError, parse_document, read_whole
from serena_central.core.words import whole_number

MOST_DEFINITIONS = 500
"""Of one folder; the rest is left out, with a problem."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

READ_HERE = frozenset({"name", "description", "tools", "disallowedTools", "model", "runner", "maxTurns", "isolation"})

OF_OTHERS = frozenset(
    {
        *("permissionMode", "skills", "mcpServers", "hooks", "memory", "background", "effort", "color"),
        *("initialPrompt", "license", "version", "metadata"),
    }
)
"""Fields of Claude Code and of collections of agents, which have no effect here."""

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")
_COMMA = re.compile(r",(?![^(]*\))")
"""Between tools; not within the parentheses of a rule."""


class Origin(StrEnum):
    PROJECT = "project"
    USER = "user"


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One agent. `tools` are names or rules of what it may call, None for all; `prompt` is its system prompt."""

    name: str
    description: str
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    runner: str | None = None
    isolation: Literal["none", "worktree"] = "none"
    max_turns: int | None = None
    prompt: str
    origin: Origin
    file: str


class Definitions(NamedTuple):
    """What a root has. `by_name` are those that may run: the project's come before the user's of the same name."""

    by_name: Mapping[str, Definition]
    shadowed: tuple[Definition, ...]
    held_back: tuple[Definition, ...]
    """Of a repository that is not trusted."""
    problems: tuple[Problem, ...]


def folders(root: Path, locations: Locations) -> Iterator[tuple[Path, Origin]]:
    """Where definitions may be, the first of a name wins."""
    brought = locations.brought_folder(root)
    if brought is not None:
        yield brought / AGENTS, Origin.PROJECT
    yield locations.user_folder / AGENTS, Origin.USER


def definitions_of(root: Path, locations: Locations, *, trusted: bool) -> Definitions:
    """The definitions that count in a real root. Blocks for small files; never raises for what they hold."""
    by_name: dict[str, Definition] = {}
    shadowed: list[Definition] = []
    held_back: list[Definition] = []
    problems: list[Problem] = []
    for folder, origin in folders(root, locations):
        within = root if origin is Origin.PROJECT else None
        seen: dict[str, Definition] = {}
        for file in _files(folder, problems):
            one = _read(file, origin, within, problems)
            if one is None:
                continue
            if one.name in seen:
                text = f"{brief(one.name)} is defined in {seen[one.name].file}, too, and this file has no effect"
                problems.append(Problem(Severity.ERROR, Place(str(file)), "name", text, "give each agent its own name"))
                continue
            seen[one.name] = one
            if origin is Origin.PROJECT and not trusted:
                held_back.append(one)
            elif one.name in by_name:
                shadowed.append(one)
            else:
                by_name[one.name] = one
    return Definitions(by_name, tuple(shadowed), tuple(held_back), tuple(problems))


def _files(folder: Path, problems: list[Problem]) -> list[Path]:
    try:
        found = sorted(name for name in os.listdir(folder) if name.endswith(".md") and not name.startswith("."))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(
            Problem(Severity.ERROR, Place(str(folder)), "", f"can't be listed: {error.strerror}", "make it readable")
        )
        return []
    if len(found) > MOST_DEFINITIONS:
        text = f"holds {len(found)} definitions, of which the first {MOST_DEFINITIONS} are read"
        problems.append(Problem(Severity.WARNING, Place(str(folder)), "", text, "remove some"))
    return [folder / name for name in found[:MOST_DEFINITIONS]]


def _read(file: Path, origin: Origin, within: Path | None, problems: list[Problem]) -> Definition | None:
    try:
        text = read_whole(file, within)
    except DocumentError as error:
        problems.append(Problem(Severity.ERROR, Place(str(file), error.line or 0), "", error.problem, ""))
        return None
    return None if text is None else parse_definition(text, str(file), origin, problems)


def parse_definition(text: str, file: str, origin: Origin, problems: list[Problem]) -> Definition | None:
    """The definition in a file's text; None where it can't be used. Problems are added to `problems`, with their
    lines."""
    found = _HEAD.match(text)
    if found is None:
        remedy = "begin the file with a line ---, name: and description:, and a line ---"
        problems.append(Problem(Severity.ERROR, Place(file, 1, 1), "", "the file has no YAML front matter", remedy))
        return None
    head = _head(found[1], file, problems)
    reading = _Head(head, file, problems)
    name, description = reading.text("name"), reading.text("description")
    if name is not None and not NAME.fullmatch(name):
        reading.report(
            "name", f"{brief(name)} is not a name", "letters, digits, - _ . alone, at most 64, the first not a sign"
        )
        name = None
    for key, value in (("name", name), ("description", description)):
        if value is None and key not in reading.reported:
            reading.report(key, "is missing", "every agent has a name and a description")
    tools, refused = reading.names("tools"), reading.names("disallowedTools")
    turns = reading.whole("maxTurns")
    reading.unknown()
    if name is None or description is None or {"tools", "disallowedTools"} & reading.reported:
        return None  # with fewer restrictions than were meant it must not run
    prompt = text[found.end() :].strip()
    if not prompt:
        reading.report("", "the file has no system prompt", "write it after the front matter", Severity.NOTE)
    model = reading.text("model")
    isolation = reading.text("isolation")
    if isolation not in (None, "none", "worktree"):
        reading.report("isolation", f"{brief(isolation)} is not known", "isolation: worktree")
        return None  # it must not work where it was meant not to
    return Definition(
        name=name,
        description=description,
        tools=tools,
        disallowed_tools=refused or (),
        model=None if model == "inherit" else model,
        runner=reading.text("runner"),
        isolation="worktree" if isolation == "worktree" else "none",
        max_turns=turns,
        prompt=prompt,
        origin=origin,
        file=file,
    )


def _head(text: str, file: str, problems: list[Problem]) -> Document:
    try:
        return parse_document(text)
    except DocumentError as error:
        lenient = _by_lines(text)
        line = (error.line or 1) + 1
        severity = Severity.NOTE if lenient.values else Severity.ERROR
        remedy = "put values that hold a colon into quotes"
        problems.append(Problem(severity, Place(file, line, 1), "", f"{error.problem}; read line by line", remedy))
        return lenient


def _by_lines(text: str) -> Document:
    """`key: value` of each line that begins with one; lines in between continue the value before."""
    values: dict[Any, Any] = {}
    lines: dict[str, int] = {}
    key = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _FIELD.fullmatch(line)
        if found is not None and found[1] not in values:
            key = found[1]
            values[key], lines[key] = found[2].strip().strip("\"'"), number
        elif key:
            values[key] = f"{values[key]}\n{line}".strip()
    return Document(values, lines, [])


class _Head:
    """Takes values out of a head, and reports those of another type."""

    def __init__(self, head: Document, file: str, problems: list[Problem]) -> None:
        self._values = head.values
        self._lines = head.lines
        self._file = file
        self._problems = problems
        self.reported: set[str] = set()
        for key in head.repeated:
            self.report(key, "is given twice, and the last one counts", "remove one", Severity.WARNING)
            self.reported.discard(key)

    def report(self, key: str, text: str, remedy: str, severity: Severity = Severity.ERROR) -> None:
        self.reported.add(key)
        line = self._lines.get(key, 0) + 1
        self._problems.append(Problem(severity, Place(self._file, line, 1), key, text, remedy))

    def text(self, key: str) -> str | None:
        """None where it is missing, empty or of another type."""
        value = self._values.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, (dict, list)):
            self.report(key, "must be a text", f"{key}: …")
            return None
        return str(value).strip() or None

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list, or names with commas; None where the key is missing, or its value is empty."""
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            return tuple(name for one in _COMMA.split(value) if (name := one.strip()))
        given = cast("list[object]", value) if isinstance(value, list) else [None]
        names = [one.strip() for one in given if isinstance(one, str)]
        if len(names) < len(given):
            self.report(key, "must be a list of names", f"{key}: Read, Grep")
            return None
        return tuple(names)

    def whole(self, key: str) -> int | None:
        value = self._values.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        if isinstance(value, str) and (number := whole_number(value)):
            return number
        self.report(key, "must be a whole number above 0", f"{key}: 20", Severity.WARNING)
        return None

    def unknown(self) -> None:
        for key in self._values:
            if key not in READ_HERE and key not in OF_OTHERS:
                self.report(str(key), "is not known, and has no effect", "remove it, or fix its name", Severity.NOTE)
