"""Asks git what changed in a repository since a revision, and what files contained then.

The configuration of a repository names programs: a monitor, hooks, filters, ways to fetch. If the
repository is not trusted, none of them runs.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import InvalidArguments

TIMEOUT_S = 60.0

NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's name for a tree without files, in every repository."""

SHOWN_CHARS = 100
"""Of what is no revision, in an error."""

_HASH = re.compile("[0-9a-f]{40,64}")

_GITLINK = "160000 "

_NO_PROGRAMS = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}

_NOTHING_FETCHED = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}


class Changed(NamedTuple):
    """A file that differs from a revision. `path` is relative to `folder`, which lies in the repository that knows the
    `revision`."""

    folder: Path
    revision: str
    path: str

    @property
    def absolute(self) -> str:
        return str(self.folder / self.path)


def changed_since(root: Path, revision: str, *, trusted: bool) -> list[Changed]:
    """Files below the root that differ from a revision, or that git does not know yet; in submodules, from what the
    revision has of them. A renamed file is one that is gone and one that is new.

    Raises:
        InvalidArguments
    """
    return _changed(root, _commit_of(root, revision), trusted=trusted)


def is_one_repository(root: Path, other: Path) -> bool:
    """Whether git knows two folders as parts of one working tree.

    Raises:
        InvalidArguments
    """
    asked = ("rev-parse", "--show-toplevel")
    one, two = (_git(folder, *asked, environment=_configured(_NO_PROGRAMS)) for folder in (root, other))
    return one == two


def _commit_of(root: Path, revision: str) -> str:
    """The hash of the one commit that a revision names: no range, no folder, no option."""
    if not revision or revision.startswith("-") or not revision.isprintable():
        raise InvalidArguments(f"{_shown(revision)} is not a revision. Pass a commit, a branch or a tag.")
    asked = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    said = _git(root, *asked, environment=_configured(_NO_PROGRAMS)).strip()
    if not _HASH.fullmatch(said):  # "^HEAD" has a hash, too: of all that is not there
        raise InvalidArguments(f"{_shown(revision)} is not a single commit. Pass a commit, a branch or a tag.")
    return said


def _shown(revision: str) -> str:
    return repr(revision if len(revision) <= SHOWN_CHARS else f"{revision[:SHOWN_CHARS]}…")


def _changed(root: Path, revision: str, *, trusted: bool) -> list[Changed]:
    environment = None if trusted else _harmless(root)
    # Looking for changes within submodules, git would run with their configuration: they are asked one by one instead.
    ignored = f"--ignore-submodules={'none' if trusted else 'dirty'}"
    diff = ("diff", "--name-only", "--no-renames", "--relative", "--no-ext-diff", ignored, "-z", revision)
    differing = _git(root, *diff, "--", environment=environment).split("\0")
    unknown = _git(root, "ls-files", "--others", "--exclude-standard", "-z", environment=environment).split("\0")
    inside = [] if trusted else _submodules(root, environment)
    found: list[Changed] = []
    for path in sorted({path for path in (*differing, *unknown, *inside) if path}):
        if not (root / path / ".git").exists():
            found.append(Changed(root, revision, path))
        elif not path.endswith("/"):  # what git tells as a folder is a repository of its own
            known = _git(root, "ls-tree", revision, "--", path, environment=environment).split()
            commit = known[2] if "commit" in known[:2] else NOTHING
            found += _changed(root / path, commit, trusted=trusted)
    return found


def texts_before(changed: Iterable[Changed]) -> dict[str, str]:
    """Absolute path → what a file held in its revision; without those that were not there. git runs no program for it.

    Raises:
        InvalidArguments
    """
    texts: dict[str, str] = {}
    for (folder, revision), files in groupby(changed, key=lambda one: one[:2]):
        paths = [one.path for one in files if "\n" not in one.path]
        asked = "".join(f"{revision}:./{path}\n" for path in paths).encode()
        told = _run(folder, "cat-file", "--batch", environment=_configured(_NO_PROGRAMS), text=asked)
        for path, content in zip(paths, _contents(told), strict=False):
            if content is not None:
                texts[str(folder / path)] = content.decode("utf-8", errors="replace")
    return texts


def _contents(told: bytes) -> Iterator[bytes | None]:
    """What `git cat-file --batch` tells, one by one: contents, None for what is missing."""
    while told:
        head, _, told = told.partition(b"\n")
        if head.endswith((b" missing", b" ambiguous")):
            yield None
            continue
        size = int(head.rpartition(b" ")[2])
        yield told[:size]
        told = told[size + 1 :]


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
    return _run(root, *arguments, environment=environment).decode("utf-8", errors="surrogateescape")


def _run(root: Path, *arguments: str, environment: Mapping[str, str] | None, text: bytes = b"") -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            input=text,
            timeout=TIMEOUT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidArguments(f"cannot run git to list changes: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", errors="replace").strip()
        raise InvalidArguments(f"git failed to list changes: {said[:1000]}")
    return done.stdout
