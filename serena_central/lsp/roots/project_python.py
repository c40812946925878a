"""The Python environment of a project: which one it is, its state, and what each server is passed about it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serena_central.core.paths import expanded
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.handshake import merged
from serena_central.lsp.roots.python import (
    NONE,
    PythonEnvironment,
    candidates,
    configured_in,
    find_python,
    folder_of,
    packages_of,
)

NO_INTERPRETER = NONE / "bin" / "python"
"""A program that is not there. Servers that are told of it know no packages; told of none, they would take any."""


_NAMING = (".python-version", "environment.yml", "environment.yaml", "poetry.lock", "pyproject.toml")
"""Files that say which environment is the project's."""


class PythonLaunch(NamedTuple):
    """What a server is started with so that it uses an environment: variables, and its settings with what is added."""

    env: dict[str, str]
    settings: dict[str, Any]


class ProjectPython:
    """Belongs to the event loop's thread. `near` are folders whose `.venv` will do, too; `named` is the setting."""

    def __init__(self, root: Path, near: Sequence[Path] = (), named: str | None = None) -> None:
        self._root = root
        self._near = near
        self._named = named
        self.places: tuple[str, ...] | None = None
        """What changes when another environment is there, or when packages come or go; those that end in `/` change
        with all that lies right in them. None before it is looked for."""
        self._stamps: Sequence[int] = ()
        self._environment = PythonEnvironment(None, "")
        self.state = ""
        """Tells apart environments, and what was installed into one before and afterwards; empty before it is looked
        for."""
        self._own: dict[str, tuple[Sequence[int], str]] = {}
        """Server → stamps of its own configuration files, and which of these names an environment."""
        self.notes: dict[str, str | None] = {}
        """Server that was asked → where it resolves imports."""

    def look(self) -> bool:
        """Whether it is another environment than at the last look, or packages came or went. Some stats, if not."""
        if self.places is not None and self._stamps == _stamps(self.places):
            return False
        # The stamps come first: what changes while the environment is looked for is seen the next time.
        found = find_python(self._root, self._near, self._named)
        self.places = self._places(found)
        self._stamps = _stamps(self.places)
        before, self.state = self.state, _state(found)
        if found == self._environment and self.state == before:
            return False
        self._environment = found
        self.notes = {}
        return True

    def forget(self) -> None:
        """Files that name an environment may have changed."""
        self.places = None
        self.notes = {}

    def tell(self, spec: ServerSpec, settings: dict[str, Any]) -> PythonLaunch:
        """What a server with these settings of the user's is started with."""
        environment = self._of(spec)
        match spec.environment:
            case "python":
                return PythonLaunch(environment.env, settings)
            case "interpreter" if environment.folder or not environment.named_by:
                program = environment.interpreter or NO_INTERPRETER
                return PythonLaunch({}, merged({"python": {"pythonPath": str(program)}}, settings))
            case _:
                return PythonLaunch({}, settings)

    def asked(self, spec: ServerSpec) -> None:
        """Notes what is said of a server's answers."""
        if spec.environment and spec.name not in self.notes:
            runs = spec.environment == "interpreter"
            self.notes[spec.name] = self._of(spec).note(spec.name, self._root, runs=runs)

    def _of(self, spec: ServerSpec) -> PythonEnvironment:
        """The environment, unless the server's own configuration in the project names one."""
        own = self._configured_in(spec)
        return PythonEnvironment(None, own) if own else self._environment

    def _configured_in(self, spec: ServerSpec) -> str:
        """Some stats while the files stay the same: it is asked for each folder of the project."""
        stamps = _stamps(str(self._root / name) for name in spec.environment_keys)
        known = self._own.get(spec.name)
        if known is None or known[0] != stamps:
            known = self._own[spec.name] = stamps, configured_in(self._root, spec.environment_keys)
        return known[1]

    def _places(self, found: PythonEnvironment) -> tuple[str, ...]:
        files = (str(self._root / name) for name in _NAMING)
        places: list[Path] = []
        for folder in self._folders():
            # An environment is made step by step: lib, then python3.12 in it, then site-packages.
            places += [folder, folder / "pyvenv.cfg", folder / "bin", folder / "lib", *folder.glob("lib/python3*")]
            if folder == found.folder:
                break
        if found.folder:
            places += packages_of(found.folder)
        return *files, *(f"{place}/" for place in places)

    def _folders(self) -> Iterator[Path]:
        if self._named:
            yield folder_of(self._root / expanded(self._named))
        yield from (folder for folder, _ in candidates(self._root, self._near))


def _state(environment: PythonEnvironment) -> str:
    folder = environment.folder
    if folder is None:
        return "no environment"
    stamps = _stamps(map(str, [folder / "pyvenv.cfg", *packages_of(folder)]))
    return f"{folder} {environment.interpreter} {' '.join(map(str, stamps))}"


def _stamps(places: Iterable[str]) -> list[int]:
    return [_mtime(place.rstrip("/")) for place in places]


def _mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - half of Path's time
    except OSError:
        return 0
