"""Runs the hooks of one event that no call of this server's tools brings: of clients' own tools, and of sessions."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serena_central.claude_config.document import as_object
from serena_central.core.clock import utc
from serena_central.core.errors import SerenaCentralError
from serena_central.gates.checks import TESTS, Baseline, Checks
from serena_central.gates.conditions import EDITED_BY_OTHERS
from serena_central.gates.engine import Asked, Matched, run_hooks
from serena_central.gates.events import SESSION_END, CheckEnd, GateEvent, Outcome
from serena_central.projects.project import Project
from serena_central.projects.registry import opener_in
from serena_central.tools.context import Services
from serena_central.tools.gated_call import AFTER, BEFORE, means_of
from serena_central.tools.gating import GateAnswer

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective

CLAUDE_CODE = "claude-code"


class EventGate:
    """Of one event in one root, which no call of this server brings. Its own tools have `GatedCall`."""

    def __init__(self, services: Services, found: "Effective", event: GateEvent) -> None:
        self._services = services
        self._session = event.session
        self._root = event.root
        self._found = found
        self._event = event
        self._opened: Project | None = None

    async def note(self, checks: frozenset[str], client: str) -> None:
        """Has the checks know what is there before an edit, what is edited, and what succeeded."""
        use = self._event.use
        if not checks or use is None or use.effect not in ("edit", "run"):
            return
        try:
            made = await self._checks()
            if use.effect == "edit" and self._event.name == BEFORE:
                await made.learn(checks, self._inside(use.files))
                made.edited(self._inside(use.files))
            elif TESTS in checks and client == CLAUDE_CODE and use.command:
                call = str(self._event.more.get("tool_use_id") or use.command)
                if self._event.name == BEFORE:
                    await made.begins(call, use.command)
                elif self._event.name == AFTER and _has_ended(self._event.more.get("tool_response")):
                    made.succeeded(call, use.command)  # it reports failures by another event
        except SerenaCentralError:
            return  # the check itself says what it can't know

    async def run(self, matched: Sequence[Matched], after: Collection[str]) -> GateAnswer:
        """`after`: names of the hooks after tools."""
        gating, session, root = self._services.gating, self._session, str(self._root)
        due = gating.states.due(session, root, matched)
        if self._event.name == BEFORE and (
            failed := gating.states.failed_stage(session, root, after, self._event, due)
        ):
            return GateAnswer(decision="deny", reason=failed)
        means = means_of(gating, self._root, self._found, self._check, self._decide)
        outcome = await run_hooks(due, self._event, means)
        gating.states.ran(session, root, due, outcome)
        if outcome.halted and self._event.name != SESSION_END:  # nothing is left to halt
            halt = gating.halt(self._session, outcome.halted, outcome.ran[-1].hook, self._root)
            return GateAnswer(decision="deny", reason=halted_reason(self._session, halt.reason, halt.at), halted=True)
        return _answer(outcome)

    async def _check(self, asked: Asked) -> CheckEnd:
        return await (await self._checks()).check(asked.hook)

    async def _decide(self, asked: Asked, condition: str) -> bool:
        """Symbols that a client's own edit is about are not known, and so the condition holds."""
        if condition != EDITED_BY_OTHERS:
            return asked.event.use is not None and asked.event.use.effect == "edit"
        inside = self._inside([asked.file]) if asked.file else []
        return not inside or await (await self._checks()).edited_by_others(inside[0])

    async def _checks(self) -> Checks:
        services = self._services
        if self._opened is None:
            root = services.projects.find(str(self._root), opener_in(str(self._root), person=False))
            self._opened = await services.projects.open(root)
        state = services.gating.states.of(self._session)
        baseline = state.baselines.setdefault(str(self._root), Baseline())
        return Checks(self._opened, self._session, baseline, services.history, services.validation)

    def _inside(self, files: Sequence[str]) -> list[str]:
        paths = [Path(file) for file in files]
        return [path.relative_to(self._root).as_posix() for path in paths if path.is_relative_to(self._root)]


def _has_ended(response: Any) -> bool:
    """Whether what Claude Code reports of a command is its end, and not that it goes on in the background."""
    said = as_object(response) or {}
    return not said.get("backgroundTaskId") and not said.get("interrupted")


def _answer(outcome: Outcome) -> GateAnswer:
    decision = "deny" if outcome.blocked else "ask" if outcome.asks else ""
    return GateAnswer(
        decision=decision,
        reason=outcome.blocked or outcome.asks,
        context="\n".join(outcome.context),
        updated_input=outcome.updated if not decision else None,
    )


def halted_reason(session: str, reason: str, at: float) -> str:
    return f"This session was halted at {utc(at)}: {reason}. A person can resume it: serena-central resume {session}"
