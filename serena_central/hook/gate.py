"""`serena-hook gate EVENT`: has the server run the hooks of the settings for what a client's own tools do.

Without a server the tool runs: it is the client's own, and the hooks may not even concern it. That is said once in a
session.
"""

import os
import time
from typing import cast

from serena_central.hook.gate_answers import BEFORE, NO_SERVER, REFUSED, answer_for
from serena_central.hook.log import log
from serena_central.hook.memory import Memory, Unavailable, digest
from serena_central.hook.payload import Json, event_of
from serena_central.hook.server_query import Answer, ask
from serena_central.standalone.home import Home

LONGEST_S = 600.0
"""A hook may run tests. The client's own deadline ends this process earlier."""

MOST_ANCESTORS = 16

MOST_REASON = 300
"""Characters of the server's reason for a refusal."""


def gate(client: str, event: str, said: Json, home: Home) -> Json | None:
    """What the client reads."""
    body = {"client": client, "said": said, "ancestors": ancestors()}
    answer = ask(home, "POST", f"/api/v1/gates/{event}", deadline=time.monotonic() + LONGEST_S, body=body)
    if answer is not None and answer.status == 200:
        return answer_for(client, event, answer.value)
    why = NO_SERVER
    if answer is not None:
        log(home, f"the server refused {event} with status {answer.status}: {_reason(answer)}")
        why = f"{REFUSED} {_reason(answer)}"
    if event != BEFORE or not _is_first(home, event_of(said).session):
        return None
    return {"systemMessage": why} if client != "cursor" else {"permission": "allow", "agent_message": why}


def _reason(answer: Answer) -> str:
    error = answer.value.get("error")
    return str(cast("Json", error).get("message") if isinstance(error, dict) else answer.value)[:MOST_REASON]


def ancestors() -> list[int]:
    """Process ids above this one, the nearest first: the client is among them. Empty where that can't be known."""
    found: list[int] = []
    process = os.getppid()
    while process > 1 and len(found) < MOST_ANCESTORS:
        found.append(process)
        try:
            with open(f"/proc/{process}/stat", "rb") as stream:
                process = int(stream.read().rpartition(b")")[2].split()[1])  # the name before may hold anything
        except (OSError, ValueError, IndexError):
            break
    return found


def _is_first(home: Home, session: str) -> bool:
    try:
        return not Memory(home).was_stopped(digest("gate without a server", session), time.time())
    except Unavailable:
        return False
