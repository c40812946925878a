"""Whether what a project depends on is on this machine, where its servers look: node_modules, Cargo's registry, Go's
module cache.

Where it is not, servers answer without a warning: names from missing packages do not resolve. Nothing is executed
or fetched; manifests, lock files and the names of folders are read, again when one of them has changed.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.nofollow import open_following
from serena_central.core.paths import expanded
from serena_central.core.words import counted
from serena_central.lsp.roots.go import WORK, used_modules
from serena_central.lsp.roots.place import ancestors

Kind = Literal["", "npm", "cargo", "go"]

_MANIFEST: dict[Kind, str] = {"npm": "package.json", "cargo": "Cargo.toml", "go": "go.mod"}

SHOWN = 3
"""Names of missing packages in a note."""

_READ_MOST_BYTES = 5_000_000

_NPM_COMMANDS = (
    ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn install"),
    ("bun.lock", "bun install --frozen-lockfile"),
    ("bun.lockb", "bun install --frozen-lockfile"),
    ("package-lock.json", "npm ci"),
    ("npm-shrinkwrap.json", "npm ci"),
)
"""The command that installs the packages of a lock file; `npm install` if there is none."""

_LOCKED = re.compile(r'^name = "([^"]+)"\nversion = "([^"]+)"\nsource = "registry\+', re.MULTILINE)

_GO_COMMENT = re.compile(r"//(?! indirect).*")
_GO_REQUIRED = re.compile(r"^[^\S\n]*(?:require[^\S\n]+)?([\w.~/-]+\.[\w.~/-]+)\s+(v[\w.+-]+)[^\S\n]*$", re.MULTILINE)
_GO_REPLACED = re.compile(r"^[^\S\n]*(?:replace\s+)?([\w.~/-]+)(?:\s+v\S+)?\s+=>", re.MULTILINE)
_GO_MODULE = re.compile(r'^[^\S\n]*module[^\S\n]+"?([^\s"]+)', re.MULTILINE)
_UPPER = re.compile(r"[A-Z]")


class _Manifest(msgspec.Struct):
    """A package.json, as far as it is of use here."""

    dependencies: dict[str, Any] = {}
    devDependencies: dict[str, Any] = {}  # noqa: N815 - npm's name


class Found(NamedTuple):
    """What one look found: a sentence for people, None where nothing lacks; `watched` are the files and folders that
    it was found in, or would be."""

    note: str | None
    watched: tuple[str, ...]


def look(kind: Kind, boundary: Path, folder: Path, environ: Mapping[str, str] = os.environ) -> Found:
    """What the code in `folder`, of the project at `boundary`, needs and has not."""
    match kind:
        case "npm":
            return _npm(boundary, folder)
        case "cargo":
            return _cargo(boundary, folder, environ)
        case "go":
            return _go(boundary, folder, environ)
        case "":
            return Found(None, ())


class _Place(NamedTuple):
    """Where a server was asked: `folder` is the nearest that holds a manifest, or the project's root."""

    server: str
    kind: Kind
    folder: Path


