"""The staging folder of an installation: an empty folder, and commands that run in it.

Commands run under a supervisor, with closed input, and with no more of this process's environment than they need: no
secrets reach what is fetched from a registry. They run in the folder that is built, never in a project's: the package
managers' own settings in a repository do not apply.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from serena_central.core.errors import InstallFailed
from serena_central.processes.child import run
from serena_central.processes.environment import search_path
from serena_central.processes.ladder import POLITE
from serena_central.processes.output import Lines

Tell = Callable[[str], None]
"""Takes one line about how it goes; must not block."""

TAIL_LINES = 15
"""How much of a failed command's output its error carries."""

LINE_CHARS = 400
"""Longer lines of output are cut."""

_KEPT = frozenset({
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "TMPDIR", "USER",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
})  # fmt: skip
"""Names of variables that every command sees, compared in upper case; PATH is handed on apart."""

_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Staging:
    """A folder to build in. `prefix` exists and is empty; everything that a way makes goes there."""

    def __init__(self, server: str, prefix: Path, tell: Tell, *, temporary: Path) -> None:
        self.server = server
        self.prefix = prefix
        self._tell = tell
        self._temporary = temporary

    async def run(self, *command: str | Path, keep: frozenset[str] = frozenset(), **env: str) -> str:
        """Runs a command to its end in `prefix`; returns its output. `keep` names variables that it may see as well.

        Raises:
            InstallFailed: with the tail of the output, when it can't be started or ends with another code than 0.
        """
        words = [str(word) for word in command]
        said = " ".join([Path(words[0]).name, *words[1:]]).replace(str(self.prefix), ".")
        self._tell(f"$ {said}")
        tail: deque[str] = deque(maxlen=TAIL_LINES)
        lines: list[str] = []
        lines_of_both = Lines(lambda line: self._take(line, lines, tail))
        try:
            ended = await run(
                words,
                self.prefix,
                deadline_s=None,  # the installation's
                stdout=lines_of_both,
                merged=True,
                environment={**_environment(os.environ, keep), **env},
                ladder=POLITE,
                temporary=self._temporary,
                private=True,
            )
        except OSError as error:
            raise InstallFailed(self.server, f"`{said}` could not be started: {error}") from error
        lines_of_both.finish()
        if ended.exit_code != 0:
            words_of_it = "\n".join(tail) or "no output"
            raise InstallFailed(self.server, f"`{said}` failed (exit code {ended.exit_code}):\n{words_of_it}")
        return "\n".join(lines)

    def _take(self, line: bytes, lines: list[str], tail: deque[str]) -> None:
        text = plain(line.decode("utf-8", "replace"))
        if text:
            lines.append(text)
            tail.append(text)
            self._tell(text)


def plain(line: str) -> str:
    """A line of output without control characters and without the credentials of URLs."""
    return _CREDENTIALS.sub("", _ESCAPES.sub("", line.rpartition("\r")[2] or line)).strip()[:LINE_CHARS]


def _environment(own: Mapping[str, str], keep: frozenset[str]) -> dict[str, str]:
    kept = {name: value for name, value in own.items() if name.upper() in _KEPT | keep}
    return {**kept, "PATH": search_path(own)}
