"""Hooks for the start and the end of sessions: they run when a session first works on a project, and when it has ended.

A client that runs these hooks itself, or whose own hook has reported the event, does not have them run a second time.
"""

import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import ProjectRefused
from serena_central.core.event_kinds import SessionDisconnected, SessionForgotten, SessionKilled
from serena_central.core.events import Event
from serena_central.core.lru import Lru
from serena_central.core.progress import waiting_for
from serena_central.gates.begun import BegunSession, BegunSessions
from serena_central.gates.engine import matching
from serena_central.gates.events import SESSION_END, SESSION_START, GateEvent
from serena_central.gates.rules import Hook
from serena_central.sessions.session import Session
from serena_central.tools.context import Services, ToolCall
from serena_central.tools.event_gate import CLAUDE_CODE, EventGate
from serena_central.tools.native_gate import root_around, runs_by_itself

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective

logger = logging.getLogger(__name__)

MOST_CLIENTS = 1000
"""Sessions and processes of which it is remembered what their clients reported, or that they have ended."""

MOST_ENDING = 8
"""Sessions whose hooks run at a time when many end at once."""

STARTUP, RESUME, OTHER = "startup", "resume", "other"
"""What matchers of these events are compared with."""

Client = tuple[str, str | int]
"""A session's id as ("", id), or a client's process as (credential, process id)."""


