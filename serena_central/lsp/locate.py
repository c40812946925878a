"""Finds the program of a catalogue entry on this machine, and fills the placeholders of its command.

Looks into the product's own `servers` folder, beside the running Python (a bundled or pip-installed server), along
PATH, then where `go install` puts a user's programs. It starts nothing: a version is read from the path, from installed
metadata or from the program, or learnt later from the server.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.errors import ServerNotDriven, ServerNotInstalled, ServerNotTrusted
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.lsp.catalogue import ServerSpec, Untrusted
from serena_central.lsp.go_binary import module_version
from serena_central.lsp.handshake import merged
from serena_central.lsp.installers.record import installation_in
from serena_central.lsp.memory_limits import jobs, limiting
from serena_central.lsp.restriction import SHIMS, environment, restriction, without
from serena_central.processes.environment import inherited, outside, own_programs

_PROGRAM = re.compile(r"\{bin:([^}]+)\}")
_PACKAGE = Path(__file__).parents[1]
CONFINED = Path(__file__).with_name("confined.py")
RELAY = Path(__file__).with_name("relay.py")
_HIDDEN = "."
_VERSION_FOLDER = re.compile(r"\d+(?:\.\d+)*")


_NODE_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "armv7l": "arm"}
"""`platform.machine()` → `process.arch`. The names of systems are the same in both."""


class _NpmManifest(msgspec.Struct):
    version: str = ""


LEAST_MEMORY_MB = 1000
"""Minimum memory limit passed to a server, however small the budget: below it, it would only collect garbage."""


class Launch(msgspec.Struct, frozen=True):
    """How to start one server for one root. `env` is laid over the process's own; `version` is "" when unknown."""

    command: list[str]
    env: dict[str, str] = {}
    version: str = ""
    options: dict[str, Any] | None = None
    """The entry's initialization options, filled; None leaves them as they are written."""
    settings: dict[str, Any] = {}
    """Laid over all other settings."""
    within: list[str] = []
    """What runs the command, and keeps it to what it needs."""


class _Found(NamedTuple):
    """A program that was found: its absolute path, version ("" when unknown) and what its environment needs."""

    program: str
    version: str = ""
    env: Mapping[str, str] = MappingProxyType({})


def locate(
    spec: ServerSpec,
    root: Path,
    places: Places,
    *,
    untrusted: Path | None,
    path: str | None = None,
    prefix: Path | None = None,
    memory_mb: int = LEAST_MEMORY_MB,
) -> Launch:
    """Finds the programs that the entry names. `path` stands in for the environment's PATH. `memory_mb` is what the
    server is told to keep to, where it can be told.

    `untrusted` is the root of a project that is not trusted: nothing of it is executed. None: it is trusted.
    `prefix` stands in for all that was installed into the `servers` folder.

    Raises:
        ServerNotInstalled: or ServerNotTrusted, a kind of it.
    """
    if spec.undriven:
        raise ServerNotDriven(spec.name, ", ".join(spec.languages), spec.undriven)
    how, env = Untrusted(), dict[str, str]()
    if untrusted is not None:
        env = environment(untrusted)
        path = env["PATH"] if path is None else path
    folders = [prefix] if prefix else newest_first(places.servers / spec.name)
    own = [] if prefix else users_folders(spec, untrusted)
    names = _PROGRAM.findall(" ".join(spec.launch.command))
    if untrusted is not None:
        try:
            how = restriction(spec, root, untrusted)
        except ServerNotTrusted as error:
            is_there = all(_find(spec, name, folders, path, own) for name in names)
            raise error if is_there else error.and_missing(spec.how_to_get) from None
    if spec.launch.connect:
        host, _, port = spec.launch.connect.rpartition(":")
        return Launch([sys.executable, "-I", "-S", str(RELAY), host, port])
    found: dict[str, _Found] = {}
    for name in names:
        one = _find(spec, name, folders, path, own)
        if one is None:
            raise ServerNotInstalled(spec.name, ", ".join(spec.languages), spec.how_to_get)
        found[name] = one
    programs = {name: one.program for name, one in found.items()}
    values = _values(spec, root, places, programs.values(), memory_mb)
    env |= limiting(spec.launch.runtime, memory_mb, inherited() | env)
    env |= {name: value for one in found.values() for name, value in one.env.items()}
    words = [*without(spec.launch.command, how.without_args), *how.args]
    command = [_fill(part, programs, values) for part in words]
    command[0] = str(expanded(command[0]))
    if not os.access(command[0], os.X_OK):
        raise ServerNotInstalled(
            spec.name, ", ".join(spec.languages), f"{command[0]} is not a program; see the settings"
        )
    return Launch(
        command,
        {**env, **_filled(spec.launch.env | how.env, programs, values)},
        next((one.version for one in found.values() if one.version), ""),
        _filled(merged(spec.initialization_options, how.initialization_options), programs, values),
        _filled(how.settings, programs, values),
        _confining(spec, how, root, untrusted, places, programs, values) if untrusted is not None else [],
    )


