"""Runs command hooks: each a supervised child with a deadline and bounded output.

What a hook is about travels in its environment and its stdin alone, never in the command line: file names and
arguments stay inert, whatever they hold.
"""

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from serena_central.core.masking import masked
from serena_central.core.quoting import quoted
from serena_central.gates.decisions import NOT_EXECUTABLE, NOT_FOUND, may_decide
from serena_central.gates.events import GateEvent
from serena_central.gates.rules import Hook
from serena_central.processes.child import run
from serena_central.processes.environment import HARMLESS, allowed
from serena_central.processes.fork_server import ForkServer
from serena_central.processes.output import Head, Tail

OUTPUT_BYTES = 256 * 1024
"""Kept of stdout; the rest is read and dropped: the command is not held up."""

TOO_MUCH = f"its output has more than {OUTPUT_BYTES // 1024} KB, and what it decides is unknown. Have it write less."

KEY_BYTES = 256
"""More than the name of a decision takes, which two chunks of an output may share."""

ERROR_BYTES = 16 * 1024

LONGEST_VARIABLE = 100_000
"""Bytes; the kernel takes 128 KB for one. A longer value is on stdin alone."""

FIRST_LINE_BYTES = 256
"""Of a script's first line: the kernel reads no more."""

RUNS_IN = "SERENA_CENTRAL_HOOK"
"""Says to `serena-central call` that a hook makes the call: `holding` after an edit whose files the server holds until
the hook has ended, else `running`."""

NOTHING_GIVEN: Mapping[str, str] = {}


class CommandEnd(NamedTuple):
    """How a command ended. `trouble`: why it could not run, with the remedy; then the rest says nothing."""

    exit_code: int | None
    stdout: str
    stderr: str
    trouble: str = ""


async def run_command(
    hook: Hook,
    event: GateEvent,
    file: str,
    forks: ForkServer | None = None,
    given: Mapping[str, str] = NOTHING_GIVEN,
) -> CommandEnd:
    """Runs a hook in its root, for one file if `file` names one; `given` are more variables. Never raises for what the
    command does."""
    stdout, stderr = _Stdout(OUTPUT_BYTES), Tail(ERROR_BYTES)
    words = [hook.action, *hook.arguments] if hook.arguments is not None else ["/bin/sh", "-c", hook.action]
    try:
        ended = await run(
            words,
            event.root,
            deadline_s=hook.timeout_s,
            given=json.dumps(input_of(event, file)).encode(),
            stdout=stdout,
            stderr=stderr,
            environment={**allowed(HARMLESS, os.environ), **given, **variables(event, file)},
            forks=forks,
        )
    except ValueError:  # NUL in its words
        return CommandEnd(None, "", "", f"its command holds a NUL character. Correct it in {hook.name}.")
    except OSError as error:
        return CommandEnd(None, "", "", f"{error.strerror or error}. {_remedy(hook, event.root)}")
    if ended.timed_out:
        trouble = f"it was ended after {hook.timeout_s:g} s. Make it quicker, or raise its timeout in {hook.name}."
    elif ended.signal is not None:
        trouble = f"it was killed by signal {ended.signal}. Run it by hand to see why: {_shown(hook)}"
    elif ended.code in (NOT_EXECUTABLE, NOT_FOUND):
        said = stderr.text.strip().splitlines()
        trouble = f"{said[-1] if said else f'exit code {ended.code}'}. {_remedy(hook, event.root)}"
    elif ended.code == 0 and stdout.dropped and (stdout.may_decide or holds_json(stdout.text)):
        trouble = TOO_MUCH
    else:
        return CommandEnd(ended.code, stdout.text, stderr.text)
    return CommandEnd(ended.exit_code, "", stderr.text, trouble)


