"""Log messages and requests to the client of the current call, without a parameter through every layer.

The entry point of a call installs a channel for its own task and the tasks it starts, as for `core/progress.py`. Calls
of the command line and the dashboard have none: nothing is logged there, and no client can be asked.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, Protocol, get_args

from serena_central.core.errors import ClientCannotAnswer

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""RFC 5424, section 6.2.1."""

LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least to the most severe."""

Method = Literal["elicitation/create", "sampling/createMessage", "roots/list"]


class ClientRequest(NamedTuple):
    """A request of MCP that a server sends to a client; `params` in wire form."""

    method: Method
    params: Mapping[str, Any] = {}


class ClientChannel(Protocol):
    """The way back to the client that made a call."""

    def offers(self, method: Method) -> bool:
        """Whether the client has declared that it answers this."""
        ...

    def log_level(self) -> Level | None:
        """The least severe level of log messages that the client wants; None if it wants none."""
        ...

    async def log(self, level: Level, data: Any, logger: str) -> None:
        """Sends a log message, if the client asked for this level. `data` is anything that is JSON."""
        ...

    async def ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, dict[str, Any]]:
        """The client's results in wire form, by the names of the requests.

        Clients of the modern era get the questions as the result of their call, and send the call again with the
        answers: everything before is run again, and must change nothing. A name stands for one question in a call.

        Raises:
            ClientCannotAnswer: the client has not declared that it answers such requests, or it refused.
            ClientInputRequired: ends the call; only the protocol's layer catches it.
        """
        ...


class _NoClient:
    def offers(self, method: Method) -> bool:
        return False

    def log_level(self) -> Level | None:
        return None

    async def log(self, level: Level, data: Any, logger: str) -> None: ...

    async def ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, dict[str, Any]]:
        raise ClientCannotAnswer(next((request.method for request in requests.values()), ""))


_channel: ContextVar[ClientChannel] = ContextVar("client_channel")

_NO_CLIENT = _NoClient()


def client_channel() -> ClientChannel:
    """The channel of this task's call."""
    return _channel.get(_NO_CLIENT)


@contextmanager
def connected_to(channel: ClientChannel) -> Generator[None]:
    """Installs the channel for what this task does inside the block."""
    token = _channel.set(channel)
    try:
        yield
    finally:
        _channel.reset(token)
