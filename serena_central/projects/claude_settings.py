"""The Claude Code settings that apply to a root, if any of their files exist.

The package that reads them is imported only when such a file exists.
"""

import re
from collections.abc import Hashable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from serena_central.claude_config.locations import FOLDER, LOCAL_SETTINGS, SETTINGS, Locations, stamp_of
from serena_central.core.lru import Lru
from serena_central.files.boundary import OPEN, Access
from serena_central.files.path_watch import PathWatch

if TYPE_CHECKING:
    from serena_central.claude_config.current import CurrentSettings
    from serena_central.claude_config.effective import Effective
    from serena_central.claude_config.permissions import Permissions
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
        return self._watch.get(("claude", root), lambda: self.locations.files(root), lambda: self._read(root))

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
        return self._watch.get(("servers?", root), lambda: self._server_files(root), lambda: self._any_server(root))

    def servers(self, root: Path, *, trusted: bool) -> "Servers":
        """The MCP servers of a root; the same object as long as nothing has changed. `trusted`: a person trusts what
        the repository brings."""
        return self._watch.get(
            ("servers", root, trusted), lambda: self._server_files(root), lambda: self._read_servers(root, trusted)
        )

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


def _holds_server(path: str) -> bool:
    """Blocks for reading the file."""
    try:
        return _A_SERVER.search(Path(path).read_bytes()) is not None
    except OSError:
        return False
