"""Where the configuration files of the format lie, on every platform, and whether any is there.

It looks with `stat` alone and imports nothing of the package: a user without such files pays for nothing else.
"""

import os
import sys
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"

MANAGED = {
    "linux": "etc/claude-code",
    "darwin": "Library/Application Support/ClaudeCode",
    "win32": "Program Files/ClaudeCode",
}
"""Platform (as `sys.platform`) → folder of the managed tier, below the root of the file system."""

_ROOTS = {"win32": "C:/"}

FOLDER = ".claude"
SETTINGS = "settings.json"
LOCAL_SETTINGS = "settings.local.json"
PROJECT_SERVERS = ".mcp.json"
AGENTS = "agents"
"""The folder of definitions of agents, in a `.claude` folder and in the user's."""

MOST_KEPT = 1000
"""Roots whose paths are remembered; a box has fewer."""

Stamp = tuple[int, int, int] | None


def stamp_of(path: str | Path) -> Stamp:
    """What differs when a file was changed; None where none is."""
    try:
        found = os.stat(path)  # noqa: PTH116 - some are asked about at every call: half of Path's time
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True)
class Locations:
    """Where to look; tests name a file system, a home and an environment of their own."""

    platform: str = sys.platform
    filesystem: Path | None = None
    home: Path = field(default_factory=Path.home)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _paths: dict[Path, tuple[str, tuple[str, ...]]] = field(
        default_factory=dict[Path, tuple[str, tuple[str, ...]]], compare=False, repr=False
    )
    """Root → what `stamp` looks at: the managed folder, and `.claude` of the root and the folders above."""

    @property
    def managed_folder(self) -> Path:
        root = self.filesystem or Path(_ROOTS.get(self.platform, "/"))
        return root / MANAGED.get(self.platform, MANAGED["linux"])

    @property
    def user_folder(self) -> Path:
        """`$CLAUDE_CONFIG_DIR`, else `$XDG_CONFIG_HOME/claude` (`~/.config/claude`) where it exists, else
        `~/.claude`."""
        named = self.environment.get(CONFIG_VARIABLE)
        if named:
            return self._expanded(named)
        folder = self._xdg_folder()
        return folder if folder.is_dir() else self.home / FOLDER

    @property
    def shadowed_user_folder(self) -> Path | None:
        """The user folder that is not read, since another one is; None where there is no second one."""
        others = [folder for folder in (self._xdg_folder(), self.home / FOLDER) if folder != self.user_folder]
        return next((folder for folder in others if (folder / SETTINGS).is_file()), None)

    @property
    def state_file(self) -> Path:
        """`.claude.json`: servers that the client itself has added, for the user and for single projects."""
        named = self.environment.get(CONFIG_VARIABLE)
        return (self._expanded(named) if named else self.home) / ".claude.json"

    def _xdg_folder(self) -> Path:
        named = self.environment.get("XDG_CONFIG_HOME")
        # The specification has relative paths ignored.
        base = Path(named) if named and Path(named).is_absolute() else self.home / ".config"
        return base / "claude"

    def _expanded(self, named: str) -> Path:
        if named == "~" or named.startswith("~/"):
            return self.home / named[2:]
        return Path(named).absolute()

    def brought_folder(self, root: Path) -> Path | None:
        """The `.claude` folder that a root brings, there or not; None where it is the user's own by any path: that of
        the home folder, where sessions without a project are."""
        folder, own = root / FOLDER, self.user_folder
        if folder == own:
            return None
        try:
            return None if folder.samefile(own) else folder
        except OSError:  # one of them is not there
            return folder

    def managed_files(self) -> list[Path]:
        """`managed-settings.json`, then the files of `managed-settings.d` by name; they need not be there."""
        folder = self.managed_folder
        try:
            names = sorted(name for name in os.listdir(folder / "managed-settings.d") if _is_drop_in(name))  # noqa: PTH208
        except OSError:
            names = []
        return [folder / "managed-settings.json", *(folder / "managed-settings.d" / name for name in names)]

    def around(self, root: Path) -> Iterator[Path]:
        """Folders above a root whose rules count in it, too, from the nearest: those below the home folder or, for a
        root elsewhere, below the file system's root."""
        for folder in root.parents:
            if folder == folder.parent or self.home.is_relative_to(folder):
                return
            yield folder

    def files(self, root: Path) -> Iterator[str]:
        """All that `stamp` depends on, there or not, and the repository's MCP servers and where it ends; a folder whose
        every file counts ends in `/`."""
        managed = self.managed_folder
        yield from (f"{managed}/managed-settings.json", f"{managed}/managed-settings.d/")
        for user in {self.user_folder, *self._user_folders}:
            yield f"{user}/{SETTINGS}"
        yield f"{root}/{FOLDER}/{AGENTS}/"
        for folder in (root, *self.around(root)):
            yield from (f"{folder}/{FOLDER}/{SETTINGS}", f"{folder}/{FOLDER}/{LOCAL_SETTINGS}")
            yield from (f"{folder}/{PROJECT_SERVERS}", f"{folder}/.git")

    def _quick_user_folder(self) -> str:
        """`user_folder` as a string, in a tenth of the time."""
        if CONFIG_VARIABLE in self.environment:
            return str(self.user_folder)
        xdg, otherwise = self._user_folders
        return xdg if os.path.isdir(xdg) else otherwise  # noqa: PTH112

    @cached_property
    def _user_folders(self) -> tuple[str, str]:
        return str(self._xdg_folder()), str(self.home / FOLDER)

    def stamp(self, root: Path) -> Hashable:
        """What differs when the settings that count in a root may; None where there are none. Some microseconds."""
        known = self._paths.get(root)
        if known is None:
            if len(self._paths) > MOST_KEPT:
                self._paths.clear()
            folders = tuple(f"{folder}/{FOLDER}" for folder in (root, *self.around(root)))
            known = self._paths[root] = str(self.managed_folder), folders
        managed, folders = known
        found: list[Stamp] = []
        if stamp_of(managed) is not None:
            found += map(stamp_of, self.managed_files())
        found.append(stamp_of(f"{self._quick_user_folder()}/{SETTINGS}"))
        for own in folders:
            if stamp_of(own) is not None:
                found += (stamp_of(f"{own}/{SETTINGS}"), stamp_of(f"{own}/{LOCAL_SETTINGS}"))
        return tuple(found) if any(found) else None


def _is_drop_in(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")