class _Stdout(Head):
    """Keeps the beginning, and knows whether the rest was meant to decide something."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.may_decide = False
        self._end = b""

    def take(self, chunk: bytes) -> None:
        super().take(chunk)
        part = self._end + chunk
        self.may_decide = self.may_decide or (self.dropped > 0 and may_decide(part))
        self._end = part[-KEY_BYTES:]


def holds_json(text: str) -> bool:
    """Whether an output is to decide something, which is unknown where it was cut off."""
    return text.lstrip().startswith("{")


def variables(event: GateEvent, file: str) -> dict[str, str]:
    """The variables that a hook gets beside those of the system."""
    found = {
        "PROJECT_ROOT": str(event.root),
        "CLAUDE_PROJECT_DIR": str(event.root),
        "CLAUDE_SESSION_ID": event.session,
        "HOOK_EVENT": event.name,
        RUNS_IN: "holding" if event.holds else "running",
        "CONVERSATION_SUMMARY": event.summary,
    }
    if event.use is not None:
        found["TOOL_NAME"] = event.use.name
        found["TOOL_ARGS"] = json.dumps(event.use.arguments)
    if file:
        found["FILE_PATH"] = file
    # The kernel takes neither NUL nor what is too long; both are on stdin as JSON.
    encodable = {name: _encodable(value) for name, value in found.items() if "\0" not in value}
    return {name: value for name, value in encodable.items() if len(os.fsencode(value)) < LONGEST_VARIABLE}


def input_of(event: GateEvent, file: str) -> dict[str, Any]:
    """The event's JSON, as Claude Code words it."""
    said: dict[str, Any] = {
        "session_id": event.session,
        "cwd": str(event.root),
        "hook_event_name": event.name,
        **event.more,
    }
    if event.use is not None:
        arguments: Mapping[str, Any] = event.use.arguments
        said["tool_name"] = event.use.name
        said["tool_input"] = {**({"file_path": file} if file else {}), **arguments}
        said["stands_for"] = list(event.use.names[1:])
    return said


def _encodable(text: str) -> str:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair
        return text.encode("utf-8", "replace").decode()
    return text


def _shown(hook: Hook) -> str:
    return quoted(masked(hook.action))


def _remedy(hook: Hook, root: Path) -> str:
    """What to do about a command that did not start."""
    program = hook.action if hook.arguments is not None else _first_word(hook.action)
    if "/" in program:
        path = root / os.path.expanduser(program)  # noqa: PTH111 - relative to the root, not to this process
        if path.is_file() and not os.access(path, os.X_OK):
            return f"Make it executable: chmod +x {shlex.quote(str(path))}"
        if not path.exists():
            return f"There is no file {quoted(path)}. Create it, or correct the command in {hook.name}."
        if trouble := interpreter_trouble(path):
            return trouble
    return f"Install the program, or correct the command in {hook.name}: {_shown(hook)}"


def interpreter_trouble(script: Path) -> str:
    """Why the first line of a script can't start it, with the remedy; "" where nothing is wrong with it. Blocks for a
    moment."""
    try:
        descriptor = os.open(script, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            first = file.read(FIRST_LINE_BYTES).partition(b"\n")[0].decode(errors="replace")
    except OSError:
        return ""
    if not first.startswith("#!"):
        return ""
    if first.endswith("\r"):
        return f"Its lines end with CR LF, which belongs to no interpreter's name. Save {quoted(script)} with LF alone."
    interpreter, _, rest = first.removeprefix("#!").strip().partition(" ")
    missing = "" if shutil.which(interpreter) else interpreter
    if not missing and Path(interpreter).name == "env":
        named = next((word for word in rest.split() if not word.startswith("-") and "=" not in word), "")
        missing = named if named and not shutil.which(named) else ""
    if not missing:
        return ""
    return f"Its interpreter {quoted(missing)} is missing. Install it, or correct the first line of {quoted(script)}."


def _first_word(line: str) -> str:
    try:
        words = shlex.split(line)
    except ValueError:
        return ""
    return next((word for word in words if "=" not in word.partition("/")[0]), "")
