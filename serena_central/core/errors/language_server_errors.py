"""Errors of language servers: missing, failing, silent, or unable to answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from serena_central.core.errors.base import SerenaCentralError
from serena_central.core.errors.call_errors import DeadlineExceeded
from serena_central.core.owners import put_above
from serena_central.core.quoting import escaped, quoted

STDERR_SHOWN = 4_000
"""Characters of what a process wrote to its stderr: a repository's own build may have written them."""


class LanguageServerError(SerenaCentralError):
    """A language server could not do what was asked. `server` is its name in the catalogue."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message)
        self.server = server

    def again(self) -> Self:
        """The same error, to be raised where this one is kept: an error keeps alive all frames that it has passed, and
        with them projects that were closed since."""
        told = self.__new__(type(self))  # constructors make messages of other arguments
        told.__dict__.update(self.__dict__)
        told.args = self.args
        told.__cause__ = self.__cause__
        return told

    def prefaced(self, sentence: str) -> Self:
        """The same error with what is known without the server before its message. This one stays as it is."""
        told = self.again()
        told.args = (f"{sentence} {self.args[0]}",)
        return told


class ServerNotInstalled(LanguageServerError):
    """The program is not on this machine. `how_to_get` is one command, or a page."""

    def __init__(self, server: str, language: str, how_to_get: str) -> None:
        super().__init__(
            server, f"The language server {server} for {language} is not installed. To install it: {how_to_get}"
        )
        self.how_to_get = how_to_get


class ServerBeingInstalled(LanguageServerError):
    """The program is being fetched, or that was tried and failed; the message says which."""

    several_lines = True


class ServerNotDriven(ServerNotInstalled):
    """The catalogue knows the server, but it is not supported yet; `lacks` says what is missing."""

    def __init__(self, server: str, language: str, lacks: str) -> None:
        LanguageServerError.__init__(
            self,
            server,
            f"The language server {server} for {language} is recognized but not supported yet; it requires {lacks}.",
        )
        self.how_to_get = f"not supported yet: it requires {lacks}"


class ServerNotTrusted(ServerNotInstalled):
    """The server is not run for a project that its user does not trust, `because` of what it would do: a clause; or
    for what another user has put `above` the project. `missing` is how to get a server that is not installed either."""

    def __init__(
        self,
        server: str,
        language: str,
        because: str,
        project: str,
        above: Path | None = None,
        *,
        missing: str = "",
    ) -> None:
        how = f"serena-central trust {project}"
        why = f"This repository is not trusted. To trust it: {how}"
        if above is not None:
            why = put_above(Path(project), above)
        if missing:
            how, why = f"{how}; not installed either: {missing}", f"{why}. Nor is it installed: {missing}"
        LanguageServerError.__init__(
            self, server, f"The language server {server} for {language} was not started: {because}. {why}"
        )
        self.how_to_get = f"not started, because the repository is not trusted: {how}" if above is None else why
        self._said = language, because, project
        self._missing = missing

    def for_what_lies(self, above: Path) -> "ServerNotTrusted":
        """The same where the project is trusted, but for what another user has put above it."""
        return ServerNotTrusted(self.server, *self._said, above, missing=self._missing)

    def and_missing(self, how_to_get: str) -> "ServerNotTrusted":
        """The same of a server that is not installed either: trust alone would not start it."""
        return ServerNotTrusted(self.server, *self._said, missing=how_to_get)


class InstallFailed(LanguageServerError):
    """A language server could not be installed; nothing of the attempt is left."""

    several_lines = True


class NoServerRoot(LanguageServerError):
    """The file lies in nothing that its language server could load; none was started for it. The message says why."""


class ServerStartFailed(LanguageServerError):
    """The program was started and never became usable."""


class ServerCrashed(LanguageServerError):
    """The process ended while it was needed. `exit_code` is negative for a signal, None if unknown. It was ended for it
    if what it sent was `broken`, no message of the protocol."""

    def __init__(self, server: str, exit_code: int | None, stderr_tail: str, broken: str = "") -> None:
        tail = f" Last lines of its stderr: {quoted(stderr_tail[-STDERR_SHOWN:], STDERR_SHOWN)}" if stderr_tail else ""
        how = f"sent {quoted(broken)} and was stopped" if broken else f"exited unexpectedly (exit code {exit_code})"
        super().__init__(server, f"The language server {server} {how}. The next call restarts it.{tail}")
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class ServerUnavailable(LanguageServerError):
    """The pool gives no lease for now; the message says why and when to try again."""


class ServerSilent(LanguageServerError):
    """The server has left calls without an answer, and sends nothing."""

    def __init__(self, server: str, seconds: float) -> None:
        super().__init__(
            server,
            f"The language server {server} has sent nothing for {seconds:.0f} s, and left an earlier call without an "
            "answer. Call again later, or restart it (restart_language_server).",
        )


class ServerBusy(LanguageServerError):
    """The server kept answering 'content modified' or 'cancelled'."""


class RequestFailed(LanguageServerError):
    """The server answered with a JSON-RPC error, or with something that can't be read."""

    def __init__(self, server: str, method: str, code: int, message: str) -> None:
        super().__init__(server, f"The language server {server} refused {method}: {quoted(message)} ({code})")
        self.method = method
        self.code = code
        self.message = message


class Inapplicable(RequestFailed):
    """The question makes no sense for the symbol, as the callees of a type."""


class Unsupported(LanguageServerError):
    """The server does not offer this request. `instead` is a sentence that names another way."""

    def __init__(self, server: str, what: str, instead: str = "") -> None:
        super().__init__(
            server, f"The language server {server} does not offer {what}." + (f" {instead}" if instead else "")
        )


class SymbolUnknown(LanguageServerError):
    """The server answers as if there were no such symbol at a place where there is one."""

    def __init__(self, server: str, symbol: str, place: str) -> None:
        super().__init__(server, f"The language server {server} does not know {symbol} in {place}.")


class ReferencesNotInTime(DeadlineExceeded):
    """A language server has not said what refers to a symbol. `because`, a clause, is what was waited for; `known` is
    what `references_unknown` says."""

    def __init__(self, seconds: float, because: str, known: str) -> None:
        advice = "Call again later; restart_language_server restarts a language server that hangs."
        SerenaCentralError.__init__(self, f"{known} Reason: {because}. {advice}")
        self.seconds = seconds


def references_unknown(symbol: str, places: Sequence[str] | None, more: int = 0) -> str:
    """What is known of a symbol's references where no language server tells them: `places` of its name in code, and how
    many `more` there are that are not listed. None if there was no time to look for them."""
    if places is None:
        known = "There was no time to look for places of its name; search_for_pattern finds them."
    elif places:
        further = f" and {more} more" if more else ""
        known = f"Its name occurs in code at {escaped(', '.join(places))}{further}; each place may refer to it."
    elif more:
        known = f"Its name occurs at {more} further places, which were not examined; each may refer to it."
    else:
        known = "No other place of its name in code is known."
    return f"The references to {escaped(symbol)} are not known, which does not mean that it is unused. {known}"
