"""What files say of a root: its settings, as far as a person trusts them, the super-repo that it lies in, and the
Claude Code settings that apply to it. Each is kept until one of its files may have changed.

The package that reads Claude Code's settings is imported only when such a file exists.
"""

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from serena_central.claude_config.locations import AGENTS, FOLDER, LOCAL_SETTINGS, SETTINGS, Locations, stamp_of
from serena_central.config.layers import Loaded, Problem
from serena_central.config.load import load_project_config, settings_files
from serena_central.config.settings import ProjectSettings, ServerSettings, SharedSettings
from serena_central.core.lru import Lru
from serena_central.core.nofollow import read_following
from serena_central.core.owners import first_strangers_above, is_strangers
from serena_central.core.paths import kept_path
from serena_central.core.places import Places
from serena_central.files.boundary import OPEN, Access
from serena_central.files.mounts import is_away
from serena_central.files.path_watch import PathWatch
from serena_central.lsp.catalogue import catalogue
from serena_central.projects.root_paths import real_path
from serena_central.projects.superrepo.configuration import SuperRepo, super_repo_of
from serena_central.projects.trust.agent_source import AgentFiles
from serena_central.projects.trust.approvals import Approvals
from serena_central.projects.trust.claude_source import ClaudeFiles
from serena_central.projects.trust.trust_decisions import Configuration, Policy, Source, Trust

if TYPE_CHECKING:
    from serena_central.claude_config.current import CurrentSettings
    from serena_central.claude_config.effective import Effective
    from serena_central.claude_config.permissions import Permissions
    from serena_central.claude_config.problems import Problem as ClaudeProblem
    from serena_central.claude_config.sources import Servers


MANAGED_SERVERS, LEGACY_SERVERS = "managed-mcp.json", "claude.json"

MOST_FILES = 4000

_A_SERVER = re.compile(rb'"mcpServers"\s*:\s*\{\s*"')
"""Such files may have megabytes, and nearly all of them have no server: `{}`."""

_OWN_FILES = frozenset({f"{FOLDER}/{SETTINGS}", f"{FOLDER}/{LOCAL_SETTINGS}"})

_HOLDS_RULES = (
    "holds permission rules, and is not edited by agents while it does. A person can: serena-central claude edit"
)


