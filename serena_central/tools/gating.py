"""Hooks around calls: which of the settings' hooks concern a call, and the sessions that hooks have halted.

The engine (`gates`) is imported by the first root whose settings have hooks; elsewhere a call pays for one look at a
flag. `tools/gated_call.py` is what one call does with it.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from serena_central.core.clock import utc
from serena_central.core.errors import SessionHalted
from serena_central.core.event_kinds import SessionHalted as SessionHaltedEvent
from serena_central.core.event_kinds import SessionResumed
from serena_central.core.events import EventBus, Severity
from serena_central.core.lru import Lru
from serena_central.core.periodic import contained
from serena_central.projects.trust.trust_decisions import Standing, Trust
from serena_central.sessions.session import Session

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective
    from serena_central.gates.halting import Halt, Halts
    from serena_central.gates.rules import Rules
    from serena_central.gates.session_state import SessionStates
    from serena_central.processes.fork_server import ForkServer
    from serena_central.projects.project import Project
    from serena_central.tools.catalogue import Tool
    from serena_central.tools.context import Services, ToolCall
    from serena_central.tools.gated_call import GatedCall
    from serena_central.tools.session_hooks import SessionHooks

MOST_AT_ONCE = 16
"""Hooks in the background that run; the others wait. Each is two processes, and calls don't wait for it."""

MOST_ROOTS = 500
"""Whose hooks are kept as they were read."""


class GateAnswer(msgspec.Struct, kw_only=True):
    """What a client is told of its own tool. `decision`: "deny", "ask" or "" (go on). `halted`: its session is to end
    its work."""

    decision: str = ""
    reason: str = ""
    context: str = ""
    updated_input: dict[str, Any] | None = None
    halted: bool = False


class Gating:
    """Belongs to the event loop's thread."""

    def __init__(self, trust: Trust, bus: EventBus, halted_file: Path) -> None:
        self._trust = trust
        self._bus = bus
        self._halted_file = halted_file
        self._rules: Lru[Path, tuple[Effective, Standing, Rules]] = Lru(MOST_ROOTS)
        self._named: Lru[Path, tuple[Effective, dict[tuple[str, bool], bool]]] = Lru(MOST_ROOTS)
        """Whether hooks may concern a tool: by its name, on a project or on none."""
        self._tasks: TaskGroup | None = None
        self._places = anyio.Semaphore(MOST_AT_ONCE)
        self._states: SessionStates | None = None
        self._forks: ForkServer | None = None
        self._session_hooks: SessionHooks | None = None
        # Late: only who has halted sessions loads what reads them.
        self._halts: Halts | None = self._opened_halts() if halted_file.exists() else None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the hooks that run in the background, and the process that starts hooks; they end with it."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()
                if self._forks is not None:
                    await self._forks.close()

    @property
    def runs(self) -> bool:
        """Whether work can be started in the background: the server does not stop."""
        return self._tasks is not None

    def start(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Runs an async function in the background, and logs its failure; whether it does: not where the server
        stops."""
        if self._tasks is None:
            return False
        self._tasks.start_soon(contained, "a hook in the background", work)
        return True

    def start_hooks(self, work: Callable[[], Awaitable[object]]) -> bool:
        """As `start`, for hooks that nobody waits for."""

        async def in_turn() -> None:
            async with self._places:
                await work()

        return self.start(in_turn)

    # --- calls -----------------------------------------------------------------------------------------------------

    def check_halted(self, session: Session) -> None:
        """Raises SessionHalted."""
        if self._halts is not None and (halt := self._halts.of(session.id)) is not None:
            raise SessionHalted(session.id, halt.reason, utc(halt.at))

    def gated(
        self, call: "ToolCall", tool: "Tool", root: Path, project: "Project | None", found: "Effective | None"
    ) -> "GatedCall | None":
        """What hooks have to do with a call in a root; None where no hook concerns it."""
        if found is None or not found.has_hooks:
            return None
        named = self._named.get(root)
        if named is None or named[0] is not found:
            named = self._named[root] = found, {}
        concerned = named[1].get((tool.name, project is not None))
        if concerned is False:
            return None
        # Late: 10 ms that calls without hooks don't pay.
        from serena_central.tools.gated_call import GatedCall, is_concerned

        if concerned is None:
            # By all hooks, also those that nobody trusts: whether they are trusted takes long to find out.
            concerned = is_concerned(found, tool, on_project=project is not None)
            named[1][tool.name, project is not None] = concerned
        return GatedCall(self, call, tool, root, project, self.rules(root, found), found) if concerned else None

    def rules(self, root: Path, found: "Effective") -> "Rules":
        """The hooks that may run in a root now."""
        standing = self._trust.standing(root)
        kept = self._rules.get(root)
        if kept is None or kept[0] is not found or kept[1] is not standing:
            from serena_central.gates.rules import rules_of

            kept = self._rules[root] = found, standing, rules_of(found, standing)
        return kept[2]

    def trusts(self, root: Path) -> bool:
        """Whether what a root's repository brings may be executed."""
        return self._trust.standing(root).trusted

    @property
    def forks(self) -> "ForkServer":
        """Starts commands of hooks; its process is started by the first of them."""
        if self._forks is None:
            from serena_central.processes.fork_server import ForkServer

            self._forks = ForkServer()
        return self._forks

    @property
    def states(self) -> "SessionStates":
        """What hooks left of each session."""
        if self._states is None:
            from serena_central.gates.session_state import SessionStates

            self._states = SessionStates()
        return self._states

    def session_hooks(self, services: "Services") -> "SessionHooks":
        """Runs the hooks for the start and the end of sessions."""
        if self._session_hooks is None:
            from serena_central.tools.session_hooks import SessionHooks

            self._session_hooks = SessionHooks(services)
        return self._session_hooks

    def news(self, session: Session) -> list[str]:
        """What hooks in the background have reported since the session's last answer; each is returned once."""
        return self._states.take_news(session.id) if self._states is not None else []

    # --- halted sessions -------------------------------------------------------------------------------------------

    def halt(self, session: str, reason: str, hook: str, root: Path) -> "Halt":
        """Halts a session until a person resumes it."""
        if self._halts is None:
            self._halts = self._opened_halts()
        halt = self._halts.halt(session, reason, hook, str(root))
        self._bus.publish(SessionHaltedEvent(message=halt.reason, session=session, severity=Severity.WARNING))
        return halt

    def halted(self) -> "dict[str, Halt]":
        """Session id → why it is halted."""
        return self._halts.all() if self._halts is not None else {}

    def resume(self, session: str, by: str) -> bool:
        """Lifts a halt; whether there was one."""
        was = self._halts is not None and self._halts.resume(session)
        if was:
            self._bus.publish(SessionResumed(message=f"by {by}", session=session))
        return was

    def _opened_halts(self) -> "Halts":
        from serena_central.gates.halting import Halts

        return Halts(self._halted_file)
