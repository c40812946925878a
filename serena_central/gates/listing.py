"""Lists the hooks of a root for people: all that its settings name, in their order, and which of them run."""

import msgspec

from serena_central.claude_config.checks import EVENTS
from serena_central.claude_config.effective import Effective
from serena_central.core.masking import masked, masked_words
from serena_central.gates.rules import Hook, rules_of
from serena_central.projects.trust.trust_decisions import Standing, State


class ListedHook(msgspec.Struct, frozen=True, kw_only=True):
    """One hook as its file has it. `if` is its condition; `runs` its command line, URL or check, with secrets masked;
    `place` is file, line and column. One that is not `active` is held back: nobody trusts the repository with it.
    `held_back` is why."""

    event: str
    matcher: str
    condition: str = msgspec.field(name="if")
    type: str
    runs: str
    timeout_s: float
    background: bool
    once: bool
    tier: str
    place: str
    active: bool
    held_back: str


def listed(found: Effective, standing: Standing) -> list[ListedHook]:
    """By event, in the order in which they run."""
    every, running = rules_of(found, None), rules_of(found, standing)
    active = {(hook.event, hook.name) for event in EVENTS for hook in running.of(event)}
    why = str(State.CHANGED if standing.trusted else standing.state)
    return [
        _listed(hook, "" if (hook.event, hook.name) in active else why) for event in EVENTS for hook in every.of(event)
    ]


def _listed(hook: Hook, held_back: str) -> ListedHook:
    return ListedHook(
        event=hook.event,
        matcher=hook.matcher,
        condition=hook.condition,
        type=hook.kind,
        runs=masked(hook.action) if hook.arguments is None else " ".join(masked_words([hook.action, *hook.arguments])),
        timeout_s=hook.timeout_s,
        background=hook.background,
        once=hook.once,
        tier=str(hook.tier),
        place=hook.name,
        active=not held_back,
        held_back=held_back,
    )