class ClaudeSettings:
    """Belongs to the event loop's thread, or to a command."""

    def __init__(self, locations: Locations | None = None, watch: PathWatch | None = None) -> None:
        self.locations = locations or Locations()
        self._watch = watch or PathWatch(watches=False)
        self._current: CurrentSettings | None = None
        self._brings: Lru[str, tuple[Hashable, bool]] = Lru(MOST_FILES)
        """Path → stamp, and whether the file has an MCP server."""
        self._known_servers: Lru[tuple[Path, bool], tuple[Hashable, Servers]] = Lru(MOST_FILES)

    def of(self, root: Path) -> "Effective | None":
        """What counts in a root now; None where no tier has a file. Some microseconds where nothing has changed."""
        return self._watch.get(("claude", str(root)), lambda: self.locations.files(root), lambda: self._read(root))

    def _read(self, root: Path) -> "Effective | None":
        stamp = self.locations.stamp(root)
        if stamp is None:
            return None
        if self._current is None:
            # Late: 20 ms, which those without such files don't pay.
            from serena_central.claude_config.current import CurrentSettings

            self._current = CurrentSettings(self.locations)
        return self._current.of(root, stamp)

    def has_servers(self, root: Path) -> bool:
        """Whether any file that counts in a root has an MCP server. Some microseconds, and nothing is imported."""
        return self._watch.get(
            ("servers?", str(root)), lambda: self._server_files(root), lambda: self._any_server(root)
        )

    def has_agents(self, root: Path) -> bool:
        """Whether any folder for agents that counts in a root has a file. Some microseconds, and nothing is
        imported."""
        return self._watch.get(("agents?", str(root)), lambda: self.agent_folders(root), lambda: self._any_agent(root))

    def agent_folders(self, root: Path) -> Iterable[str]:
        """Each ends in `/`, as `PathWatch` means all that lies in a folder."""
        return (f"{root}/{FOLDER}/{AGENTS}/", f"{self.locations.user_folder}/{AGENTS}/")

    def _any_agent(self, root: Path) -> bool:
        return any(map(_holds_agent, self.agent_folders(root)))

    def servers(self, root: Path, *, trusted: bool) -> "Servers":
        """The MCP servers of a root; the same object as long as nothing has changed. `trusted`: a person trusts what
        the repository brings."""
        return self._watch.get(
            ("servers", str(root), trusted), lambda: self._server_files(root), lambda: self._read_servers(root, trusted)
        )

    def server_errors(self, root: Path) -> "list[ClaudeProblem]":
        """What is wrong with files of MCP servers, beside those of settings. Some microseconds where nothing has
        changed."""
        return self._watch.get(
            ("server errors", str(root)), lambda: self._server_files(root), lambda: self._read_server_errors(root)
        )

    def _read_server_errors(self, root: Path) -> "list[ClaudeProblem]":
        # One that is broken may look as if it had no server.
        own = (Path(path) for path in self._server_files(root) if path.endswith("/.mcp.json"))
        if not self.has_servers(root) and not any(path.exists() for path in own):
            return []
        from serena_central.claude_config.problems import Severity

        return [one for one in self.servers(root, trusted=False).problems if one.severity is Severity.ERROR]

    def _server_files(self, root: Path) -> Iterable[str]:
        where = self.locations
        yield from where.files(root)
        yield from (f"{where.managed_folder}/{MANAGED_SERVERS}", str(where.state_file))
        yield f"{where.user_folder}/{LEGACY_SERVERS}"

    def _any_server(self, root: Path) -> bool:
        paths = [path for path in self._server_files(root) if path.endswith(".json")]
        return any(map(self._brings_servers, (*paths, *map(str, self.locations.managed_files()))))

    def _brings_servers(self, path: str) -> bool:
        stamp = stamp_of(path)
        if stamp is None:
            return False
        known = self._brings.get(path)
        if known is None or known[0] != stamp:
            known = self._brings[path] = stamp, _holds_server(path)
        return known[1]

    def _read_servers(self, root: Path, trusted: bool) -> "Servers":
        from serena_central.claude_config.effective import Effective
        from serena_central.claude_config.sources import servers_of

        # Where nothing is watched, this is asked at each call.
        stamp = tuple(map(stamp_of, (*self._server_files(root), *map(str, self.locations.managed_files()))))
        known = self._known_servers.get((root, trusted))
        if known is None or known[0] != stamp:
            found = servers_of(self.of(root) or Effective(root, self.locations, ()), trusted=trusted)
            known = self._known_servers[(root, trusted)] = stamp, found
        return known[1]

    def access(self, root: Path) -> Access:
        """Which paths of a root are closed by rules, as of now."""
        found = self.of(root)
        if found is None or not found.permissions.rules:
            return OPEN
        return _access(found.permissions)

    def access_key(self, root: Path) -> Hashable:
        """What differs when `access` may."""
        found = self.of(root)
        return found.permissions.key if found is not None else None

    def path_rules(self, roots: Iterable[str]) -> str:
        """A fingerprint of all rules that close paths in some roots; empty where there are none."""
        rules = {
            (root, *one) for root in roots if (found := self.of(Path(root))) for one in found.permissions.path_rules
        }
        return blake2b(repr(sorted(rules)).encode(), digest_size=16).hexdigest() if rules else ""


def _access(permissions: "Permissions") -> Access:
    from serena_central.claude_config.permissions import refusal_text

    def reading(path: str) -> str | None:
        decision = permissions.reading(path)
        return refusal_text(f"{path!r}", decision) if decision is not None else None

    def editing(path: str) -> str | None:
        decision = permissions.editing(path)
        if decision is not None:
            return refusal_text(f"{path!r}", decision)
        return f"{path!r} {_HOLDS_RULES}." if path in _OWN_FILES and restricts else None

    restricts = any(rule.verdict != "allow" for rule in permissions.rules)
    closes = permissions.protects_files
    return Access(permissions.key, reading if closes else None, editing if restricts else None)


def _holds_agent(folder: str) -> bool:
    try:
        return any(name.endswith(".md") for name in os.listdir(folder))  # noqa: PTH208
    except OSError:
        return False


