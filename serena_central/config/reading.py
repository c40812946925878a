"""Reads files, variables and flags into layers of checked values.

Reading never fails: wrong and unknown entries become `Problem`s, and the rest of the layer counts. `load` decides which
problems are fatal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import msgspec

from serena_central.config.document import Document, DocumentError, parse_document, read_document
from serena_central.config.layers import Given, Layer, Origin, Problem
from serena_central.config.model import Setting, settings_of
from serena_central.config.settings import SharedSettings

SHOWN_CHARS = 60
"""How much of a wrong value a message repeats."""

MAX_PROBLEMS = 100
"""A file that makes more problems than this was not meant for us: the rest of it is not read."""

Convert = Callable[[Any], Any]
OriginOf = Callable[[str], Origin]
"""From a key, as it is spelled in its file, to its place there."""


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a kind of file may hold.

    `spellings`: other names of keys → the model's key, and how the value is turned into the model's.
    `elsewhere`: keys that have no effect here → why.
    """

    model: type[SharedSettings]
    spellings: Mapping[str, tuple[str, Convert]]
    elsewhere: Mapping[str, str]


def read_file(
    path: Path, dialect: Dialect, problems: list[Problem], *, of_project: bool = False, within: Path | None = None
) -> Layer:
    """The layer of one YAML file; an empty one if there is no file or it can't be used as a whole. `within` is the
    repository that brings it."""
    layer = Layer(of_project=of_project)
    try:
        document = read_document(path, within)
    except DocumentError as error:
        problems.append(Problem("wrong", "file", error.problem, Origin("file", str(path), error.line)))
        return layer
    if document is not None:
        _FileReader(dialect, document, str(path), layer, problems).read()
    return layer


def read_text(setting: Setting, text: str, origin: Origin, layer: Layer, problems: list[Problem]) -> None:
    """Adds what a variable says: lists are separated by commas, mappings are YAML (`{python: {server: ty}}`)."""
    value: Any = text
    if isinstance(setting.default, list):
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif isinstance(setting.default, dict):
        try:
            value = parse_document(text).values
        except DocumentError as error:
            problems.append(Problem("wrong", setting.key, error.problem, origin))
            return
    add_value(setting, value, lambda _: origin, layer, problems, lenient=True)


def add_value(
    setting: Setting, value: Any, origin: OriginOf, layer: Layer, problems: list[Problem], *, lenient: bool = False
) -> None:
    """Checks a value and adds it to `layer`. None leaves the key as the layers below have it."""
    if value is None:
        return
    if setting.merge != "entries" or not isinstance(value, dict):
        _add(setting, setting.key, value, origin, layer, problems, lenient=lenient)
        return
    for name, entry in cast("dict[Any, Any]", value).items():
        key = f"{setting.key}.{name}"
        if _add(setting, key, {name: entry}, origin, layer, problems, lenient=lenient):
            layer.values[key] = Given(layer.values[key].value[name], layer.values[key].origins)


def _add(
    setting: Setting, key: str, value: Any, origin: OriginOf, layer: Layer, problems: list[Problem], *, lenient: bool
) -> bool:
    """Adds the value at `key` if the setting allows it."""
    try:
        checked = setting.convert(value, lenient=lenient)
    except msgspec.ValidationError as error:
        field, part, allowed = setting.wrong_part(value, str(error))
        text = f"must be {allowed}" + ("" if setting.secret else f", not {_shown(part)}")
        problems.append(Problem("wrong", key + field, text, origin(key + field)))
        return False
    layer.values[key] = Given(checked, (origin(key),))
    return True


def unknown_key(key: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(key[:SHOWN_CHARS], known, n=1)
    return "is not a known setting" + (f"; did you mean {close[0]}?" if close else "")


class _FileReader:
    """Reads one document into one layer."""

    def __init__(self, dialect: Dialect, document: Document, file: str, layer: Layer, problems: list[Problem]) -> None:
        self._dialect = dialect
        self._document = document
        self._file = file
        self._layer = layer
        self._problems = problems
        self._settings = settings_of(dialect.model)
        self._groups = {key.partition(".")[0] for key in self._settings if "." in key}

    def read(self) -> None:
        for key in self._document.repeated:
            self._report("ignored", key, "is set more than once; the last value is used")
        for key, value in self._document.values.items():
            if len(self._problems) >= MAX_PROBLEMS:
                return
            if key in self._groups:
                self._read_group(key, value)
            elif key in self._settings or key in self._dialect.spellings:
                self._read_value(key, value)
            else:
                self._read_unknown(str(key))

    def _read_value(self, key: str, value: Any) -> None:
        name, convert = self._dialect.spellings.get(key, (key, as_it_is))
        if name != key and self._document.values.get(name) is not None:
            self._report("ignored", key, f"{name} is also set and takes precedence")
            return
        setting = self._settings[name]

        def origin(model_key: str) -> Origin:
            return self._origin(key + model_key.removeprefix(name))

        add_value(setting, None if value is None else convert(value), origin, self._layer, self._problems)

    def _read_group(self, group: str, value: Any) -> None:
        keys = {key: setting for key, setting in self._settings.items() if key.startswith(f"{group}.")}
        if isinstance(value, dict):
            for name, item in cast("dict[Any, Any]", value).items():
                key = f"{group}.{name}"
                if key in keys:
                    add_value(keys[key], item, self._origin, self._layer, self._problems)
                else:
                    self._report("unknown", key, unknown_key(key, keys))
        elif value is not None:
            names = ", ".join(key.partition(".")[2] for key in keys)
            self._report("wrong", group, f"must be a mapping with {names}, not {_shown(value)}")

    def _read_unknown(self, key: str) -> None:
        if key in self._dialect.elsewhere:
            self._report("ignored", key, self._dialect.elsewhere[key])
        else:
            self._report("unknown", key, unknown_key(key, self._settings))

    def _report(self, kind: Any, key: str, text: str) -> None:
        self._problems.append(Problem(kind, key, text, self._origin(key)))

    def _origin(self, key: str) -> Origin:
        return Origin("file", self._file, self._document.lines.get(key))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
