"""Runs the hooks of an event, one after another, in the order of their files: the first that stops ends the pipeline.

It gets identities as data, and what only others know by functions that it is given. Nothing that a hook does makes a
call fail in any other way than by its decision.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.core.errors import SerenaCentralError
from serena_central.core.masking import MASK, masked
from serena_central.core.quoting import escaped, quoted
from serena_central.gates import log
from serena_central.gates.commands import CommandEnd, run_command
from serena_central.gates.decisions import BLOCKS, TEXT_CHARS, Decision, decision_of, shortened
from serena_central.gates.events import CheckEnd, GateEvent, Outcome, Ran
from serena_central.gates.matching import ONCE
from serena_central.gates.rules import Hook
from serena_central.processes.fork_server import ForkServer

logger = logging.getLogger(__name__)

LEAST_SECRET = 6
"""Characters. Shorter values are words and numbers that stand in any text."""


class Asked(NamedTuple):
    """What a hook is about to be run for: one file of an event, "" for none in particular."""

    hook: Hook
    event: GateEvent
    file: str


Check = Callable[[Asked], Awaitable[CheckEnd]]
"""Makes the built-in check that a hook names. Raises SerenaCentralError: it can't be made."""

Condition = Callable[[Asked], Awaitable[bool]]
"""Whether the `if` of a hook holds."""


class Means(NamedTuple):
    """What the engine is given of others. `urls`: patterns of URLs that http hooks may reach; `forks` starts commands
    quicker."""

    check: Check
    condition: Condition
    urls: Sequence[str] = ()
    forks: ForkServer | None = None
    environment: Mapping[str, str] = {}
    """What the settings give to commands."""
    secrets: Collection[str] = ()
    """Values that no text of a hook may show."""

    def masked(self, text: str) -> str:
        for secret in sorted(self.secrets, key=len, reverse=True):  # one may begin as another
            if len(secret) >= LEAST_SECRET:
                text = text.replace(secret, MASK)
        return masked(text)


class Matched(NamedTuple):
    """A hook that an event concerns, and the files for which it runs; `("",)` for once."""

    hook: Hook
    files: Sequence[str]


def matching(hooks: Sequence[Hook], event: GateEvent) -> list[Matched]:
    """The hooks whose matcher fits, in order. Their conditions are not looked at."""
    names, use = event.names, event.use
    found = [Matched(hook, files) for hook in hooks if (files := hook.matches(names, use))]
    return [one._replace(files=ONCE) if one.hook.kind == "check" else one for one in found]


async def run_hooks(matched: Sequence[Matched], event: GateEvent, means: Means) -> Outcome:
    """Runs hooks until one stops what comes next; logs each run."""
    outcome = Outcome()
    try:
        for hook, files in matched:
            for file in files:
                await _one(Asked(hook, event, file), means, outcome)
                if outcome.stops:
                    return outcome
    finally:
        if outcome.ran:
            at = time.time()
            lines = [log.line_of(event, one, at) for one in outcome.ran]
            with anyio.CancelScope(shield=True):  # a local file
                await anyio.to_thread.run_sync(partial(log.append, event.root, lines))
    return outcome


async def _one(asked: Asked, means: Means, outcome: Outcome) -> None:
    hook, event = asked.hook, asked.event
    try:
        with anyio.fail_after(hook.timeout_s):
            if hook.condition and not await means.condition(asked):
                return
    except TimeoutError:
        logger.info("the condition of %s could not be decided in time; the hook runs", hook.name)
    started = time.perf_counter()
    if hook.kind == "check":
        outcome.ran.append(await _checked(asked, means, outcome, started))
        return
    if hook.kind == "http":
        # Late: who has no such hook does not load the HTTP client.
        from serena_central.gates.http_hooks import run_http

        end = await run_http(hook, event, asked.file, means.urls)
    else:
        end = await run_command(hook, event, asked.file, means.forks, means.environment)
    said = end._replace(stderr=means.masked(end.stderr), trouble=means.masked(end.trouble))
    ran = _ended(asked, said, means, outcome, started)
    outcome.ran.append(ran)


async def _checked(asked: Asked, means: Means, outcome: Outcome, started: float) -> Ran:
    hook = asked.hook
    try:
        with anyio.fail_after(hook.timeout_s):
            found = await means.check(asked)
    except TimeoutError:
        found = CheckEnd(f"it was not known within {hook.timeout_s:g} s. Raise its timeout in {hook.name}.")
    except SerenaCentralError as error:
        found = CheckEnd(f"it could not be made: {error}")
    if found.note:
        outcome.context.append(f"{hook.action}: {found.note}")
    if found.problem:
        outcome.blocked = f"{hook.action} ({hook.name}): {found.problem}"
    return _ran(asked, "blocked" if found.problem else "passed", None, started, found.problem or found.note)


def _ended(asked: Asked, end: CommandEnd, means: Means, outcome: Outcome, started: float) -> Ran:
    """Takes the end of a command into account."""
    hook, event = asked.hook, asked.event
    if end.trouble:
        said = f"the hook {hook.name} could not run: {escaped(end.trouble)}"
        if event.blocks:
            outcome.blocked = said
        else:
            outcome.context.append(said)
            outcome.failed = True
        return _ran(asked, "could-not-run", end.exit_code, started, end.trouble)
    if end.exit_code == 0:
        decision = decision_of(end.stdout, event.name)
        decision = decision._replace(reason=means.masked(decision.reason), context=means.masked(decision.context))
        _decided(hook, event, decision, outcome)
        verdict = "halted" if decision.stop else "blocked" if decision.permission in ("deny", "ask") else "passed"
        return _ran(asked, verdict, 0, started, decision.reason)
    text = shortened(end.stderr.strip()) or f"exit code {end.exit_code}"
    if end.exit_code == BLOCKS:
        outcome.blocked = f"the hook {hook.name} says: {_quoted(text)}"
        return _ran(asked, "blocked", BLOCKS, started, text)
    if not event.blocks:
        outcome.context.append(f"the hook {hook.name} failed with exit code {end.exit_code}: {_quoted(text)}")
        outcome.failed = True
        return _ran(asked, "failed", end.exit_code, started, text)
    outcome.halted = f"the hook {hook.name} ended with exit code {end.exit_code}: {_quoted(text)}"
    return _ran(asked, "halted", end.exit_code, started, text)


def _decided(hook: Hook, event: GateEvent, decision: Decision, outcome: Outcome) -> None:
    reason = _quoted(decision.reason) if decision.reason else "it gave no reason"
    if decision.stop:
        outcome.halted = f"the hook {hook.name} says: {reason}"
    elif decision.permission == "deny":
        outcome.blocked = f"the hook {hook.name} says: {reason}"
    elif decision.permission == "ask":
        outcome.asks = f"the hook {hook.name} asks for a person's consent: {reason}"
    if decision.context:
        outcome.context.append(f"the hook {hook.name} adds: {_quoted(decision.context)}")
    if decision.updated is not None and event.name == "PreToolUse":
        outcome.updated = {**(outcome.updated or {}), **decision.updated}


def _ran(asked: Asked, verdict: str, exit_code: int | None, started: float, text: str) -> Ran:
    took_ms = (time.perf_counter() - started) * 1000
    return Ran(asked.hook.name, asked.event.name, asked.file, verdict, exit_code, took_ms, text)


def _quoted(text: str) -> str:
    return quoted(text, TEXT_CHARS)