def _holds_server(path: str) -> bool:
    """Blocks for reading the file."""
    try:
        return _A_SERVER.search(read_following(path)) is not None
    except OSError:
        return False


CONFIGURATION = (".serena/project.yml", ".serena/project.local.yml")

WHOLE_FILE = "file"
"""The key of a problem with a file that can't be read as a whole."""

MOST_KEPT = 1000
"""Roots whose configuration is remembered; a box has fewer."""

Facts = tuple[Hashable, ...]


class _Kept(NamedTuple):
    facts: Facts
    stamp: Hashable
    repo: SuperRepo | None
    problems: list[Problem]


class SuperRepos:
    """Super-repos by root. Belongs to the event loop's thread; a lookup costs a few stats of small files."""

    def __init__(
        self,
        load: Callable[[Path], Loaded[ProjectSettings]],
        *,
        changed: Callable[[SuperRepo], None] = lambda _repo: None,
        stamp: Callable[[], Hashable] = lambda: None,
        watch: PathWatch | None = None,
    ) -> None:
        """`load` reads one root's settings; `changed` is called for every super-repo that was reloaded; `stamp`
        differs when other problems may be found in the same files. Without `watch` every lookup reads the disk."""
        self._watch = watch or PathWatch(watches=False)
        self._load = load
        self._changed = changed
        self._stamp = stamp
        self._kept: Lru[Path, _Kept] = Lru(MOST_KEPT)

    def at(self, root: Path) -> SuperRepo | None:
        """The super-repo whose root this is, as its files are now."""
        return self._watch.get(("super-repo", str(root)), lambda: _files((root,)), lambda: self._at(root))

    def _at(self, root: Path) -> SuperRepo | None:
        kept = self._current(root)
        return kept.repo if kept else None

    def problems_at(self, root: Path) -> list[Problem]:
        """What of the settings at a root has no effect, of a super-repo or any other project."""
        kept = self._current(root)
        if kept is not None and kept.stamp != self._stamp():
            kept = self._read(root, kept.facts, kept)
        return kept.problems if kept else []

    def _current(self, root: Path) -> _Kept | None:
        first = _facts(root / CONFIGURATION[0])
        if first is None:
            self._kept.discard(root)
            return None
        facts = (first, *(_facts(root / name) for name in CONFIGURATION[1:]))
        kept = self._kept.get(root)
        if kept is None or kept.facts != facts:
            kept = self._read(root, facts, kept)
        return kept

    def _read(self, root: Path, facts: Facts, before: _Kept | None) -> _Kept:
        stamp, loaded = self._stamp(), self._load(root)
        repo = super_repo_of(root, loaded)
        problems = [*loaded.problems, *(repo.problems if repo else ())]
        if repo is None and before is not None and any(problem.key == WHOLE_FILE for problem in loaded.problems):
            repo = before.repo  # half written, most likely: its modules don't vanish for that
        kept = self._kept[root] = _Kept(facts, stamp, repo, problems)
        if repo is not None:
            self._changed(repo)
        return kept

    def worked_in(self, active_root: str | None, folder: str | None) -> SuperRepo | None:
        """The super-repo of a session: by the root of its active project, else by the folder that its client works
        in; none while nobody can look at that."""
        if is_away(active_root or folder or ""):
            return None
        if active_root:
            return self.around(kept_path(active_root))  # a root is a real path
        return self.around(real_path(Path(folder))) if folder else None

    def of(self, root: Path) -> SuperRepo | None:
        """The super-repo that a real root is, or is a module of."""
        repo = self.around(root)
        return repo if repo and (root == repo.root or repo.says_of(root)) else None

    def problems_around(self, folder: Path) -> list[Problem]:
        """What of the settings in a real folder and those above has no effect."""
        return [problem for root in (folder, *folder.parents) for problem in self.problems_at(root)]

    def around(self, folder: Path) -> SuperRepo | None:
        """The nearest super-repo that a real folder is, or lies in."""
        return self._watch.get(
            ("super-repo around", str(folder)),
            lambda: _files((folder, *folder.parents)),
            lambda: next((repo for root in self._own(folder) if (repo := self._at(root)) is not None), None),
        )

    def _own(self, folder: Path) -> Iterator[Path]:
        """A folder, and those above whose settings nobody else put there."""
        yield folder
        for above in folder.parents:
            if not any(is_strangers(above / name, folder) for name in CONFIGURATION):
                yield above