def _confining(
    spec: ServerSpec,
    how: Untrusted,
    root: Path,
    untrusted: Path,
    places: Places,
    programs: Mapping[str, str],
    values: Mapping[str, str],
) -> list[str]:
    own = (path.parent.parent for program in programs.values() for path in (Path(program), Path(program).resolve()))
    users = Path.home() / ".config" / spec.name  # what its user says of it
    reads = [untrusted, root, places.servers, users, Path(sys.prefix), Path(sys.base_prefix), _PACKAGE, *own]
    confinement = {
        "writes": [str(expanded(_fill(one, programs, values))) for one in how.writes],
        "reads": list(dict.fromkeys(map(str, reads))),
        "home": str(Path.home()),
        "offline": not how.online,
    }
    return [sys.executable, "-I", "-S", str(CONFINED), json.dumps(confinement)]


def newest_first(home: Path) -> list[Path]:
    """The installed versions of a server, `servers/<name>/<version>`; what is not finished is hidden."""
    try:
        versions = [folder for folder in home.iterdir() if not folder.name.startswith(_HIDDEN)]
    except OSError:
        return []
    return sorted(versions, key=lambda folder: _sortable(folder.name), reverse=True)


def _find(
    spec: ServerSpec, program: str, folders: Sequence[Path], path: str | None, own: Sequence[str]
) -> _Found | None:
    for found in _candidates(spec, program, folders, path, own):
        package = _npm_package(spec, Path(found.program))
        version = found.version or (_npm_version(package) if package else "")
        if not _fits(spec, version):
            continue
        native = _native(spec, package) if package else None
        return found._replace(program=native or found.program, version=version)
    return None


def _candidates(
    spec: ServerSpec, program: str, folders: Sequence[Path], path: str | None, own: Sequence[str]
) -> Iterator[_Found]:
    for folder in folders:
        for inside in _inside(spec):
            if found := shutil.which(program, path=str(folder / inside)):
                installation = installation_in(folder)
                version = "" if folder.name.startswith(_HIDDEN) else folder.name
                yield _Found(found, version, installation.env_in(folder) if installation else {})
    if found := shutil.which(program, path=own_programs()):
        yield _Found(found, _distribution_version(spec))
    found = shutil.which(program, path=path)
    if found and not _is_empty_proxy(Path(found)):
        yield _Found(str(Path(found).absolute()))
    # What PATH does not have may be forgotten: it counts if its version is known, and is no older than it must be.
    found = shutil.which(program, path=os.pathsep.join(own)) if own else None
    if found and (version := module_version(Path(found))):
        yield _Found(found, version)


def users_folders(spec: ServerSpec, untrusted: Path | None = None) -> list[str]:
    """Where `go install` puts a user's programs, for servers that it installs; none in a project that is not
    trusted."""
    if not any(recipe.via == "go" for recipe in spec.install):
        return []
    path = os.environ.get("GOPATH") or str(Path.home() / "go")
    folders = [os.environ.get("GOBIN", ""), *(f"{one}/bin" for one in path.split(os.pathsep) if one)]
    folders = [folder for folder in folders if Path(folder).is_absolute()]
    return outside(os.pathsep.join(folders), untrusted).split(os.pathsep) if untrusted else folders


