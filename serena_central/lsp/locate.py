"""Finds the program of a catalogue entry on this machine, and fills the placeholders of its command.

Looks into the product's own `servers` folder, beside the running Python (a bundled or pip-installed server), then along
PATH. It starts nothing: a version is read from the path or from installed metadata, or learnt later from the server.
"""

import hashlib
import os
import re
import shutil
import sysconfig
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from serena_central.core.errors import ServerNotInstalled
from serena_central.core.places import Places
from serena_central.lsp.catalogue import ServerSpec

_PROGRAM = re.compile(r"\{bin:([^}]+)\}")
_VERSION_FOLDER = re.compile(r"\d+(?:\.\d+)*")


class Launch(msgspec.Struct, frozen=True):
    """How to start one server for one root. `env` is laid over the process's own; `version` is "" when unknown."""

    command: list[str]
    env: dict[str, str] = {}
    version: str = ""


def locate(spec: ServerSpec, root: Path, places: Places, *, path: str | None = None) -> Launch:
    """Finds the programs that the entry names. `path` stands in for the environment's PATH.

    Raises: ServerNotInstalled.
    """
    version = ""
    programs: dict[str, str] = {}
    for name in _PROGRAM.findall(" ".join(spec.launch.command)):
        found = _find(spec, name, places, path)
        if found is None:
            raise ServerNotInstalled(spec.name, ", ".join(spec.languages), spec.how_to_get)
        programs[name], version = found[0], version or found[1]
    values = _values(spec, root, places)
    return Launch(
        [_fill(part, programs, values) for part in spec.launch.command],
        {name: _fill(value, programs, values) for name, value in spec.launch.env.items()},
        version,
    )


def _find(spec: ServerSpec, program: str, places: Places, path: str | None) -> tuple[str, str] | None:
    """The program's absolute path and its version, or None."""
    for folder, version in _own_folders(spec, places):
        if found := shutil.which(program, path=str(folder)):
            return found, version
    if found := shutil.which(program, path=sysconfig.get_path("scripts")):
        return found, _distribution_version(spec)
    if found := shutil.which(program, path=path):
        return str(Path(found).absolute()), ""
    return None


def _own_folders(spec: ServerSpec, places: Places) -> Iterator[tuple[Path, str]]:
    """The places inside `servers/<name>/<version>/` where the package managers put programs, newest version first."""
    try:
        versions = sorted(
            (places.servers / spec.name).iterdir(), key=lambda folder: _sortable(folder.name), reverse=True
        )
    except OSError:
        return
    for folder in versions:
        for inside in ("bin", "node_modules/.bin", "Scripts", ""):
            yield folder / inside, folder.name


def _sortable(version: str) -> list[int]:
    match = _VERSION_FOLDER.search(version)
    return [int(part) for part in match.group().split(".")] if match else []


def _distribution_version(spec: ServerSpec) -> str:
    for recipe in spec.install:
        if recipe.via in ("bundled", "pip"):
            try:
                return metadata.version(recipe.package)
            except metadata.PackageNotFoundError:
                continue
    return ""


def _values(spec: ServerSpec, root: Path, places: Places) -> dict[str, str]:
    own = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
    return {
        "root": str(root),
        "cache": str(places.cache / spec.name / own),
        "cpus": str(os.cpu_count() or 1),
    }


def _fill(part: str, programs: dict[str, str], values: dict[str, str]) -> str:
    part = _PROGRAM.sub(lambda match: programs[match.group(1)], part)
    for name, value in values.items():
        part = part.replace(f"{{{name}}}", value)
    return part


def installed(specs: Sequence[ServerSpec], places: Places) -> dict[str, str]:
    """Maps server name → program path, for those whose programs are all here."""
    found: dict[str, str] = {}
    for spec in specs:
        try:
            found[spec.name] = locate(spec, Path("/"), places).command[0]
        except ServerNotInstalled:
            continue
    return found
