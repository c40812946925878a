"""What a scripted model says, turn by turn."""

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.models.request import Request


@dataclass(frozen=True)
class Text:
    """Says a text. A turn without calls is the model's last: the client then waits for the user, or ends."""

    text: str


@dataclass(frozen=True)
class Call:
    """Calls a tool by the name under which the client offers it. One that is not offered is called all the same."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """Answers with an HTTP error instead of a turn. Clients retry after 429 and 5xx: the next request is then of the
    same turn. They give up after 400."""

    status: int
    message: str


Turn = Text | Call | Refusal | Sequence[Text | Call]
"""One turn: a text, a call, several of both, or an error."""

Step = Turn | Callable[[Request], Turn | Awaitable[Turn]]
"""A turn, or a function that makes it of the request. The function may be asynchronous: what it awaits happens before
the turn is answered, such as stopping a server before the last call."""

Script = Sequence[Step] | Callable[[Request], Turn | Awaitable[Turn]]
"""The n-th step is the n-th turn of a conversation: conversations that go on at once do not disturb each other, and a
request that is repeated gets the same answer. Or one function for all turns."""


class ScriptEnded(Exception):
    """The model was asked for more turns than its script has."""


@dataclass(frozen=True)
class SentCall:
    """A call as it is sent, with its arguments as JSON. The id is unique in its conversation."""

    id: str
    tool: str
    arguments: str


Reply = list[Text | SentCall]


async def reply_to(script: Script, request: Request) -> Reply | Refusal:
    """Raises ScriptEnded, and whatever a step raises."""
    step: Any = script
    if not callable(step):
        if request.turns >= len(step):
            raise ScriptEnded(f"the script has {len(step)} steps, and {request.turns} turns were taken")
        step = step[request.turns]
    if callable(step):
        step = step(request)
    if inspect.isawaitable(step):
        step = await step
    if isinstance(step, Refusal):
        return step
    parts = [step] if isinstance(step, Text | Call) else step
    return [_sent(part, number, request) if isinstance(part, Call) else part for number, part in enumerate(parts)]


def _sent(call: Call, number: int, request: Request) -> SentCall:
    arguments = json.dumps(call.arguments)
    return SentCall(f"call_{request.turns}_{number}", call.tool, arguments)
