"""What changed in a repository since a revision, asked of the user's own git.

The configuration of a repository names programs: a monitor, hooks, filters, ways to fetch. Where its user does not
trust it, none of them runs.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

TIMEOUT_S = 60.0

NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's name for a tree without files, in every repository."""

_GITLINK = "160000 "

_NO_PROGRAMS = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}

_NOTHING_FETCHED = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}


def changed_since(root: Path, revision: str, *, trusted: bool) -> list[str]:
    """Absolute paths of files below the root that differ from a revision, or that git does not know yet; in submodules,
    from what the revision has of them. Raises ClickException."""
    if revision.startswith("-"):
        raise click.ClickException(f"{revision!r} is no revision.")
    environment = None if trusted else _harmless(root)
    # Looking for changes within submodules, git would run with their configuration: they are asked one by one instead.
    submodules = "none" if trusted else "dirty"
    diff = ("diff", "--name-only", "--relative", "--no-ext-diff", f"--ignore-submodules={submodules}", "-z", revision)
    differing = _git(root, *diff, "--", environment=environment).split("\0")
    unknown = _git(root, "ls-files", "--others", "--exclude-standard", "-z", environment=environment).split("\0")
    inside = [] if trusted else _submodules(root, environment)
    found: list[str] = []
    for path in sorted({path for path in (*differing, *unknown, *inside) if path}):
        if not (root / path / ".git").exists():
            found.append(str(root / path))
        elif not path.endswith("/"):  # what git tells as a folder is a repository of its own
            known = _git(root, "ls-tree", revision, "--", path, environment=environment).split()
            commit = known[2] if "commit" in known[:2] else NOTHING
            found += changed_since(root / path, commit, trusted=trusted)
    return found


def _submodules(root: Path, environment: Mapping[str, str] | None) -> list[str]:
    """Paths of the submodules that are checked out."""
    staged = _git(root, "ls-files", "--stage", "-z", environment=environment).split("\0")
    links = (line.partition("\t")[2] for line in staged if line.startswith(_GITLINK))
    return [path for path in links if (root / path / ".git").exists()]


def _harmless(root: Path) -> dict[str, str]:
    """An environment in which git runs no program that the repository names. Filters are known by name alone."""
    environment = _configured(_NO_PROGRAMS)
    named = _git(root, "config", "--null", "--name-only", "--list", environment=environment).split("\0")
    filters = {name.rpartition(".")[0] for name in named if name.startswith("filter.")}
    off = {f"{name}.{key}": "" for name in filters for key in ("clean", "smudge", "process")}
    return _configured(_NO_PROGRAMS | off | {f"{name}.required": "false" for name in filters})


def _configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Git's environment for settings that count for more than any file's (`git help config`, "GIT_CONFIG_COUNT")."""
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**os.environ, **_NOTHING_FETCHED, **pairs}


def _git(root: Path, *arguments: str, environment: Mapping[str, str] | None) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.ClickException(f"git can't be asked what changed: {error}") from error
    if done.returncode:
        raise click.ClickException(f"git does not say what changed: {done.stderr.strip()}")
    return done.stdout
