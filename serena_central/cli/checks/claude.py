"""Checks of settings files in Claude Code's format: the user's and managed ones, and those of projects."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from serena_central.claude_config.locations import Locations
from serena_central.cli.checks.check import Check, failed, ok, warning

NAME = "claude settings"

MOST_SHOWN = 20


def check_claude_settings(roots: Iterable[Path]) -> Iterator[Check]:
    """One line for each error. Says nothing where there are no such files, and imports nothing for it."""
    locations = Locations()
    with_files = [root for root in dict.fromkeys(roots) if locations.stamp(root) is not None]
    if not with_files:
        return
    from serena_central.claude_config.effective import load

    found: dict[str, Check] = {}
    for root in with_files:
        for one in load(root, locations).files:
            for problem in one.problems:
                if problem.severity == "error":
                    advice = f"`serena-central claude check --project {root}` lists everything"
                    whole = "the file can't be used as a whole; only its rules count: " if one.broken else ""
                    text = f"{whole}{problem}"
                    check = failed(NAME, text, advice) if one.broken else warning(NAME, text, advice)
                    found.setdefault(str(problem), check)
    yield from list(found.values())[:MOST_SHOWN]
    if not found:
        yield ok(NAME, "no errors")
