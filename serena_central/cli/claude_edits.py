"""The commands of `serena-central claude` that change files: set a value, open the right file.

Comments, order and layout of a file stay as they are. What a file was before `claude set` is kept, to go back to.
"""

import hashlib
import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import click
import msgspec

from serena_central.claude_config.document import Document, as_list
from serena_central.claude_config.locations import (
    FOLDER,
    LOCAL_SETTINGS,
    SETTINGS,
    Locations,
)
from serena_central.claude_config.merge import get
from serena_central.claude_config.problems import KeyPath, Problem, Severity, dotted
from serena_central.claude_config.reading import read_text
from serena_central.claude_config.tiers import Tier, TierFile
from serena_central.cli.connecting import Here
from serena_central.cli.given import GivenPath, json_given
from serena_central.cli.output import json_option, print_json, say
from serena_central.cli.trust import project_root, trust_kept
from serena_central.clients.change import Unusable
from serena_central.clients.forms import Malformed
from serena_central.clients.json_form import JsonForm
from serena_central.config.document import MAX_BYTES
from serena_central.core.decoding import from_json
from serena_central.core.errors import ConfigError, InvalidArguments, SerenaCentralError
from serena_central.core.nofollow import open_following
from serena_central.core.places import Places
from serena_central.files.atomic import write_whole
from serena_central.standalone.edited_text import edited, exact_text
from serena_central.standalone.private import as_user

FORM = JsonForm(relaxed=True)

TIERS = [Tier.USER, Tier.PROJECT, Tier.LOCAL]
"""Those that a user changes; managed settings belong to the machine's administrator."""

SERVERS = "mcpServers"
"""The key of MCP servers."""

TRIES = 5
"""How often a change is tried where another program keeps changing the file."""

tier_option = click.option(
    "--tier", type=click.Choice([str(tier) for tier in TIERS]), default="local", help="Which file; default: local."
)
folder_option = click.option("--project", "folder", type=GivenPath(path_type=Path), help="Of this folder.")


class _Before(msgspec.Struct):
    """A file's text before a change, and after it."""

    file: str
    before: str | None
    after: str


