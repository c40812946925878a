"""The tool that runs shell commands; off unless the server's own settings allow it.

A command runs in the project under a supervisor, in a process group of its own, with an environment that holds no
secrets; it and all that it started are gone when the call ends, however it ends.
"""

import os
import sys
from typing import Annotated

import msgspec
from msgspec import Meta

from serena_central.core.errors import InvalidArguments, ToolRefused
from serena_central.processes.child import STDERR_TAIL_BYTES, run
from serena_central.processes.environment import HARMLESS, allowed
from serena_central.processes.output import Head, Tail
from serena_central.projects.project import Project
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.project_call import check_command

OUTPUT_BYTES = 20 * 1024
"""Kept of what a command prints, so that it fits into an answer; the rest is read and dropped: nothing is blocked."""

MAX_COMMAND = 100_000
"""Characters; the kernel takes 128 KB as one argument."""


class CommandResult(msgspec.Struct):
    """What a command printed (decoded as UTF-8), and its exit code; negative for a signal."""

    stdout: str
    stderr: str | None
    return_code: int | None
    cwd: str


@tool(
    "Run a shell command",
    answers="{stdout, stderr, return_code, cwd}",
    reads=False,
    edits=True,
    journaled=False,
    destructive=True,
    idempotent=False,
    shown="optional",
    spans=True,
    open_world=True,
    needs="execute_shell",
    timeout_s=240,
)
async def execute_shell_command(
    call: ToolCall,
    target: Project,
    command: Annotated[str, Meta(description="The command line, run by a shell")],
    cwd: Annotated[str, Meta(description="Folder, relative to the project; empty: the project root")] = "",
    capture_stderr: Annotated[bool, Meta(description="Also return stderr")] = True,
) -> CommandResult:
    """Runs a command in the project and answers its output and exit code. It gets no input."""
    if not command.strip() or "\0" in command or len(command) > MAX_COMMAND:
        raise InvalidArguments(f"execute_shell_command: the command must have at most {MAX_COMMAND} characters.")
    if sys.platform == "win32":
        raise ToolRefused("Shell commands are not supported on Windows.")
    inside = target.locate_folder(cwd)
    check_command(call, target, command, inside)
    folder = target.root / inside
    output, errors = Head(OUTPUT_BYTES), Tail(STDERR_TAIL_BYTES)
    shell, environment = ["/bin/sh", "-c", command], allowed(HARMLESS, os.environ)
    # No deadline but the call's own.
    ended = await run(shell, folder, deadline_s=None, stdout=output, stderr=errors, environment=environment)
    call.services.tasks.ran(call.session.id, command, ended.exit_code)
    if output.dropped:
        call.note(f"Truncated: {output.dropped} bytes of output after the first {OUTPUT_BYTES} were dropped.")
    if capture_stderr and errors.dropped:
        call.note(f"Truncated: only the last {STDERR_TAIL_BYTES} bytes of stderr are shown.")
    return CommandResult(output.text, errors.text if capture_stderr else None, ended.exit_code, str(folder))
