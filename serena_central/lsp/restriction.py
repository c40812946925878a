"""What a language server may do for a project that its user does not trust: run so that it executes nothing of it, or
not at all. Who is trusted is said elsewhere; here is what follows from it.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from serena_central.core.errors import ServerNotTrusted
from serena_central.lsp import confined
from serena_central.lsp.catalogue import ServerSpec, Untrusted
from serena_central.processes.environment import outside, search_path

SHIMS = Path(__file__).with_name("shims")
"""Holds `bin`, with programs that stand in for others."""

_NO_REPOSITORY = {"GIT_DIR": os.devnull, "GIT_TERMINAL_PROMPT": "0", "PYTHONSAFEPATH": "1"}
"""git sees no repository, whichever program runs it: its configuration may name programs (core.fsmonitor, filters,
hooks). Python takes no modules from the folder that it is run in."""


def restriction(spec: ServerSpec, root: Path, untrusted: Path) -> Untrusted:
    """How the server runs in `root`, a folder of the project at `untrusted`. Looks at the disk.

    Raises:
        ServerNotTrusted: where it would execute something of the project.
    """
    how = spec.restricted
    languages = ", ".join(spec.languages)
    if how is None:
        raise ServerNotTrusted(
            spec.name, languages, f"it would execute {spec.executed} of this repository", str(untrusted)
        )
    if how.confined and not confined.version():
        why = "this system has no Landlock, which keeps it from writing files that a project names"
        raise ServerNotTrusted(spec.name, languages, why, str(untrusted))
    for folder in (root, *root.parents):
        found = next((name for name in how.unless if (folder / name).exists()), None)
        if found:
            raise ServerNotTrusted(
                spec.name, languages, f"it would execute what {folder / found} may name", str(untrusted)
            )
    return how


def without(command: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command without these options, as `--name` and `--name=value`."""
    return [word for word in command if word.partition("=")[0] not in options]


def environment(untrusted: Path) -> dict[str, str]:
    """Variables of every program that runs for a project that is not trusted."""
    return {"PATH": outside(search_path(os.environ), untrusted), **_NO_REPOSITORY}