def _files(folders: Iterable[Path]) -> Iterator[str]:
    return (f"{str(folder).rstrip('/')}/{name}" for folder in folders for name in CONFIGURATION)


def _facts(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class RootSettings:
    """Belongs to the event loop's thread, or to a command. Reads small files when they have changed."""

    def __init__(
        self,
        loaded: Loaded[ServerSettings],
        places: Places,
        *,
        changed: Callable[[SuperRepo], None] = lambda _repo: None,
        watch: PathWatch | None = None,
        locations: Locations | None = None,
    ) -> None:
        """`changed` is called for every super-repo that was reloaded. Without `watch` every question reads the disk."""
        self._loaded = loaded
        self._loadings = 0
        self.watch = watch or PathWatch(watches=False)
        self._trust_file = str(places.trust_file)
        self.claude = ClaudeSettings(locations, self.watch)
        approvals = Approvals(places.trust_file)
        sources: list[Source] = [
            Configuration(self._super_repo_of),
            ClaudeFiles(self.claude.locations),
            AgentFiles(self.claude.locations),
        ]
        self.trust = Trust(approvals, loaded.value.trusted_roots, sources, self._policy)
        self.super_repos = SuperRepos(
            lambda root: load_project_config(root, self._loaded, trusts=self.trust.allows),
            changed=changed,
            stamp=self.trust.file_stamp,
            watch=self.watch,
        )

    @property
    def loaded(self) -> Loaded[ServerSettings]:
        """The server's settings. Others take effect in each project with its next call."""
        return self._loaded

    @loaded.setter
    def loaded(self, loaded: Loaded[ServerSettings]) -> None:
        before, self._loaded = self._loaded.value, loaded
        if any(getattr(before, name) != getattr(loaded.value, name) for name in SharedSettings.__struct_fields__):
            self._loadings += 1  # each project is opened again

    def read(self, root: Path) -> Loaded[ProjectSettings]:
        """What the settings say of a real root; what has no effect is among the problems."""
        repo = self.super_repos.of(root)
        return load_project_config(root, self.loaded, around=repo.root if repo else None, trusts=self._trusts)

    def strangers_above(self, root: Path) -> Path | None:
        """What another user has put above a root where language servers and build tools look for such by themselves, so
        that nothing of the root is executed, although a person trusts it. Not where the setting `trust` is "always"."""
        if self._policy(root).choice == "always":
            return None
        return first_strangers_above(root, catalogue().above)

    def stamp(self, root: Path) -> Hashable:
        """What differs when `read` may answer otherwise. Costs some microseconds."""
        files = self.watch.get(("settings", str(root)), lambda: self._files(root), lambda: self._stamp(root))
        return self._loadings, files

    def _policy(self, root: Path) -> Policy:
        found = self.claude.of(root)
        fixed = found.managed("trust") if found is not None else None
        return Policy(fixed[0], f"managed settings ({fixed[1]})") if fixed else Policy(self.loaded.value.trust)

    def _stamp(self, root: Path) -> Hashable:
        return self.trust.stamp(root), self.claude.access_key(root), self.strangers_above(root)

    def _files(self, root: Path) -> Iterator[str]:
        """All that the stamp depends on, there or not."""
        yield self._trust_file
        yield from self.claude.locations.files(root)
        for folder in (root, *root.parents):
            yield from map(str, settings_files(folder))
        for folder in root.parents:
            yield from (f"{str(folder).rstrip('/')}/{name}" for name in catalogue().above)

    def _super_repo_of(self, root: Path) -> SuperRepo | None:
        return self.super_repos.of(root)

    def _trusts(self, root: Path, texts: Mapping[str, str]) -> bool:
        """All that the root brings, and what of it was just read; and nobody else says what is executed of it."""
        return self.trust.is_trusted(root) and self.trust.allows(root, texts) and self.strangers_above(root) is None