class SessionHooks:
    """Belongs to the event loop's thread. Made when a session first meets such a hook."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._begun = BegunSessions(services.places.begun_file)
        self._reported: Lru[Client, set[tuple[str, str]]] = Lru(MOST_CLIENTS)
        """(event, hook) of which the client's own hook has told."""
        self._ended: Lru[str, set[str]] = Lru(MOST_CLIENTS)
        """Session → roots in which its SessionEnd hooks have run here."""
        self._starting: dict[tuple[str, str], anyio.Event] = {}
        """(session, root) → set when the hooks of its last start there have run."""
        self._ending = anyio.CapacityLimiter(MOST_ENDING)
        services.bus.tap(self._take)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ends the sessions that an earlier run of this server left, and that are not back. Waits for nothing."""
        known = {session.id for session in self._services.sessions.sessions()}
        for session in self._begun.ids():
            if session not in known:
                self._end(session)
        task_status.started()

    # --- the start -------------------------------------------------------------------------------------------------

    async def begin(self, call: ToolCall, root: Path, found: "Effective") -> None:
        """Before a session's call in a root: its first one waits until the SessionStart hooks have run there.

        Raises:
            SessionHalted: a hook halted the session.
        """
        session, key = call.session, (call.session.id, str(root))
        if call.person or call.from_hook:
            return  # at a command line, in the dashboard or in a hook, such as one of these: no session of an agent
        if not self._begun.has(*key):
            self._begin(session, root, found)
        done = self._starting.get(key)
        if done is None:
            return
        began = time.monotonic()
        with waiting_for(lambda: (f"{SESSION_START} hooks", None)):
            await done.wait()
        call.began += time.monotonic() - began  # hooks have deadlines of their own
        self._services.gating.check_halted(session)

    def _begin(self, session: Session, root: Path, found: "Effective") -> None:
        rules = self._services.gating.rules(root, found)
        if not (rules.of(SESSION_START) or rules.of(SESSION_END)):
            return  # held back: they run once somebody trusts them
        folder = session.working_folder
        by_client = session.client_name == CLAUDE_CODE and bool(folder) and _lies_in(Path(folder or "/"), root)
        known = self._begun.begin(session.id, session.client_name, str(root), by_client=by_client)
        clients: list[Client] = [("", session.id), (session.credential, session.client_pid or 0)]
        elsewhere = {hook for client in clients for event, hook in self._reported.get(client) or () if _is_start(event)}
        elsewhere |= set(known.ran)
        hooks = [
            hook
            for hook in rules.of(SESSION_START)
            if hook.name not in elsewhere and not _by_client(hook, known, by_client=by_client)
        ]
        why = RESUME if session.id in self._ended else STARTUP
        event = GateEvent(SESSION_START, session.id, root, why=why, client=session.client_name, more={"source": why})
        matched = matching(hooks, event)
        known.ran += [one.hook.name for one in matched]
        self._begun.save()
        waited = [one.hook for one in matched if not one.hook.background]
        if waited:
            key, done = (session.id, str(root)), anyio.Event()
            if self._services.gating.start(partial(self._start, waited, event, found, key, done)):
                self._starting[key] = done
        for one in matched:
            if one.hook.background:
                self._services.gating.start_hooks(partial(self._run, [one.hook], event, found))

    async def _start(
        self, hooks: Sequence[Hook], event: GateEvent, found: "Effective", key: tuple[str, str], done: anyio.Event
    ) -> None:
        try:
            await self._run(hooks, event, found)
        finally:
            done.set()
            if self._starting.get(key) is done:  # else the session ended meanwhile, and has begun again
                del self._starting[key]

    # --- the end ---------------------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        if isinstance(event, SessionForgotten | SessionKilled) or (
            isinstance(event, SessionDisconnected) and event.for_good
        ):
            self._end(event.session or "")

    def _end(self, session: str) -> None:
        if session not in self._begun or not self._services.gating.runs:
            return  # a server that stops ends no session
        known = self._begun.end(session)
        assert known is not None
        self._ended[session] = set(known.roots)
        self._services.gating.start(partial(self._finish, session, known))

    async def _finish(self, session: str, known: BegunSession) -> None:
        async with self._ending:
            ran = {hook for event, hook in self._reported.get(("", session)) or () if not _is_start(event)}
            for root, by_client in known.roots.items():
                found = self._services.claude.of(Path(root))
                if found is None or not found.has_session_hooks:
                    continue
                hooks = [
                    hook
                    for hook in self._services.gating.rules(Path(root), found).of(SESSION_END)
                    if hook.name not in ran and not _by_client(hook, known, by_client=by_client)
                ]
                ran.update(hook.name for hook in hooks)
                event = GateEvent(
                    SESSION_END, session, Path(root), why=OTHER, client=known.client, more={"reason": OTHER}
                )
                await self._run(hooks, event, found)

    # --- both ------------------------------------------------------------------------------------------------------

    async def _run(self, hooks: Sequence[Hook], event: GateEvent, found: "Effective") -> None:
        matched = matching(hooks, event)
        if not matched:
            return
        try:
            answer = await EventGate(self._services, found, event).run(matched, ())
        except Exception:
            logger.exception("hooks for %s failed in %s", event.name, event.root, extra={"session": event.session})
            return
        if event.name == SESSION_START and not answer.halted:
            for text in filter(None, (*answer.context.split("\n"), answer.reason)):  # a sentence each
                self._services.gating.states.tell(event.session, text)

    def report(
        self, session: Session, ancestors: Collection[int], name: str, root: Path, why: str, hooks: Collection[str]
    ) -> bool:
        """A client's own hook tells of a start or an end; whether `hooks`, by their names, are to run for it: not where
        they have run here for this session."""
        same = [
            one.id
            for one in self._services.sessions.sessions()
            if one.client_pid in ancestors and one.credential == session.credential
        ]
        ids = {session.id, *same}
        if _is_start(name):
            if why in ("", STARTUP) and any(self._begun.has(one, str(root)) for one in ids):
                return False
        elif any(str(root) in (self._ended.get(one) or ()) for one in ids):
            return False
        clients: list[Client] = [("", one) for one in ids]
        if _is_start(name):
            clients += [(session.credential, process) for process in ancestors]
        for client in clients:
            known = self._reported.get(client) or set[tuple[str, str]]()
            kept = {one for one in known if _is_start(one[0])} if _is_start(name) else known  # it begins again
            self._reported[client] = kept | {(name, hook) for hook in hooks}
        return True


def _lies_in(folder: Path, root: Path) -> bool:
    """Not where nobody can look at it now."""
    with suppress(ProjectRefused):
        return root_around(folder) == root
    return False


def _is_start(event: str) -> bool:
    return event == SESSION_START


def _by_client(hook: Hook, known: BegunSession, *, by_client: bool) -> bool:
    """Whether the client runs a hook itself: Claude Code those of its own folder and of its user."""
    return known.client == CLAUDE_CODE and (by_client or hook.tier.trusted) and runs_by_itself(hook)
