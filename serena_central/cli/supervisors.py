"""The files and commands by which systemd and launchd run the server for a user.

Each is a `Supervisor`; `of_this_machine` picks one. They know nothing of the server but how it is started.
"""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from serena_central.core.errors import SerenaCentralError
from serena_central.core.places import HOME_VARIABLE

UNIT = "serena-central.service"
LABEL = "serena-central"
COMMAND_TIMEOUT_S = 60.0
STOP_S = 30
"""The server ends its language servers first."""


class NotSupervised(SerenaCentralError):
    """The system's supervisor is missing, or refused."""


@dataclass(frozen=True)
class Program:
    """What is run: by absolute path, since a supervisor's own PATH is a short one."""

    executable: Path
    environment: Mapping[str, str]
    log: Path

    @classmethod
    def of_this_installation(cls, log: Path) -> "Program":
        """With the search path of now: it finds language servers.

        Raises:
            NotSupervised
        """
        beside = Path(sys.executable).with_name("serena-central")
        found = beside if beside.exists() else Path(shutil.which("serena-central") or "")
        if not found.is_absolute():
            raise NotSupervised(f"serena-central is neither next to {sys.executable} nor on PATH. Reinstall it.")
        kept = {name: value for name in ("PATH", HOME_VARIABLE, "SERENA_HOME") if (value := os.environ.get(name))}
        return cls(found, kept, log)


class Supervisor(Protocol):
    """What runs a user's services. Its commands raise NotSupervised."""

    @property
    def title(self) -> str: ...

    @property
    def file(self) -> Path: ...

    def content(self, program: Program) -> bytes: ...

    def answers(self) -> bool:
        """Whether the supervisor itself runs for this user: in containers it doesn't."""
        ...

    def is_running(self) -> bool: ...

    def starting(self) -> list[list[str]]:
        """The commands that take up the file and start the service, now and at each login."""
        ...

    def stopping(self) -> list[list[str]]: ...

    def restart(self) -> None: ...


class Systemd:
    """A unit of the user's systemd."""

    title = "systemd"

    def __init__(self, config: Path) -> None:
        self.file = config / "systemd" / "user" / UNIT

    def content(self, program: Program) -> bytes:
        lines = [
            "[Unit]",
            "Description=serena-central, one MCP server for all coding agents of a user",
            "",
            "[Service]",
            f"ExecStart={_quoted(str(program.executable))} serve",
            *(f"Environment={_quoted(f'{name}={value}')}" for name, value in program.environment.items()),
            "Restart=on-failure",
            "RestartSec=2",
            "# How SIGTERM ends it.",
            "SuccessExitStatus=143",
            "KillMode=mixed",
            f"TimeoutStopSec={STOP_S}",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    def answers(self) -> bool:
        return _succeeds(["systemctl", "--user", "show-environment"])

    def is_running(self) -> bool:
        return _succeeds(["systemctl", "--user", "is-active", "--quiet", UNIT])

    def starting(self) -> list[list[str]]:
        return [["systemctl", "--user", "daemon-reload"], ["systemctl", "--user", "enable", "--now", UNIT]]

    def stopping(self) -> list[list[str]]:
        return [["systemctl", "--user", "disable", "--now", UNIT], ["systemctl", "--user", "daemon-reload"]]

    def restart(self) -> None:
        run([["systemctl", "--user", "restart", UNIT]])


class Launchd:
    """An agent of the user's launchd."""

    title = "launchd"

    def __init__(self, home: Path) -> None:
        self.file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        self._domain = f"gui/{os.getuid()}"

    def content(self, program: Program) -> bytes:
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": [str(program.executable), "serve"],
                "EnvironmentVariables": dict(program.environment),
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                "ExitTimeOut": STOP_S,
                "StandardOutPath": str(program.log),
                "StandardErrorPath": str(program.log),
            }
        )

    def answers(self) -> bool:
        return _succeeds(["launchctl", "print", self._domain])

    def is_running(self) -> bool:
        return _succeeds(["launchctl", "print", f"{self._domain}/{LABEL}"])

    def starting(self) -> list[list[str]]:
        return [["launchctl", "bootstrap", self._domain, str(self.file)]]

    def stopping(self) -> list[list[str]]:
        return [["launchctl", "bootout", f"{self._domain}/{LABEL}"]]

    def restart(self) -> None:
        run([["launchctl", "kickstart", "-k", f"{self._domain}/{LABEL}"]])


def of_this_machine(platform: str = sys.platform) -> Supervisor:
    """Raises NotSupervised if there is none that is supported."""
    if platform == "darwin":
        return Launchd(Path.home())
    if platform == "linux":
        named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        return Systemd(named if named.is_absolute() else Path.home() / ".config")
    raise NotSupervised(f"Services are supported on systemd and launchd, not on {platform}.")


def run(commands: Sequence[Sequence[str]]) -> None:
    """Runs them in order, up to the first that fails.

    Raises:
        NotSupervised
    """
    for command in commands:
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotSupervised(f"`{' '.join(command)}` could not be run: {error}.") from error
        if ended.returncode != 0:
            said = (ended.stderr or ended.stdout).strip()[-1000:]
            raise NotSupervised(f"`{' '.join(command)}` failed: {said or f'exit code {ended.returncode}'}")


def _succeeds(command: Sequence[str]) -> bool:
    try:
        run([command])
    except NotSupervised:
        return False
    return True


def _quoted(text: str) -> str:
    """A word in a unit's file: specifiers and quotation marks mean themselves (systemd.syntax)."""
    for mark, instead in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        text = text.replace(mark, instead)
    return f'"{text}"'
