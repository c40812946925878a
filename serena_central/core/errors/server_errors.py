"""Errors of the server itself: its settings, its database, its start."""

import re

from serena_central.core.errors.base import SerenaCentralError
from serena_central.core.quoting import quoted

KEY_SHOWN = 60
"""Characters shown of an unknown setting's key: a repository's file may contain anything."""

_PLAIN_KEY = re.compile(r"[\w./\[\]-]{1,200}")


class ConfigError(SerenaCentralError):
    """A setting that can't be used. `file` is None for environment variables and flags, `line` is 1-based."""

    def __init__(self, key: str, problem: str, *, file: str | None = None, line: int | None = None) -> None:
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        shown = key if _PLAIN_KEY.fullmatch(key) else quoted(key, KEY_SHOWN)
        super().__init__(f"{where}{shown}: {problem}")
        self.key = key
        self.problem = problem
        self.file = file
        self.line = line


class NotReady(SerenaCentralError):
    """The server can't tell yet whether a call repeats an earlier one: it was just started, or another server with the
    same database may have made it, and the database can't be asked."""

    def __init__(self, problem: str | None = None) -> None:
        how = "The server just started and cannot tell yet whether this call was already made."
        if problem is not None:
            how = f"Another front may have made this call already, which cannot be known now: {problem}"
        super().__init__(f"{how} Nothing was changed. Retry in a few seconds.")


class StoreError(SerenaCentralError):
    """The database can't be used."""


class StoreUnusable(StoreError):
    """The database can't be used until a person has done what `remedy` says. No server is started with it: its records
    would be lost when it stops."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy[0].upper()}{remedy[1:]}.")
        self.problem = problem
        self.remedy = remedy


class SchemaTooNew(StoreUnusable):
    """A newer version has upgraded the database to a schema that this one does not know."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"The database has schema {found}, which this version ({known}) does not know: it was written by a newer "
            "serena-central",
            "upgrade serena-central, or set database_url to another database",
        )


class AlreadyRunning(SerenaCentralError):
    """Another server of this user runs already; without `url`, it does not answer yet, or no longer."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(
            f"A serena-central server is already running: {url} (pid {pid}). `serena-central stop` stops it."
            if url
            else "Another serena-central server is starting or stopping. Try again when it has."
        )
        self.url = url
        self.pid = pid
