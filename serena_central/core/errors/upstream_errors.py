"""Errors of MCP servers of the hub."""

import shlex

from serena_central.core.errors.base import SerenaCentralError
from serena_central.core.quoting import escaped_lines, quoted


def restart_command(server: str) -> str:
    """What a person runs to have a server that failed started again."""
    return f"`serena-central mcp restart {shlex.quote(server)}`"


class UpstreamError(SerenaCentralError):
    """A call to an MCP server of the hub has no result. `server` is its name in the configuration."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message)
        self.server = server


class UpstreamUnavailable(UpstreamError):
    """It can't be started or reached, or it ended before it answered. `failed`: it is not started again by itself;
    `gone`: it is not configured any more; `sent`: the call had been sent to it."""

    several_lines = True

    def __init__(self, server: str, why: str, *, failed: bool = False, gone: bool = False, sent: bool = True) -> None:
        if gone:
            remedy = "Nothing was sent to it; tools/list names the tools there are."
        elif failed:
            remedy = f"It is not started again by itself: fix what it says, then run {restart_command(server)}."
        elif sent:
            remedy = "The call may have been carried out in part; a further call starts it again."
        else:
            remedy = "Nothing was sent to it; a further call starts it again."
        super().__init__(server, f"The MCP server {quoted(server)} is not available: {escaped_lines(why)}. {remedy}")
        self.why = why
        self.failed = failed


class UpstreamCallFailed(UpstreamError):
    """It answered with a JSON-RPC error, or with what does not follow the protocol. `said` is its own text;
    `forgotten`: it knows our session no longer, and has not carried the request out."""

    forgotten = False

    def __init__(self, server: str, said: str, *, code: int = 0, data: object = None) -> None:
        number = f" ({code})" if code else ""
        super().__init__(server, f"The MCP server {quoted(server)} refused the request{number}: {said}")
        self.said = said
        self.code = code
        self.data = data


class HubUnavailable(SerenaCentralError):
    """The part that runs MCP servers has not started within `seconds`; the rest of the server works."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The MCP servers of the hub can't be reached: the hub has not started within {seconds:g} s. Call again; if"
            " that does not help, `serena-central logs` says why, and `serena-central restart` restarts it."
        )


class UpstreamQuestionRefused(SerenaCentralError):
    """What an MCP server asks in the middle of a call (`method`) can't be put to the client."""

    def __init__(self, method: str, why: str) -> None:
        super().__init__(f"{method} can't be answered: {why}.")
        self.method = method
