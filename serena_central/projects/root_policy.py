"""Decides which folders may become projects, and who may open them.

What a project may be edited in, a prompt injection may edit, too: a folder whose files are run by other programs, or
hold keys, is not a project unless a person names it in `allowed_roots`. Paths are real ones: links are followed before.
"""

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import msgspec

from serena_central.core.errors import OutsideAllowedRoots, ProjectRefused
from serena_central.core.quoting import is_visible, quoted
from serena_central.files.boundary import in_git

PROJECT_FILE = ".serena/project.yml"
MARKERS = (PROJECT_FILE, ".git")
"""What makes a folder a project without anybody's word: its settings, or a repository."""


MANIFESTS = (
    *("pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "CMakeLists.txt", "pom.xml"),
    *("build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "mix.exs", "pubspec.yaml", "Package.swift"),
)
"""What people write at the top of a project; builds seldom leave one in their folders."""


class RefusedFolder(NamedTuple):
    """A folder that is refused as a root, with all below it. `~` is the home folder; a part may be a pattern."""

    path: str
    why: str


PLACES = (
    RefusedFolder("/proc", "it exposes the kernel and other processes"),
    RefusedFolder("/sys", "it exposes the kernel"),
    RefusedFolder("/dev", "it contains devices"),
    RefusedFolder("/etc", "it contains the system configuration"),
    RefusedFolder("~/.serena", "it contains this server's settings and the global memories"),
    RefusedFolder("~/.ssh", "it contains keys"),
    RefusedFolder("~/.gnupg", "it contains keys"),
    RefusedFolder("~/.aws", "it contains credentials"),
    RefusedFolder("~/.config", "it contains settings of programs, including commands that they run"),
    RefusedFolder("~/.claude", "it contains the settings of an agent, including commands that it runs"),
    RefusedFolder("~/.codex", "it contains the settings of an agent, including commands that it runs"),
    RefusedFolder("~/.*", "dot folders in the home folder contain settings and data of programs"),
)
"""The first that fits gives the reason."""

WORKTREES = "~/.*/worktrees/*"
"""Where agents put checkouts of their own: no program's settings."""


class Opener(msgspec.Struct, frozen=True):
    """The requester of a project to be opened. `works_in` is the folder that the client says it works in, by its
    configuration or its roots: its person chose that, no model did.

    `person`: somebody typed it at a command line or clicked it in the dashboard. Any holder of the token can claim it;
    it is a guard-rail for models under prompt injection that have only the tools of MCP, not a boundary against
    programs of this user.
    """

    person: bool = False
    works_in: Path | None = None


PERSON = Opener(person=True)


class RootPolicy:
    """`home` is the user's home folder; `own` are folders of the server itself; `allowed` is the setting
    `allowed_roots`. All are real paths; nothing here is changed later."""

    def __init__(self, *, home: Path, own: Sequence[Path], allowed: Sequence[Path]) -> None:
        self.home = home
        self.allowed = allowed
        self._places = [
            *(RefusedFolder(str(folder), "it contains this server's own data, including its token") for folder in own),
            *(RefusedFolder(place.path.replace("~", str(home), 1), place.why) for place in PLACES),
        ]
        self._worktrees = WORKTREES.replace("~", str(home), 1)
        self._of_tasks = [f"{folder}/worktrees/*" for folder in own]

    def check(self, root: Path) -> None:
        """Raises ProjectRefused for folders that must never become a project."""
        if not is_visible(str(root)):
            raise ProjectRefused(
                f"{quoted(root)} can't be a project: its path contains invisible characters or is not UTF-8. "
                "Rename the folder."
            )
        if self.home.is_relative_to(root):
            raise ProjectRefused(
                f"{quoted(root)} can't be a project: it is the home folder or above it. Name a folder inside it."
            )
        if any(_below(root, pattern) is not None for pattern in self._of_tasks):
            return  # made by this server, of a project that is allowed
        refused = self._refused(root)
        if refused is not None and not self._names(refused, root):
            raise ProjectRefused(
                f"{quoted(root)} can't be a project: {refused.why}. To allow it anyway, the user can add "
                "this exact folder to allowed_roots in ~/.serena/serena_config.yml, together with all other allowed "
                "folders."
            )
        if self.allowed and not self.is_allowed(root):
            raise OutsideAllowedRoots(str(root), list(map(str, self.allowed)))

    def is_allowed(self, root: Path) -> bool:
        """Whether it lies in one of `allowed_roots`."""
        return any(root.is_relative_to(folder) for folder in self.allowed)

    def check_opener(self, root: Path, opener: Opener) -> None:
        """Raises ProjectRefused where a person's word is needed, and an agent asks."""
        works_there = opener.works_in is not None and opener.works_in.is_relative_to(root)
        if opener.person or works_there or self.is_allowed(root) or has_marker(root):
            return
        raise ProjectRefused(
            f"{quoted(root)} is not opened for an agent: it is not a repository, has no {PROJECT_FILE}, and the client "
            "does not work in it. The user can allow it with `serena-central serve --project DIR`, or, while the "
            "server runs, with `serena-central call list_dir --relative-path . --project DIR`, or with allowed_roots "
            "in ~/.serena/serena_config.yml."
        )

    def _refused(self, root: Path) -> RefusedFolder | None:
        top = next((folder for folder in (root, *root.parents) if in_git(folder.name)), None)
        if top is not None:
            return RefusedFolder(str(top), "it is inside a repository's .git, which configures what git runs")
        if _below(root, self._worktrees) is not None:
            return None
        for place in self._places:
            found = _below(root, place.path)
            if found is not None:
                return RefusedFolder(str(found), place.why)
        return None

    def _names(self, refused: RefusedFolder, root: Path) -> bool:
        """Whether `allowed_roots` names the root, or a folder around it that is not wider than what is refused."""
        return any(root.is_relative_to(one) and one.is_relative_to(refused.path) for one in self.allowed)


def has_marker(folder: Path) -> bool:
    """Whether a folder is a repository, or has settings of its own."""
    return any(os.path.exists(folder / marker) for marker in MARKERS)  # noqa: PTH110 - as in the registry


def has_manifest(folder: Path) -> bool:
    """Whether a folder looks like the top of a project."""
    return any(os.path.exists(folder / name) for name in MANIFESTS)  # noqa: PTH110 - as in the registry


def _below(root: Path, pattern: str) -> Path | None:
    """The folder, a root or one above it, that fits a pattern part by part."""
    wanted = Path(pattern).parts
    parts: Iterable[tuple[str, str]] = zip(root.parts, wanted, strict=False)
    if len(root.parts) >= len(wanted) and all(fnmatchcase(*pair) for pair in parts):
        return Path(*root.parts[: len(wanted)])
    return None
