"""The one question about trust that a new user is asked, at a terminal: which folders' repositories are their own.

It is asked once: the answer becomes `trusted_roots` in the user's own settings, or is remembered as a no.
"""

import os
import select
import sys
from pathlib import Path

import click

from serena_central.cli.connecting import project_root
from serena_central.cli.output import printable
from serena_central.config.adding import with_added
from serena_central.config.changing import lock_of
from serena_central.config.load import Sources, load_server_config
from serena_central.config.trust import named_in_settings
from serena_central.core.errors import SerenaCentralError
from serena_central.core.places import Places
from serena_central.files.atomic import write_whole
from serena_central.standalone.edited_text import edited, exact_text
from serena_central.standalone.lock import locked

ANSWER_S = 120.0
"""How long a person has to answer, in seconds; an unattended terminal delays nothing."""

YES, NO = ("y", "yes"), ("", "n", "no")


def offer_trust(places: Places) -> None:
    """Asks, if a person is there who has not been asked, and names no folders in the settings yet."""
    if not _somebody_is_there() or places.asked_file.exists():
        return
    settings = load_server_config({}).value
    if settings.trusted_roots or settings.trust != "prompt":
        return
    suggested = _suggested()
    click.echo(
        "A repository may contain code that language servers execute: build scripts, plug-ins, interpreters. It is "
        "blocked\n"
        "until you trust it: each repository with `serena-central trust DIR`, or now all repositories in your own "
        "folders."
    )
    click.echo(f"Trust all repositories in {suggested}? [y / other patterns, separated by commas / N] ", nl=False)
    answer = _answered()
    if answer is None:
        click.echo("\nNo answer; you will be asked again at the next start.")
        return
    places.create()
    patterns = _patterns(answer, suggested)
    if patterns:
        _write(patterns)
    elif answer.lower() not in NO:
        click.echo("These are not valid folder patterns. Nothing is trusted.")
    places.asked_file.touch(mode=0o600)


def _somebody_is_there() -> bool:
    """Somebody may be asked: at a terminal that is ours to read from."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def _answered() -> str | None:
    readable, _, _ = select.select([sys.stdin], [], [], ANSWER_S)
    return sys.stdin.readline().strip() if readable else None


def _suggested() -> str:
    """The folder that the repository here lies in, where that is one of the user's; else ~/src."""
    home, around = Path.home(), project_root(None).parent
    if around != home and around.is_relative_to(home):
        return f"~/{around.relative_to(home).as_posix()}/*"
    return "~/src/*"


def _patterns(answer: str, suggested: str) -> list[str]:
    if answer.lower() in YES:
        return [suggested]
    given = [part.strip() for part in answer.split(",")]
    if answer.lower() in NO or not all(part.startswith(("/", "~")) for part in given):
        return []
    return [] if named_in_settings(Path.home(), given) else given


def _write(patterns: list[str]) -> None:
    file = Sources().user.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock_of(file)):
            before = exact_text(file.read_bytes()) if file.exists() else ""
            after = edited(before, lambda text: with_added(text, "trusted_roots", patterns, file=file))
            write_whole(file, after.encode())
    except (OSError, UnicodeDecodeError, SerenaCentralError) as error:
        click.echo(f"serena-central: {file} was not changed: {error}", err=True)
        return
    click.echo(printable(f"Written to {file}: trusted_roots: {', '.join(patterns)}. Restart a running server."))