class ProjectDependencies:
    """What one project lacks. Belongs to the event loop's thread; reads some small files when it is asked for notes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._places: dict[tuple[str, str], _Place] = {}
        """(server, folder of a file) → what it belongs to."""
        self.asked_since: set[_Place] = set()
        """Places of questions since the last look."""
        self.notes: dict[tuple[str, Path], str] = {}
        """(server, folder) → what answers about files below it lack, as of the last look."""
        self._known: dict[_Place, tuple[Found, tuple[int, ...]]] = {}
        """What was found, and the stamp of what is watched."""

    def asked(self, server: str, kind: Kind, path: str) -> None:
        """A server was asked about a root-relative path."""
        inside = path.rpartition("/")[0]
        place = self._places.get((server, inside))
        if place is None:
            folder = self._root / inside
            nearest = next(
                (one for one in _within(self._root, folder) if (one / _MANIFEST[kind]).is_file()), self._root
            )
            place = self._places[server, inside] = _Place(server, kind, nearest)
        self.asked_since.add(place)

    def forget(self) -> None:
        """A manifest may have come or gone."""
        self._places.clear()

    def look(self, arrived: Callable[[Path], None]) -> None:
        """Looks again where was asked since the last look. `arrived` is called with the manifest of a folder where
        nothing is missing any more."""
        asked, self.asked_since = self.asked_since, set()
        for place in asked:
            before = self._known.get(place)
            if before is not None and before[1] == _stamp(before[0].watched):
                continue
            found = look(place.kind, self._root, place.folder)
            self._known[place] = found, _stamp(found.watched)
            if before is not None and before[0].note and not found.note:
                arrived(place.folder / _MANIFEST[place.kind])
        known = self._known.items()
        self.notes = {
            (place.server, place.folder): f"{place.server}: {found.note}" for place, (found, _) in known if found.note
        }


# --- npm --------------------------------------------------------------------------------------------------------------


def _npm(boundary: Path, folder: Path) -> Found:
    """Node's rule: node_modules of a package's folder, or of any folder above it."""
    watched: list[str] = []
    missing: list[str] = []
    elsewhere: Path | None = None
    places: list[Path] = []
    for package in (one for one in _within(boundary, folder) if (one / "package.json").is_file()):
        modules = [above / "node_modules" for above in (package, *package.parents)]
        watched += [str(package / "package.json"), *map(str, modules)]
        for name in _declared(package / "package.json"):
            place = next((one for one in modules if (one / name).is_dir()), None)
            if place is None:
                missing.append(name)
                places = places or [package]
            elif not place.is_relative_to(boundary):
                elsewhere = place
    if missing:
        top = places[0]
        command = next((said for lock, said in _NPM_COMMANDS if _has_above(boundary, top, lock)), "npm install")
        return Found(_lacking("npm packages", missing, f"`{command}` in {top} installs them"), tuple(watched))
    if elsewhere is not None:
        note = f"third-party imports are resolved in {elsewhere}, which belongs to a folder above the project."
        return Found(note, tuple(watched))
    return Found(None, tuple(watched))


def _declared(manifest: Path) -> list[str]:
    try:
        found = from_json(_text(manifest), _Manifest)
    except msgspec.MsgspecError:
        return []
    return sorted(found.dependencies | found.devDependencies)


# --- Cargo ------------------------------------------------------------------------------------------------------------


def _cargo(boundary: Path, folder: Path, environ: Mapping[str, str]) -> Found:
    """Crates of registries that the lock file names, else those that the manifests declare without a path."""
    home = expanded(environ.get("CARGO_HOME") or "~/.cargo")
    sources = home / "registry" / "src"
    top = next((one for one in _within(boundary, folder) if (one / "Cargo.lock").is_file()), None)
    manifests = [one for one in _within(boundary, folder) if (one / "Cargo.toml").is_file()]
    if not manifests:
        return Found(None, ())
    watched = [str(sources), *(str(one) for one in _folders(sources))]
    watched += [str(one / name) for one in manifests for name in ("Cargo.toml", "Cargo.lock", "vendor")]
    if any((one / "vendor").is_dir() for one in manifests):
        return Found(None, tuple(watched))
    there = {name for one in _folders(sources) for name in _names(one)}
    if top is not None:
        wanted = [
            f"{name}-{version}"
            for name, version in _LOCKED.findall(_text(top / "Cargo.lock").decode("utf-8", "replace"))
        ]
        missing = [name for name in wanted if name not in there]
    else:
        known = {name.rpartition("-")[0] for name in there}
        missing = [name for one in manifests for name in _crates(one / "Cargo.toml") if name not in known]
    note = _lacking("crates", missing, f"`cargo fetch` in {top or manifests[-1]} gets them") if missing else None
    return Found(note, tuple(watched))


def _crates(manifest: Path) -> Iterator[str]:
    """Names of the crates that a manifest wants from a registry."""
    try:
        table = tomllib.loads(_text(manifest).decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError:
        return
    for section in ("dependencies", "dev-dependencies"):
        wanted: Any = table.get(section)
        for name, how in cast("dict[str, Any]", wanted).items() if isinstance(wanted, dict) else ():
            options = cast("dict[str, Any]", how) if isinstance(how, dict) else {}
            if options.keys().isdisjoint(("path", "git", "workspace")):
                yield str(options.get("package", name))


# --- Go ---------------------------------------------------------------------------------------------------------------


def _go(boundary: Path, folder: Path, environ: Mapping[str, str]) -> Found:
    """Modules that go.mod requires of itself: others may never be needed, and are then not fetched."""
    module = next((one for one in _within(boundary, folder) if (one / "go.mod").is_file()), None)
    if module is None:
        return Found(None, ())
    path = (environ.get("GOPATH") or "~/go").partition(os.pathsep)[0]
    cache = expanded(environ.get("GOMODCACHE") or f"{path}/pkg/mod")
    watched = (str(module / "go.mod"), str(module / "vendor"), str(cache))
    text = _GO_COMMENT.sub("", _text(module / "go.mod").decode("utf-8", "replace"))
    works = [one / WORK for one in _within(boundary, module) if module in used_modules(one / WORK)]
    replaced = set(_GO_REPLACED.findall(text)).union(*map(_joined_by, works))
    watched += tuple(map(str, works))
    required = [(name, version) for name, version in _GO_REQUIRED.findall(text) if name not in replaced]
    folders = {f"{name} {version}": cache / f"{_escaped(name)}@{version}" for name, version in required}
    watched += tuple({str(place.parent) for place in folders.values()})
    missing = [name for name, place in folders.items() if not place.is_dir()]
    if not missing or (module / "vendor").is_dir():
        return Found(None, watched)
    return Found(_lacking("Go modules", missing, f"`go mod download` in {module} gets them"), watched)


def _joined_by(work: Path) -> set[str]:
    """Paths of the modules that a go.work brings: those that it uses, and those that it replaces."""
    manifests = [_text(folder / "go.mod").decode("utf-8", "replace") for folder in used_modules(work)]
    used = {found[1] for manifest in manifests if (found := _GO_MODULE.search(manifest))}
    return used.union(_GO_REPLACED.findall(_GO_COMMENT.sub("", _text(work).decode("utf-8", "replace"))))


def _escaped(module: str) -> str:
    """As the module cache spells paths (golang.org/x/mod/module.EscapePath)."""
    return _UPPER.sub(lambda letter: f"!{letter[0].lower()}", module)


# --- what all of them need --------------------------------------------------------------------------------------------


def _lacking(what: str, missing: Sequence[str], remedy: str) -> str:
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    number = counted(len(missing), what.removesuffix("s"), what)
    names = ", ".join(missing[:SHOWN]) + more
    return f"{number} not installed ({names}): third-party imports from there are unknown; {remedy}."


def _within(boundary: Path, folder: Path) -> list[Path]:
    return list(ancestors(boundary, folder / "file"))


def _has_above(boundary: Path, folder: Path, name: str) -> bool:
    return any((one / name).is_file() for one in _within(boundary, folder))


def _folders(folder: Path) -> list[Path]:
    return [folder / name for name in _names(folder)]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except OSError:
        return []


def _text(path: Path) -> bytes:
    try:
        with os.fdopen(open_following(str(path)), "rb") as file:
            return file.read(_READ_MOST_BYTES) or b""
    except OSError:
        return b""


def _stamp(paths: Sequence[str]) -> tuple[int, ...]:
    stamp: list[int] = []
    for path in paths:
        try:
            stamp.append(os.stat(path).st_mtime_ns)  # noqa: PTH116 - half of Path's time
        except OSError:
            stamp.append(0)
    return tuple(stamp)
