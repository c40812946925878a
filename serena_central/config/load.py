"""Loads the settings: the one place that knows files, variables and their precedence.

Server: defaults < /etc/serena-central/config.yml < ~/.serena/serena_config.yml < SERENA_CENTRAL_* < flags.
Project: what the server has < $SERENA_HOME/serena_config.yml < <super-repo>/.claude/.serena/serena_config.yml
< <root>/.claude/.serena/serena_config.yml < <root>/.serena/project.yml < <root>/.serena/project.local.yml.

`~/.serena/serena_config.yml` may be shared with Serena: its other keys are reported and have no effect.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from serena_central.config.layers import Given, Layer, Loaded, Origin, Problem, combine
from serena_central.config.model import get, settings_of
from serena_central.config.project_config import PROJECT_DIALECT, SERVER_DIALECT, SHARED_DIALECT
from serena_central.config.reading import add_value, read_file, read_text, unknown_key
from serena_central.config.settings import ProjectSettings, ServerSettings
from serena_central.config.trust import Trusts, executable_part, named_in_settings, restrict
from serena_central.core.paths import expanded
from serena_central.core.places import HOME_VARIABLE

PREFIX = "SERENA_CENTRAL_"
CONFIG_NAME = "serena_config.yml"
COMMITTED = Path(".claude") / ".serena"
"""Where a repository keeps settings that all who work on it share."""

NOT_SETTINGS = frozenset({HOME_VARIABLE})
"""Variables with our prefix that other parts read."""


def serena_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's folder for configuration and memories, shared with Serena: SERENA_HOME, else `~/.serena`.

    A SERENA_HOME inside a repository is that repository's: the server, which a client of any repository may have
    started, serves all of them.
    """
    named = _named_home(environment)
    return named if named and repository_of(named) is None else Path.home() / ".serena"


def repository_of(folder: Path) -> Path | None:
    """The repository that a folder is, or lies in; one at the home folder or above it is none."""
    home = Path.home()
    for above in (folder, *folder.parents):
        if home.is_relative_to(above):
            return None
        if (above / ".git").exists():
            return above
    return None