class _Overtaken(ConfigError):
    """Another program has changed a file that was about to be replaced."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            "file", "another program keeps changing it. It was not changed here; try again", file=str(file)
        )


def file_of(tier: str, folder: Path | None) -> Path:
    """The settings file of a tier."""
    if tier == Tier.USER:
        return Locations().user_folder / SETTINGS
    return project_root(folder) / FOLDER / (SETTINGS if tier == Tier.PROJECT else LOCAL_SETTINGS)


@click.command("set", epilog="Example: serena-central claude set permissions.deny 'Read(./.env)' --add --tier project")
@click.argument("key", required=False)
@click.argument("value", required=False)
@tier_option
@click.option("--add", is_flag=True, help="Add to a list instead of replacing it.")
@click.option("--undo", is_flag=True, help="Make the file what it was before the last change by this command.")
@folder_option
@json_option
def set_value(
    key: str | None, value: str | None, *, tier: str, add: bool, undo: bool, folder: Path | None, as_json: bool
) -> None:
    """Set one value; VALUE is JSON, or else text. Comments and order of the file stay."""
    if undo == (key is not None) or (not undo and value is None):
        raise click.UsageError("Give KEY and VALUE, or --undo.")
    file = file_of(tier, folder)
    if undo:
        _undo(file)
    else:
        _put(file, tier, _path_of(key or ""), _value_of(value or ""), add=add)
    if as_json:
        print_json({"file": str(file), "undone" if undo else "set": True if undo else key})
    else:
        say(f"{file}: {'as it was before' if undo else f'{key} is set'}.")


def _path_of(key: str) -> tuple[str, ...]:
    parts = tuple(key.split("."))
    if not all(parts):
        raise InvalidArguments(f"{key!r} is no key: name its parts with dots between them.")
    return parts


def _value_of(text: str) -> Any:
    try:
        return json_given(text)
    except ValueError:
        return text


def _put(file: Path, tier: str, key: tuple[str, ...], value: Any, *, add: bool) -> None:
    def edit(text: str) -> str:
        wanted = value
        if add:
            held = get(Document(str(file), text).value, key)
            if held is not None and not isinstance(held, list):
                raise InvalidArguments(f"{'.'.join(key)} is not a list in {file}.")
            items = as_list(held) or []
            wanted = items if value in items else [*items, value]
        after = FORM.put(text, key, wanted)
        _check(file, tier, key, after, text)
        return after

    change(file, ".".join(key), edit, undoable=True)


def _check(file: Path, tier: str, key: KeyPath, after: str, before: str) -> None:
    """Raises ConfigError where the change brings an error that was not there."""
    known = {(one.key, one.text) for one in _errors(file, tier, before)}
    for one in _errors(file, tier, after):
        if (one.key, one.text) not in known:
            raise ConfigError(one.key or dotted(key), f"{one.text} ({one.remedy}). Nothing was changed", file=str(file))


def _errors(file: Path, tier: str, text: str) -> list[Problem]:
    read = read_text(TierFile(Tier(tier), file, file.parent), text, os.environ)
    return [one for one in read.problems if one.severity is Severity.ERROR]


def text_of(file: Path) -> str | None:
    """The `exact_text` of a settings file; None if there is none.

    Raises:
        ConfigError
    """
    try:
        descriptor = open_following(str(file))  # which waits for nobody who writes a pipe
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError("file", "must be a regular file", file=str(file))
        if status.st_size > MAX_BYTES:  # nobody reads it
            raise ConfigError("file", f"is larger than {MAX_BYTES} bytes", file=str(file))
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return exact_text(stream.read())
    except UnicodeDecodeError as error:
        raise ConfigError("file", "must be UTF-8 text", file=str(file)) from error
    finally:
        os.close(descriptor)


Edit = Callable[[str], str | None]
"""Makes the new text of a settings file of the present one ("" where there is no file), or None to leave it. May raise
Malformed, and is called again where another program was faster."""


def change(file: Path, key: str, edit: Edit, *, private: bool = False, undoable: bool = False) -> None:
    """Changes what a settings file says of a key. `undoable`: what it was is kept, for `claude set --undo`. A `private`
    file is the user's alone from now on.

    Raises:
        ConfigError
        OSError: another command does not come to an end, or the file can't be written.
    """
    with _alone(file) as kept:
        for tries_left in reversed(range(TRIES)):
            before = text_of(file)
            after = planned(file, key, edit, before)
            if after is None or (after == before and not private):
                return
            # What changes no text must not stand in the way of undoing the change before it.
            is_kept = undoable and after != before
            keeping = _kept_if_made(kept, _Before(str(file), before, after)) if is_kept else nullcontext()
            try:
                with keeping:
                    _replace(file, before, after, private=private)
            except _Overtaken:
                if not tries_left:
                    raise
            else:
                return


def planned(file: Path, key: str, edit: Edit, before: str | None) -> str | None:
    """What `change` makes of a file with this text, if there is one.

    Raises:
        ConfigError: the text can't be read, or has something else in the key's place; or a new value is not a text.
    """
    try:
        after = edited(before or "", edit)
        if after is not None:
            after.encode()
    except Malformed as error:
        raise ConfigError(key, str(error), file=str(file), line=error.line) from error
    except UnicodeEncodeError as error:  # half of a surrogate pair, or a byte of the command line that is not a text
        raise ConfigError(key, "the value can't be written as UTF-8", file=str(file)) from error
    return after


@contextmanager
def _kept_if_made(kept: Path, change: "_Before") -> Generator[None]:
    """Keeps what undoes a change before it is made in the block; if it is not, what undid the one before."""
    earlier = kept.read_bytes() if kept.exists() else None
    write_whole(kept, msgspec.json.encode(change))
    try:
        yield
    except BaseException:
        if earlier is None:
            kept.unlink()
        else:
            write_whole(kept, earlier)
        raise


@contextmanager
def _alone(file: Path) -> Generator[Path]:
    """Lets one command at a time change a settings file, those that change it as a client's included. The path for its
    text before the change; no files of ours come into a repository."""
    folder = Places.of_user().home / "settings-before"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = hashlib.sha256(str(file).encode()).hexdigest()[:20]
    try:
        with Here.now().backups.alone(file):
            yield folder / f"{name}.json"
    except Unusable as error:
        raise ConfigError("file", str(error), file=str(file)) from error


def _replace(file: Path, before: str | None, after: str | None, *, private: bool = False) -> None:
    """Makes one text of a file another; None stands for no file. A link of the user's own, into a repository of
    dotfiles for example, stays one; in a project it could lead anywhere.

    Raises:
        _Overtaken: it is no longer the one.
    """
    target = file.resolve() if file.parent == Locations().user_folder else file

    def check() -> None:
        if text_of(file) != before:
            raise _Overtaken(file)

    with trust_kept(file, before, after), as_user():
        if after is None:
            check()
            target.unlink()
        else:
            write_whole(target, after.encode(), shared=not private, check=check)


def _undo(file: Path) -> None:
    with _alone(file) as path:
        try:
            kept = from_json(path.read_bytes(), _Before)
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidArguments(f"No change of {file} by this command is known.") from error
        if text_of(file) != kept.after:
            raise InvalidArguments(f"{file} was changed since, and stays as it is.")
        _replace(file, kept.after, kept.before)
        path.unlink()


@click.command(epilog="Example: serena-central claude edit --tier project")
@tier_option
@click.option("--print", "print_only", is_flag=True, help="Print the file's path instead of opening it.")
@folder_option
@json_option
def edit(*, tier: str, print_only: bool, folder: Path | None, as_json: bool) -> None:
    """Open a tier's file in your editor ($VISUAL, $EDITOR), and check it afterwards."""
    file = file_of(tier, folder)
    if as_json or print_only:
        if as_json:
            print_json({"file": str(file)})
        else:
            say(str(file))
        return
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor or not editor.strip():
        raise InvalidArguments(f"$EDITOR names no program. The file is {file}.")
    if not file.exists():
        with suppress(_Overtaken):
            _replace(file, None, "{\n}\n")
    try:
        program = shlex.split(editor)
    except ValueError as error:  # a quotation mark without its other half
        raise InvalidArguments(f"$VISUAL or $EDITOR is no command line: {editor!r} ({error}).") from error
    ended = subprocess.run([*program, str(file)], check=False)
    if ended.returncode:
        raise SerenaCentralError(f"{program[0]} ended with exit code {ended.returncode}. The file is {file}.")
    read = read_text(TierFile(Tier(tier), file, file.parent), text_of(file) or "", os.environ)
    for one in read.problems:
        say(str(one), err=True)
