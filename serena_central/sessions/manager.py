"""SessionManager: resolves client identities to sessions, keeps the sessions, and ends them.

It publishes what happens to sessions and tells projects how many sessions are interested in them; it knows neither MCP
nor HTTP. Killing is enforced here: `identify` refuses a terminated session whatever door its request came through.
"""

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskStatus

from serena_central.config.policies import SessionPolicy
from serena_central.core.errors import SessionNotFound, TooManySessions
from serena_central.core.event_kinds import (
    SessionActivated,
    SessionCreated,
    SessionDisconnected,
    SessionForgotten,
    SessionIdle,
    SessionKilled,
    SessionModes,
    SessionReturned,
    SessionRevived,
)
from serena_central.core.events import EventBus
from serena_central.core.periodic import repeat
from serena_central.core.rest import rest
from serena_central.core.running_time import Steps
from serena_central.sessions.session import (
    ActiveProject,
    ClientIdentity,
    IdentifiedBy,
    Session,
    SessionState,
    Termination,
    new_session_id,
)
from serena_central.sessions.session_snapshot import SessionSnapshot, snapshot
from serena_central.sessions.users import Users

logger = logging.getLogger(__name__)

RECLAIMED_SHARE = 50
"""At the limit, the maximum number of sessions divided by this is forgotten at once."""

USERS_SHARE = 2
"""A user of a team has at most the maximum number of sessions divided by this: nobody locks the others out alone."""

TOMBSTONES_KEPT_S = 24 * 3600
"""How long the id of a killed session is refused after the session is forgotten, in seconds."""


class Interest(Protocol):
    """Who wants to know which roots sessions work on (the projects' registry)."""

    def attach(self, root: str) -> None: ...
    def detach(self, root: str) -> None: ...