def _is_empty_proxy(program: Path) -> bool:
    """rustup puts a proxy of each tool on PATH, also of those that none of its toolchains has."""
    if program.name == "rustup" or program.resolve().name != "rustup":
        return False
    toolchains = expanded(os.environ.get("RUSTUP_HOME", "~/.rustup")) / "toolchains"
    return not any(toolchains.glob(f"*/bin/{program.name}"))


def _fits(spec: ServerSpec, version: str) -> bool:
    """Whether a program of a version counts; of an unknown one it does."""
    own = _sortable(version)
    return not version or not any(
        own < _sortable(recipe.at_least) or (recipe.below and own >= _sortable(recipe.below)) for recipe in spec.install
    )


def _npm_package(spec: ServerSpec, program: Path) -> Path | None:
    """The folder of the npm package that a program belongs to: package managers link to its script."""
    names = [recipe.package for recipe in spec.install if recipe.via == "npm"]
    for folder in program.resolve().parents if names else ():
        if any(folder.as_posix().endswith(f"/node_modules/{name}") for name in names):
            return folder
    return None


def _npm_version(package: Path) -> str:
    try:
        return from_json((package / "package.json").read_bytes(), _NpmManifest).version
    except (OSError, msgspec.DecodeError):
        return ""


def _native(spec: ServerSpec, package: Path) -> str | None:
    if not spec.launch.native:
        return None
    modules = next(folder for folder in package.parents if folder.name == "node_modules")
    arch = _NODE_ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    native = modules / spec.launch.native.replace("{os}", sys.platform).replace("{arch}", arch)
    return str(native) if os.access(native, os.X_OK) else None


def _inside(spec: ServerSpec) -> list[str]:
    """Where the recipes say that they put programs, and where package managers do."""
    named = [recipe.binary.rpartition("/")[0] for recipe in spec.install if recipe.binary]
    return list(dict.fromkeys([*named, "bin", "node_modules/.bin", "Scripts", ""]))


def _sortable(version: str) -> list[int]:
    match = _VERSION_FOLDER.search(version)
    return [int(part) for part in match.group().split(".")] if match else []


def _distribution_version(spec: ServerSpec) -> str:
    for recipe in spec.install:
        if recipe.via == "pip":
            try:
                return metadata.version(recipe.package)
            except metadata.PackageNotFoundError:
                continue
    return ""


def _values(spec: ServerSpec, root: Path, places: Places, programs: Iterable[str], memory_mb: int) -> dict[str, str]:
    own = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
    inside = (folder for program in programs for folder in Path(program).resolve().parents)
    modules = next((folder for folder in inside if folder.name == "node_modules"), root / "node_modules")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    gopath = os.environ.get("GOPATH")
    return {
        "root": str(root),
        "modules": str(modules),
        "tsdk": str(modules / "typescript" / "lib"),
        "cache": str(places.cache / spec.name / own),
        "cpus": str(os.cpu_count() or 1),
        "jobs": str(jobs(os.cpu_count() or 1, memory_mb)),
        "memory_mb": str(memory_mb),
        "shims": str(SHIMS),
        "cargo_home": os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo"),
        "go_cache": os.environ.get("GOCACHE") or str(caches / "go-build"),
        "go_modules": os.environ.get("GOMODCACHE") or f"{(gopath or '~/go').split(os.pathsep)[0]}/pkg",
        "gopls_cache": os.environ.get("GOPLSCACHE") or str(caches / "gopls"),
    }


def _fill(part: str, programs: Mapping[str, str], values: Mapping[str, str]) -> str:
    part = _PROGRAM.sub(lambda match: programs[match.group(1)], part)
    for name, value in values.items():
        part = part.replace(f"{{{name}}}", value)
    return part


def _filled(value: Any, programs: Mapping[str, str], values: Mapping[str, str]) -> Any:
    """The same tables and lists, with the placeholders in their texts filled."""
    if isinstance(value, str):
        return _fill(value, programs, values)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _filled(inside, programs, values) for key, inside in table.items()}
    if isinstance(value, list):
        return [_filled(inside, programs, values) for inside in cast("list[Any]", value)]
    return value
