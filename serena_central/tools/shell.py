"""The one tool that runs commands: off unless the server's own settings allow it.

A command runs in the project under the guard, in a process group of its own, with an environment that holds no secrets;
it and all that it started are gone when the call ends, however it ends.
"""

import os
import re
import sys
from collections.abc import Mapping
from typing import Annotated

import anyio
import msgspec
from anyio.abc import ByteReceiveStream
from msgspec import Meta

from serena_central.core.errors import InvalidArguments, ToolRefused
from serena_central.lsp.locate import Launch
from serena_central.lsp.process import STDERR_TAIL_BYTES, Ladder, guarded
from serena_central.projects.project import Project
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall

OUTPUT_BYTES = 20 * 1024
"""Kept of what a command prints, so that it fits into an answer; the rest is read and dropped: nothing is blocked."""

MAX_COMMAND = 100_000
"""Characters; the kernel takes 128 KB as one argument."""

AT_ONCE = Ladder(0.0, 0.3)
"""For a command whose call was cancelled: it had no input anyway, and a person who ends it wants to see it end."""

_HARMLESS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TERM|TMPDIR|TMP|TEMP|TZ|PWD|XDG_\w+|DISPLAY|EDITOR"
    r"|GOPATH|GOROOT|GOBIN|GOFLAGS|GOMODCACHE|CARGO_HOME|RUSTUP_HOME|RUSTUP_TOOLCHAIN|JAVA_HOME|MAVEN_HOME|GRADLE_HOME"
    r"|NVM_DIR|NODE_PATH|PNPM_HOME|PYENV_ROOT|VIRTUAL_ENV|CONDA_PREFIX|DOTNET_ROOT|GEM_HOME|SYSTEMROOT|COMSPEC|PATHEXT"
)
"""Variables that commands get. Others may be secrets, under whatever name, and stay here."""


class CommandResult(msgspec.Struct):
    """What a command printed (decoded as UTF-8), and its exit code; negative for a signal."""

    stdout: str
    stderr: str | None
    return_code: int | None
    cwd: str


@tool(
    "Run a shell command",
    reads=False,
    edits=True,
    journaled=False,
    destructive=True,
    idempotent=False,
    shown="optional",
    spans=True,
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
    folder = target.root / target.locate_folder(cwd)
    launch = Launch(["/bin/sh", "-c", command])
    async with guarded(launch, folder, environment=harmless(os.environ), ladder=AT_ONCE) as process:
        await process.stdin.aclose()
        output, dropped = await _read(process.stdout)
        code = await process.wait()
    if dropped:
        call.remark(f"Truncated: {dropped} bytes of output after the first {OUTPUT_BYTES} were dropped.")
    errors = process.stderr_tail if capture_stderr else None
    if errors and len(errors) >= STDERR_TAIL_BYTES - 4:
        call.remark(f"Truncated: only the last {STDERR_TAIL_BYTES} bytes of stderr are shown.")
    return CommandResult(output.decode("utf-8", "replace"), errors, code, str(folder))


def harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that can be no secret."""
    return {name: value for name, value in environment.items() if _HARMLESS.fullmatch(name)}


async def _read(stream: ByteReceiveStream) -> tuple[bytes, int]:
    """All output up to the limit, and how many bytes came after it."""
    kept, dropped = bytearray(), 0
    try:
        async for chunk in stream:
            room = OUTPUT_BYTES - len(kept)
            kept += chunk[:room]
            dropped += max(len(chunk) - room, 0)
    except anyio.BrokenResourceError:
        pass  # it ended without closing its output
    return bytes(kept), dropped