def _named_home(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("SERENA_HOME")
    return expanded(named).absolute() if named else None


@dataclass(frozen=True, slots=True)
class Sources:
    """What is read beside the flags; tests name their own."""

    machine: Path = Path("/etc/serena-central/config.yml")
    user: Path = field(default_factory=lambda: Path.home() / ".serena" / CONFIG_NAME)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def serena_home_for(self, root: Path) -> Path | None:
        """SERENA_HOME, if there is one, and if it is not another repository's."""
        named = _named_home(self.environment)
        owner = repository_of(named) if named else None
        return named if owner is None or root.is_relative_to(owner) else None


def load_server_config(flags: Mapping[str, Any], sources: Sources | None = None) -> Loaded[ServerSettings]:
    """The server's settings. `flags` maps keys of `ServerSettings` to values; None where a flag was not given.

    Raises:
        ConfigError: for the first wrong value; all other problems are in the answer.
    """
    sources = sources or Sources()
    problems: list[Problem] = []
    layers = [
        read_file(sources.machine, SERVER_DIALECT, problems),
        read_file(sources.user, SERVER_DIALECT, problems),
        _environment(sources.environment, problems),
        _flags(flags, problems),
    ]
    for problem in problems:
        if problem.kind == "wrong":
            raise problem.error()
    again = partial(load_server_config, flags, sources)
    return replace(combine(ServerSettings, layers, problems), own_file=sources.user, again=again)


def missing_without(names: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """Of variables that a server was started with, those whose settings would have their defaults in this environment,
    and those that are no settings and not in it: a server that is started there would be another one, or none.

    Raises:
        ConfigError
    """
    origins = load_server_config({}, replace(Sources(), environment=environment)).origins
    keys = variables()

    def lacks(name: str) -> bool:
        return origins[keys[name]][-1].kind == "default" if name in keys else not environment.get(name)

    return [name for name in names if lacks(name)]


def load_project_config(
    root: Path,
    server: Loaded[ServerSettings],
    *,
    around: Path | None = None,
    sources: Sources | None = None,
    trusts: Trusts | None = None,
) -> Loaded[ProjectSettings]:
    """One project's settings on top of the server's. Reads files; never raises: wrong values are among the problems.

    `around` is the root of the super-repo that it is a module of: what is committed there counts for its modules, too.
    `trusts` is asked about the very text that was read; without it only the server's `trusted_roots` count.
    """
    problems: list[Problem] = []
    own = _own_layers(root, around, sources or Sources(), problems)
    parts = {str(path): executable_part(layer) for path, layer in own.items()}
    trusted = trusts(root, parts) if trusts else named_in_settings(root, server.value.trusted_roots)
    layers = [layer if trusted else restrict(layer, problems) for layer in own.values()]
    return replace(combine(ProjectSettings, [_shared(server), *layers], problems), trusted=trusted)


def executable_parts(root: Path, *, around: Path | None = None, sources: Sources | None = None) -> dict[str, str]:
    """What of a project's own settings may decide what is run: file → canonical text, the strongest last."""
    own = _own_layers(root, around, sources or Sources(), [])
    return {str(path): text for path, layer in own.items() if (text := executable_part(layer))}


def _own_layers(root: Path, around: Path | None, sources: Sources, problems: list[Problem]) -> dict[Path, Layer]:
    """Of the files that may come with a repository, the strongest last."""
    home = sources.serena_home_for(root)
    shared = ((home, home and repository_of(home)), (around and around / COMMITTED, around), (root / COMMITTED, root))
    committed = {folder / CONFIG_NAME: repository for folder, repository in shared if folder}
    layers = {
        path: read_file(path, SHARED_DIALECT, problems, of_project=True, within=repository)
        for path, repository in committed.items()
        if path != sources.user
    }
    for path in project_files(root):
        layers[path] = read_file(path, PROJECT_DIALECT, problems, of_project=True, within=root)
    return layers


def project_files(root: Path) -> list[Path]:
    """The files in a project that are its own settings, the strongest last."""
    return [root / ".serena" / "project.yml", root / ".serena" / "project.local.yml"]


def settings_stamp(root: Path, around: Path | None = None) -> tuple[tuple[int, int, int] | None, ...]:
    """What differs when a file of the project's own settings was changed, made or removed. Costs some microseconds."""
    committed = [around / COMMITTED / CONFIG_NAME] if around else []
    return tuple(_stamp(path) for path in (*committed, *settings_files(root)))


def settings_files(root: Path) -> list[Path]:
    """The files in a project, committed ones among them, that are its own settings."""
    return [*project_files(root), root / COMMITTED / CONFIG_NAME]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _shared(server: Loaded[ServerSettings]) -> Layer:
    """What the server says about every project, with its origins."""
    layer = Layer()
    keys = settings_of(ProjectSettings)
    for key, origins in server.origins.items():
        name, _, entry = key.partition(".")
        if name in keys and origins[-1].kind != "default":
            value = get(server.value, name)
            layer.values[key] = Given(value[entry] if entry else value, origins)
    return layer


def variables() -> dict[str, str]:
    """Variable → key. `central_server_port` is SERENA_CENTRAL_SERVER_PORT, not with the word twice."""
    return {
        f"{PREFIX}{key.removeprefix('central_').upper().replace('.', '_')}": key for key in settings_of(ServerSettings)
    }


def _environment(environment: Mapping[str, str], problems: list[Problem]) -> Layer:
    layer = Layer()
    keys, settings = variables(), settings_of(ServerSettings)
    for name in _ours(environment):
        origin = Origin("environment", name)
        # The rule taken literally doubles the word `central`, and is understood as well.
        key = keys.get(name) or keys.get(name.replace("CENTRAL_CENTRAL_", "CENTRAL_"))
        if key is None:
            problems.append(Problem("unknown", name, unknown_key(name, keys), origin))
        else:
            read_text(settings[key], environment[name], origin, layer, problems)
    return layer


def _ours(environment: Mapping[str, str]) -> Iterable[str]:
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in NOT_SETTINGS)


def _flags(flags: Mapping[str, Any], problems: list[Problem]) -> Layer:
    layer = Layer()
    settings = settings_of(ServerSettings)
    for key, value in flags.items():
        origin = Origin("flag", key)
        add_value(settings[key], value, lambda _, origin=origin: origin, layer, problems, lenient=True)
    return layer