class SessionManager:
    """All sessions of this server. Belongs to the event loop's thread; no method but `run` waits."""

    def __init__(
        self,
        *,
        bus: EventBus,
        interest: Interest,
        policy: SessionPolicy | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
        front: str = "",
        users: Users | None = None,
    ) -> None:
        """`front` is this server's name where several share a database. `clock` is Unix time. Where it leaves `steady`,
        it was set, or this process was stopped."""
        self._users = users or Users()
        self.policy = policy or SessionPolicy()
        self._front = front
        self._bus = bus
        self._interest = interest
        self._clock = clock
        self._steps = Steps(clock, steady or clock)
        self._sessions: dict[str, Session] = {}
        self.requests = 0
        """Requests of sessions so far, which may have changed what is shown of them."""

    def new_id(self) -> str:
        """For a session that begins here. A load balancer knows by it where it began."""
        return new_session_id(self._front)

    def identify(self, identity: ClientIdentity) -> Session:
        """The session that a request belongs to, created if it is new, woken if it slept.

        Raises:
            SessionTerminated: a person killed it.
            SessionNotFound: it belongs to another credential.
            TooManySessions: it would be a new one, and all there may be are in use.
            InvalidArguments: its explicit id is no identifier.
        """
        self.requests += 1
        rest.stir()
        session_id, identified_by = identity.resolve()
        folder = identity.working_folder
        if folder and self._users.present and not self._users.may_work_in(identity.credential, folder):
            # Its settings, modules and MCP servers are not for this user.
            identity = msgspec.structs.replace(identity, working_folder=None)
        now = self._now()
        session = self._sessions.get(session_id)
        if session is None:
            return self._create(session_id, identified_by, identity, now)
        if session.credential != identity.credential:
            raise SessionNotFound(session_id)
        session.check_alive(now)
        if session.termination is not None:
            session.termination = None
            self._bus.publish(SessionRevived(message="The termination of a shared session expired", session=session.id))
        self._welcome_back(session)
        session.touch(identity, now)
        self._sync_interest(session)
        return session

    @contextmanager
    def held(self, session: Session) -> Generator[None]:
        """Around a stream that the session's client keeps open: it is there, and stays there, however quiet it is."""
        self._welcome_back(session)
        self._sync_interest(session)
        session.holders += 1
        try:
            yield
        finally:
            session.holders -= 1

    def _welcome_back(self, session: Session) -> None:
        if session.disconnected_at is not None:
            session.disconnected_at, session.ended, session.awaited = None, False, False
            self._bus.publish(SessionReturned(session=session.id))

    def _create(self, session_id: str, identified_by: IdentifiedBy, identity: ClientIdentity, now: float) -> Session:
        self._make_room(identity.credential)
        session = Session(session_id, identified_by, identity, now=now)
        self._sessions[session_id] = session
        self._bus.publish(
            SessionCreated(
                session=session_id,
                client=session.client_name,
                version=session.client_version,
                identified_by=identified_by.value,
                folder=identity.working_folder,
            )
        )
        return session

    def check_room(self, credential: str) -> None:
        """Raises TooManySessions if somebody's new session could not begin."""
        limit, among = self._share_of(credential)
        if len(among) >= limit and not _dispensable(among):
            raise TooManySessions(limit, whole=limit == self.policy.max_sessions)

    def _share_of(self, credential: str) -> tuple[int, Collection[Session]]:
        """The limit for somebody, and the sessions that count: all, or those of a user whose share is used up."""
        limit = self.policy.max_sessions
        share = max(1, limit // USERS_SHARE)
        if len(self._sessions) >= share and self._users.is_restricted(credential):
            own = [session for session in self._sessions.values() if session.credential == credential]
            if len(own) >= share:
                return share, own
        return limit, self._sessions.values()

    def _make_room(self, credential: str) -> None:
        """Forgets unused sessions, else those whose clients are gone, the least recently active first, so that neither
        a client that opens ever more sessions nor clients that have ended lock out the others.

        Raises:
            TooManySessions
        """
        limit, among = self._share_of(credential)
        if len(among) < limit:
            return
        found = _dispensable(among)
        if not found:
            raise TooManySessions(limit, whole=limit == self.policy.max_sessions)
        # A few at once: else each new session would look through all of them.
        found.sort(key=lambda session: session.last_activity)
        for session in found[: 1 + limit // RECLAIMED_SHARE]:
            why = "it made no call" if _is_unused(session) else "its client disconnected"
            self._forget(session, f"{why}, and the session limit was reached")

    def _forget(self, session: Session, why: str = "") -> None:
        del self._sessions[session.id]
        if session.disconnected_at is None:
            session.disconnected_at = self._clock()
            self._sync_interest(session)
        self._bus.publish(SessionForgotten(message=why, session=session.id))

    def restore(self, sessions: Iterable[Session]) -> None:
        """Restores the sessions of an earlier run of this server; all count as disconnected until they call."""
        now = self._now()
        newest_first = sorted(sessions, key=lambda session: (session.calls == 0, -session.last_activity))
        kept = newest_first[: max(0, self.policy.max_sessions - len(self._sessions))]
        for session in sorted(kept, key=lambda session: session.created_at):
            if session.disconnected_at is None:
                session.disconnected_at, session.awaited = now, session.termination is None
            self._sessions.setdefault(session.id, session)

    def drop(self, session_id: str) -> None:
        """Makes room for a newer state of a session that goes on, so that nobody hears of an end. Unknown ids are
        ignored."""
        session = self._sessions.pop(session_id, None)
        if session is not None and session.disconnected_at is None:
            session.disconnected_at = self._now()
            self._sync_interest(session)

    def get(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    def sessions(self) -> list[Session]:
        """All sessions that are remembered, oldest first."""
        return list(self._sessions.values())

    def any_call_runs(self) -> bool:
        return any(session.running for session in self._sessions.values())

    def snapshots(self) -> list[SessionSnapshot]:
        now = self._now()
        return [snapshot(session, now, self.policy.idle_after_s) for session in self._sessions.values()]

    def state(self, session: Session) -> SessionState:
        return session.state(self._now(), self.policy.idle_after_s)

    def snapshot(self, session: Session) -> SessionSnapshot:
        return snapshot(session, self._now(), self.policy.idle_after_s)

    def activate(self, session: Session, project: ActiveProject) -> None:
        """Makes `project` the session's active one. Callers refuse this for shared sessions."""
        if session.active_project == project:
            return
        session.active_project = project
        self._sync_interest(session)
        self._bus.publish(SessionActivated(session=session.id, project=project.name, root=project.root))

    def works_on(self, session: Session, project: ActiveProject) -> None:
        """A call of the session is about one project. A shared session works on none: two windows may hide in it."""
        if session.worked_on != project and not session.shared:
            session.worked_on = project
            self._sync_interest(session)

    def release(self, session: Session) -> None:
        """A call ended whose session another process keeps: its interest in a project ends here."""
        session.active_project = session.worked_on = None
        self._sync_interest(session)

    def switch_modes(self, session: Session, modes: Sequence[str]) -> None:
        """Gives the session these modes; none means the default ones. Callers refuse this for shared sessions."""
        session.modes, session.modes_chosen = tuple(modes), True
        named = ", ".join(modes) or "the default ones"
        self._bus.publish(SessionModes(message=named, session=session.id))

    def forget_project(self, root: str) -> None:
        """Takes a removed project away from every session that had it active."""
        for session in self._sessions.values():
            if session.active_project is not None and session.active_project.root == root:
                session.active_project = None
            if session.worked_on is not None and session.worked_on.root == root:
                session.worked_on = None
            self._sync_interest(session)

    def disconnect(self, session_id: str, reason: str, *, for_good: bool = False) -> None:
        """Marks a session whose client has gone; its running calls are cancelled. Unknown ids are ignored. `for_good`:
        the client said that it ended the session."""
        session = self._sessions.get(session_id)
        if session is None or (session.disconnected_at is not None and (session.ended or not for_good)):
            return
        session.ended = for_good
        session.disconnected_at = self._now()
        self._sync_interest(session)
        for call in list(session.running.values()):
            call.cancel(f"The client disconnected: {reason}.")
        self._bus.publish(SessionDisconnected(message=reason, session=session_id, for_good=for_good))

    def terminate(self, session_id: str, by: str) -> Session:
        """Kills a session: running calls are cancelled, later ones refused.

        Raises:
            SessionNotFound: no session has this id.
        """
        session = self.get(session_id)
        now = self._now()
        if session.terminated(now):
            return session
        until = now + self.policy.shared_kill_lift_s if session.shared else None
        session.termination = killed = Termination(by, now, until)
        self._sync_interest(session)
        session.note(f"terminated by {by}", "warning", at=now)
        reason = str(killed.error)
        for call in list(session.running.values()):
            call.cancel(reason)
        self._bus.publish(SessionKilled(message=f"by {by}", session=session_id))
        return session

    def revive(self, session_id: str) -> Session:
        """Lifts the kill of a session."""
        session = self.get(session_id)
        if session.termination is not None:
            session.termination = None
            self._sync_interest(session)
            self._bus.publish(SessionRevived(session=session_id))
        return session

    def sweep(self) -> None:
        """Moves what time has moved: idle, silently gone, and forgotten sessions."""
        now = self._now()
        for session in list(self._sessions.values()):
            state = session.state(now, self.policy.idle_after_s)
            if state is SessionState.TERMINATED and session.termination is not None:
                if now - session.termination.at > TOMBSTONES_KEPT_S:
                    del self._sessions[session.id]
            elif session.disconnected_at is not None:
                if now - session.disconnected_at >= self.policy.retention_s:
                    self._forget(session)
            elif state is SessionState.IDLE:
                self._sweep_idle(session, now)

    def _sweep_idle(self, session: Session, now: float) -> None:
        if (
            not session.holders
            and now - session.last_activity >= self.policy.modern_disconnect_s
            and session.identified_by is not IdentifiedBy.TRANSPORT
        ):
            self.disconnect(session.id, "it was idle for too long")
        elif not session.seen_idle:
            session.seen_idle = True
            self._bus.publish(SessionIdle(session=session.id))

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Sweeps for ever; belongs to the composition root's task group."""
        task_status.started()
        await repeat("sweeping sessions", self.sweep, every_s=self.policy.sweep_s)

    def check_alive(self, session: Session) -> None:
        """Raises SessionTerminated if a person killed this session."""
        if session.termination is not None:
            session.check_alive(self._now())

    def _now(self) -> float:
        """Unix time. A step of the clock moves what sessions noted by it: they are as old as before."""
        step = self._steps.taken()
        if step:
            logger.warning(
                "the clock jumped by %+.0f s, or this process was suspended; session timeouts are adjusted", step
            )
            for session in self._sessions.values():
                session.move_times(step)
        return self._clock()

    def _sync_interest(self, session: Session) -> None:
        """Brings what projects believe in line with what the session is now; the only place that tells them."""
        gone = session.disconnected_at is not None or session.termination is not None
        wanted = None if gone or session.project is None else session.project.root
        if wanted == session.attached_root:
            return
        if session.attached_root is not None:
            self._interest.detach(session.attached_root)
        session.attached_root = wanted
        if wanted is not None:
            self._interest.attach(wanted)


def _is_unused(session: Session) -> bool:
    """It holds nothing that its client would miss: one that comes back starts over, or is restored."""
    return not (session.calls or session.running or session.holders or session.termination or session.active_project)


def _dispensable(sessions: Collection[Session]) -> list[Session]:
    """Sessions that a new one may take the place of. The terminated ones stay, so that they do not come back."""
    unused = [session for session in sessions if _is_unused(session)]
    return unused or [session for session in sessions if _is_gone(session)]


def _is_gone(session: Session) -> bool:
    """Its client has left it, and nothing is done in it any more."""
    return session.disconnected_at is not None and not (session.running or session.holders or session.termination)
