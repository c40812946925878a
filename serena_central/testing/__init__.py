"""For people who test their own wrappers and agents: answers in this server's exact shapes, and a server in memory that
gives them and remembers what it was asked.
"""

from serena_central.testing.builders import (
    answered,
    found,
    grouped,
    nothing_found,
    onboarding_done,
    onboarding_missing,
    symbol,
)
from serena_central.testing.server import Call, ScriptedServer

__all__ = [
    "Call",
    "ScriptedServer",
    "answered",
    "found",
    "grouped",
    "nothing_found",
    "onboarding_done",
    "onboarding_missing",
    "symbol",
]
