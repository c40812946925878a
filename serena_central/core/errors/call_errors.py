"""Errors of a call as such: its arguments, its tool, its session, its time."""

from collections.abc import Mapping, Sequence
from typing import Any

from serena_central.core.errors.base import SerenaCentralError
from serena_central.core.quoting import quoted

NO_MEMORY = (
    "Out of memory in this call; other calls are not affected. "
    "Narrow the request (fewer files, a narrower pattern) or end other programs."
)
"""The message for a MemoryError."""


class InvalidArguments(SerenaCentralError):
    """The arguments of a call don't fit the tool's schema."""


class NothingMatched(InvalidArguments):
    """What was to be replaced is not in the text."""


class UnknownTool(SerenaCentralError):
    """No tool has this name."""

    def __init__(self, name: str, close: Sequence[str] = ()) -> None:
        hint = f" Did you mean {', '.join(close)}?" if close else " tools/list names them."
        super().__init__(f"There is no tool named {name!r}.{hint}")
        self.name = name


class CallCancelled(SerenaCentralError):
    """The call was ended while it ran, by a person or because the server stops; the message says by what."""


class ToolRefused(SerenaCentralError):
    """The call is understood, and not allowed in this session or by the settings."""


class HookBlocked(ToolRefused):
    """A hook of the settings stopped the call before it did anything. `reason` is the hook's own."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"{what} was not run: {reason.rstrip('.')}. Resolve what it says, and send the call again; hooks run at "
            "every attempt."
        )
        self.reason = reason


class ClientCannotAnswer(SerenaCentralError):
    """The client has not declared that it answers such a request, or it refused; `refusal` says why."""

    def __init__(self, method: str, refusal: str = "") -> None:
        why = f"refused {method}: {refusal}" if refusal else f"does not support {method}"
        super().__init__(f"The client {why}. Ask the user, or call a tool that needs no answer from the client.")
        self.method = method
        self.refusal = refusal


class ClientInputRequired(SerenaCentralError):
    """A call that ends with questions, and is sent again with the answers: not a failure.

    `requests` maps names to requests of `core/client_channel.py`; `answers` maps names to the results, in wire form,
    that earlier rounds brought.
    """

    def __init__(self, requests: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
        super().__init__(f"The client's answer is required: {', '.join(requests)}.")
        self.requests = requests
        self.answers = answers


class SessionError(SerenaCentralError):
    """A session can't be used."""


class SessionNotFound(SessionError):
    """No session has this id, or it belongs to another credential."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"There is no session {session_id!r}. `serena-central sessions` lists all; a client begins one with a new "
            "conversation."
        )


class UserNotFound(SerenaCentralError):
    """No user of a team has this name, or it was revoked."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no user {quoted(name)}. `serena-central users list` shows them.")
        self.name = name


class TooManySessions(SessionError):
    """No session can begin: there are as many as there may be, and each is in use."""

    def __init__(self, limit: int, *, whole: bool = True) -> None:
        """`whole`: it is the server's limit, not the share of one user."""
        whose = "sessions" if whole else "sessions for one user"
        super().__init__(
            f"The limit of {limit} {whose} is reached, and all of them are in use. Close clients "
            "that are no longer needed, wait until idle sessions expire, or raise sessions.max_sessions."
        )


class SessionTerminated(SessionError):
    """The session was killed by a person. `by` and `at` (ISO 8601, UTC) say by whom and when; `until` until when it is,
    where clients can't begin another one because they share it."""

    def __init__(self, by: str, at: str, until: str | None = None) -> None:
        advice = "Start a new conversation to continue."
        if until is not None:
            advice = f"Clients share it: it goes on at {until}, or when a person revives it in the dashboard."
        super().__init__(f"This session was terminated by {by} at {at}. {advice}")
        self.by = by
        self.at = at


class SessionHalted(SessionError):
    """A hook halted the session. `at` is ISO 8601, UTC."""

    def __init__(self, session: str, reason: str, at: str) -> None:
        super().__init__(
            f"This session was halted at {at}: {reason.rstrip('.')}. Nothing is done in it until a person resumes it: "
            f"serena-central resume {session}, or the dashboard."
        )
        self.reason = reason
        self.at = at


class DeadlineExceeded(SerenaCentralError):
    """A bounded wait ran out. `seconds` is the bound; `because`, a clause, is what was waited for."""

    def __init__(self, what: str, seconds: float, because: str = "") -> None:
        advice = (
            f": {because}. Call again later; restart_language_server restarts a language server that hangs."
            if because
            else ". Narrow the request, or call again."
        )
        super().__init__(f"{what} did not answer within {seconds:g} s{advice}")
        self.seconds = seconds
