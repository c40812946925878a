"""The server's own paths: token, server.json, lock, database, caches, servers, logs.

Nothing in here depends on a repository: a client in any folder finds the same server. SERENA_HOME, which may differ per
repository, holds configuration and memories only and is `config`'s business.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from serena_central.core.errors import ConfigError
from serena_central.core.paths import expanded
from serena_central.standalone.private import NotPrivate, secure

HOME_VARIABLE = "SERENA_CENTRAL_HOME"

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Places:
    """Paths below one home folder. `create` makes the folder, readable by its user alone. `node_home`: the home whose
    language servers and trust count, where that is another one."""

    home: Path
    node_home: Path | None = field(default=None, kw_only=True)

    @classmethod
    def of_user(cls) -> "Places":
        """`SERENA_CENTRAL_HOME`, else the platform's user data folder.

        Raises:
            ConfigError: its path can't be written into a journal, a database or a message to a language server.
        """
        named = os.environ.get(HOME_VARIABLE)
        home = expanded(named).absolute() if named else platformdirs.user_data_path("serena-central")
        try:
            str(home).encode()
        except UnicodeEncodeError as error:
            problem = f"{home} is not valid UTF-8; choose a folder with another path"
            raise ConfigError(HOME_VARIABLE, problem) from error
        return cls(home)

    def create(self) -> str | None:
        """Creates the folders and makes them private; returns a sentence on what was fixed, None if nothing was.

        Raises:
            ConfigError: the home is somebody else's.
            OSError
        """
        try:
            repaired = secure(str(self.home))
        except NotPrivate as error:
            raise ConfigError(HOME_VARIABLE, str(error)) from error
        for folder in (self.cache, self.servers, self.logs):
            folder.mkdir(exist_ok=True, mode=0o700)
        return repaired

    @property
    def token_file(self) -> Path:
        return self.home / "token"

    @property
    def server_file(self) -> Path:
        """`server.json`: url and pid of the server that runs."""
        return self.home / "server.json"

    @property
    def lock_file(self) -> Path:
        return self.home / "lock"

    @property
    def transcripts(self) -> Path:
        """Transcripts that the server writes: a folder for each project."""
        return self.home / "transcripts"

    @property
    def transcript_archive(self) -> Path:
        """Clients' transcripts, compressed before the clients delete them."""
        return self.home / "transcript-archive"

    @property
    def usage_file(self) -> Path:
        """Usage that was read from transcripts."""
        return self.home / "usage.db"

    @property
    def ledger_file(self) -> Path:
        """`children.json`: the processes that the running server has started, for the one after it."""
        return self.home / "children.json"

    @property
    def browsers_file(self) -> Path:
        """`browsers.json`: digests of what signed-in browsers hold."""
        return self.home / "browsers.json"

    @property
    def trust_file(self) -> Path:
        """`trust.json`: which repositories a person trusts, and with what."""
        return (self.node_home or self.home) / "trust.json"

    @property
    def halted_file(self) -> Path:
        """`halted.json`: sessions that a hook has halted."""
        return self.home / "halted.json"

    @property
    def begun_file(self) -> Path:
        """`begun-sessions.json`: sessions whose SessionStart hooks have run, and whose SessionEnd hooks have not."""
        return self.home / "begun-sessions.json"

    @property
    def asked_file(self) -> Path:
        """Is there once the user was asked which folders are to be trusted."""
        return self.home / "asked-about-trust"

    @property
    def database(self) -> Path:
        return self.home / "serena-central.db"

    @property
    def journal(self) -> Path:
        """The journal of edits, by which the next start recovers from a crash."""
        return self.home / "edits.journal"

    @property
    def warmup_status_file(self) -> Path:
        """What became of the last warm-up, for scripts."""
        return self.home / "warmup-status.json"

    @property
    def warmup_log(self) -> Path:
        """A line for each language of each warm-up."""
        return self.home / "warmup.log"

    @property
    def cache(self) -> Path:
        """Symbol indexes, one SQLite file per root."""
        return self.home / "cache"

    @property
    def upstreams(self) -> Path:
        """What MCP servers of the hub offer, one file per key."""
        return self.home / "upstreams"

    @property
    def logins(self) -> Path:
        """Tokens of logins at MCP servers of the hub, one file per URL."""
        return self.home / "logins"

    @property
    def wire_logs(self) -> Path:
        """What is sent to MCP servers of the hub and received from them, one file per name."""
        return self.logs / "mcp"

    def wire_log(self, server: str) -> Path:
        """The one of these that is about a server."""
        return self.wire_logs / wire_log_name(server)

    @property
    def worktrees(self) -> Path:
        """Git worktrees of tasks, by their ids."""
        return self.home / "worktrees"

    @property
    def plans(self) -> Path:
        """A folder for each plan that was run: its state, and the results of its waves."""
        return self.home / "plans"

    @property
    def tasks(self) -> Path:
        """What tasks wrote while they ran: a file of JSON lines each."""
        return self.home / "tasks"

    @property
    def servers(self) -> Path:
        """Installed language servers: `servers/<name>/<version>/`."""
        return (self.node_home or self.home) / "servers"

    @property
    def temporary(self) -> Path:
        """Temporary folders of language servers and installers, one each, while they run."""
        return self.home / "tmp"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def log_file(self) -> Path:
        """What the server logs; older ones stand beside it, numbered."""
        return self.logs / "server.log"


def wire_log_name(server: str) -> str:
    """The file name of the log of an MCP server of the hub."""
    return f"{_UNSAFE.sub('_', server)[:80]}.log"
