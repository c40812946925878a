"""Maps errors to messages and exit codes for every command.

A command raises errors, or `Unsuccessful` if its own output already reports the failure; it never chooses a code.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from serena_central.cli.remote import NoServer, Refused
from serena_central.core.errors import ConfigError, InvalidArguments, SerenaCentralError
from serena_central.standalone.exit_codes import DONE, FAILED, INTERRUPTED, NO_SERVER, USAGE

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed or findings, 2 wrong usage or settings, 3 no server, 129 terminal closed, "
    "130 Ctrl-C, 143 SIGTERM."
)

_WRONG_USAGE = ("invalid_arguments", "unknown_tool")
"""Errors of the server, by kind, that the command line caused."""


class Unsuccessful(click.exceptions.Exit):
    """Ends with code 1: what was printed already says what failed or was found."""

    def __init__(self) -> None:
        super().__init__(FAILED)


class WrongSettings(click.exceptions.Exit):
    """Ends with code 2: what was printed already says which settings have no effect."""

    def __init__(self) -> None:
        super().__init__(USAGE)


class ChildFailed(SerenaCentralError):
    """A command of ours that this one ran ended with `code`, which becomes its own."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def exit_code_of(error: SerenaCentralError) -> int:
    """The exit code that stands for an error."""
    if isinstance(error, ChildFailed):
        return error.code
    if isinstance(error, NoServer):
        return NO_SERVER
    wrong_call = isinstance(error, Refused) and error.kind in _WRONG_USAGE
    return USAGE if wrong_call or isinstance(error, (ConfigError, InvalidArguments)) else FAILED


def end_with_code(program: str, run: Callable[[], Any]) -> None:
    """Runs a program to its end; raises SystemExit unless all went well. `run` may return a code."""
    _print_whatever_comes()
    try:
        outcome = run()
        code = outcome if isinstance(outcome, int) else DONE
    except click.ClickException as error:
        _show(program, error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except SerenaCentralError as error:
        click.echo(f"{program}: {error}", err=True)
        code = exit_code_of(error)
    except OSError as error:
        _report(program, error)
        code = FAILED
    if code:
        sys.exit(code)


def _show(program: str, error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # the help, which is no failure's reason
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
    click.echo(f"{program}: {error.format_message()}", err=True)


def _print_whatever_comes() -> None:
    """A terminal or pipe that can't show a character gets its escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore


def _report(program: str, error: OSError) -> None:
    """Output that nobody takes (a full disk, a closed pipe) comes here, too: what is left of it is dropped, since
    Python would try again at the exit, and report that with a traceback."""
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        click.echo(f"{program}: {reason_of(error)}", err=True)
    except OSError:
        os.dup2(sink, 2)
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(sink, 1)
    os.close(sink)


def reason_of(error: OSError) -> str:
    """What the system refused, for people."""
    if isinstance(error, FileNotFoundError) and not error.filename and _has_no_folder():
        return "the current folder was removed: change to another one"
    return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"


def _has_no_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return True
    return False
