"""One upstream and its supervising task, which alone enters and leaves its connection.

It is started by the first who needs it, however many need it then, and stopped when nobody has for a while. One that
crashes, or is silent at a health check, is started again by the next need, after a pause; when that has happened more
than `restarts` times in a row it has failed, until a person restarts it or its configuration changes.
"""

import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import ServerNotification
from msgspec import structs

from serena_central.config.policies import HubPolicy
from serena_central.core.errors import SerenaCentralError, UpstreamCallFailed, UpstreamUnavailable
from serena_central.core.groups import only_cause
from serena_central.hub.callers import Caller
from serena_central.hub.catalogs import Catalog
from serena_central.hub.connection import Connection, connected
from serena_central.hub.link import Link
from serena_central.hub.list_changes import ListChanges
from serena_central.hub.masks import Masks
from serena_central.hub.snapshots import UpstreamSnapshot, UpstreamState
from serena_central.hub.specs import UpstreamSpec
from serena_central.hub.subscribers import Subscriber, Subscribers
from serena_central.hub.wire_log import WireLog
from serena_central.standalone.backoff import backoff_s

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

ENDING_S = 20.0
"""How long the end of a run is waited for: more than the whole stop ladder."""

RESTART_CAP_S = 10.0
"""The longest pause before a restart."""


class _Attempt:
    """One start: whoever needs the upstream waits for it."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.error: SerenaCentralError | None = None


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What all upstreams of a hub share."""

    version: str
    policy: HubPolicy
    temporary: Path
    log_folders: tuple[Path, ...]
    logins: Path
    """Where the tokens of people's logins are."""
    mark: Mapping[str, str]
    """Variables by which processes that outlive this server are found again."""
    learned: Callable[["Upstream", Catalog], None]
    """Called with the lists of an upstream, each time it has started or said that they changed."""
    updated: Callable[["Upstream", str, str], None]
    """Called with a session and the URI of a resource that it subscribed to, when that has changed."""
    moved: Callable[["Upstream", UpstreamState], None]
    """Called after each change of state, with the one before."""
    asking: Callable[[str], list[str]]
    """Key → tools that are known to ask back."""


class Upstream:
    """`run` belongs to the hub's task group; all else may be called from any task."""

    def __init__(self, spec: UpstreamSpec, scope: str, around: Surroundings, masks: Masks) -> None:
        self.spec = spec
        self._masks = masks
        self.scope = scope
        self._around = around
        self.state = UpstreamState.STOPPED
        self.why = ""
        self._attempt = _Attempt()
        self._needed = anyio.Event()
        self._end = anyio.Event()
        """Set to end the present run, or the present pause."""
        self._end_reason = ""
        self._dismissed = ""
        """Why it ends as soon as no call is in progress, and does not start again."""
        self._starting: anyio.CancelScope | None = None
        """Around the present start."""
        self._connection: Connection | None = None
        self._serving: Connection | None = None
        """The same, until its run is over."""
        self._run_over = anyio.Event()
        self._loss_known = anyio.Event()
        """Set when it is known why the present run ends: before its program has ended, which may take its time."""
        self._link: Link | None = None
        self._lists = ListChanges(spec.name)
        self._users: list[str] = []
        self.subscribers = Subscribers(spec.name, lambda session, uri: around.updated(self, session, uri))
        self._last_used = anyio.current_time()
        self.crashes = 0
        self._lost = ""
        """What its last run ended of, unless somebody wanted that end, or it has become ready since."""
        self.calls = 0
        self.errors = 0
        self.catalog: Catalog | None = None
        self._started_at: float | None = None
        self._used_at: float | None = None

    # --- for callers ---------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Calls a tool, and starts the upstream for it where needed.

        Raises:
            UpstreamUnavailable: it can't be started, or ended before it answered.
            UpstreamCallFailed: it answered with an error.
        """
        self.calls += 1
        try:
            return await self.asked(lambda connection: connection.call(tool, arguments, caller), caller)
        except SerenaCentralError:
            self.errors += 1
            raise

    async def asked(self, ask: Callable[[Connection], Awaitable[Answer]], caller: Caller) -> Answer:
        """Any request of a caller. One that was not carried out, because the server had forgotten our session, is sent
        again on a new connection."""
        self._users.append(caller.session)
        try:
            connection = await self.connection()
            try:
                return await ask(connection)
            except UpstreamUnavailable as error:
                if self._serving is connection:
                    with anyio.move_on_after(ENDING_S):
                        await self._loss_known.wait()
                raise UpstreamUnavailable(self.spec.name, self._lost or self.why or error.why) from error
            except UpstreamCallFailed as error:
                if not error.forgotten:
                    raise
            await self._end_run(connection, "the server had forgotten its session")
            return await ask(await self.connection())
        finally:
            self._users.remove(caller.session)
            self._last_used, self._used_at = anyio.current_time(), time.time()
            if self._dismissed and not self.in_use:
                self._end.set()

    async def subscribe(self, uri: str, who: Subscriber) -> None:
        """Updates of a resource reach this session from now on, also after a restart.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
            ToolRefused: it has too many subscriptions.
        """
        connection = await self.connection()
        self.subscribers.add(uri, who)
        try:
            await connection.subscribe(uri)
        except SerenaCentralError:
            self.subscribers.remove(uri, who)
            raise

    async def unsubscribe(self, uri: str, who: Subscriber) -> None:
        """Raises as `subscribe` does."""
        if self.subscribers.remove(uri, who) and self._connection is not None:
            await self._connection.unsubscribe(uri)

    async def want_logs(self, level: str) -> None:
        """A session wants log messages of this level. Raises as `subscribe` does."""
        if self._connection is not None:
            await self._connection.want_logs(level)

    async def connection(self) -> Connection:
        """The connection, when there is one. Bounded by the deadline of the start and by the pause before it.

        Raises:
            UpstreamUnavailable
        """
        while True:
            if self._dismissed:
                raise UpstreamUnavailable(self.spec.name, self._dismissed, gone=True, sent=False)
            is_ending = self._end.is_set() or (self._link is not None and self._link.has_ended)
            if self._connection is not None and not is_ending:
                return self._connection
            if self._serving is not None:  # it has ended, or is about to: the next run serves who comes now
                await self._ended(self._serving)
                continue
            if self.state is UpstreamState.FAILED:
                raise UpstreamUnavailable(self.spec.name, self.why, failed=True, sent=False)
            attempt = self._attempt
            self._needed.set()
            await attempt.over.wait()
            if attempt.error is not None:
                raise attempt.error

    async def end(self, reason: str) -> None:
        """Ends the present run, if there is one, and waits until it has ended."""
        if self._connection is not None:
            await self._end_run(self._connection, reason)
        else:
            self._end_reason = reason
            self._end.set()

    def retire(self, reason: str) -> None:
        """Ends a run that nobody uses; it starts again when it is needed. Does not wait."""
        if self._connection is not None and not self.in_use:
            self._end_reason = reason
            self._end.set()

    def dismiss(self, reason: str) -> None:
        """It may not be used any more. Calls in progress have their answers first; those that wait for its start, or
        come later, are refused. Does not wait; `run` returns when it has ended."""
        self._dismissed = self._end_reason = reason
        if self._starting is not None:
            self._starting.cancel()
        if self._connection is None or not self.in_use:
            self._needed.set()
            self._end.set()

    @property
    def is_dismissed(self) -> bool:
        return bool(self._dismissed)

    async def _end_run(self, connection: Connection, reason: str) -> None:
        if self._connection is connection:
            self._end_reason = reason
            self._end.set()
        await self._ended(connection)

    async def _ended(self, connection: Connection) -> None:
        """Waits until the run of a connection is over, so that why it ended is known."""
        if self._serving is connection:
            with anyio.move_on_after(ENDING_S):
                await self._run_over.wait()

    def forgive(self) -> None:
        """A person wants it to be started again: what was is forgotten."""
        self.crashes, self._lost = 0, ""
        if self.state in (UpstreamState.FAILED, UpstreamState.PAUSED):
            self._end_reason = "restarted by hand"
            self._end.set()

    def snapshot(self) -> UpstreamSnapshot:
        catalog, link = self.catalog, self._link
        return UpstreamSnapshot(
            name=self.spec.name,
            key=self.spec.key,
            scope=self.scope,
            kind=self.spec.kind,
            target=self.spec.target,
            source=str(self.spec.source),
            place=self.spec.place,
            sharing=self.spec.sharing,
            state=self.state,
            why=self.why,
            pid=self.pid,
            started_at=self._started_at,
            last_used_at=self._used_at,
            restarts=self.crashes,
            calls=self.calls,
            errors=self.errors,
            users=sorted(set(self._users)),
            server=catalog.server if catalog else "",
            version=catalog.version if catalog else "",
            protocol=catalog.protocol if catalog else "",
            tools=len(catalog.tools) if catalog else 0,
            garbage=link.garbage if link else 0,
        )

    @property
    def in_use(self) -> bool:
        return bool(self._users)

    @property
    def is_idle(self) -> bool:
        """Nothing runs, and nobody waits until it does."""
        return self._serving is None and not self._needed.is_set() and not self.in_use

    @property
    def pid(self) -> int | None:
        return self._link.process.pid if self._link is not None and self._link.process is not None else None

    @property
    def idle_s(self) -> float | None:
        """How long nobody has used it; None while it is used, or does not run."""
        if self.in_use or self.subscribers or self._connection is None:
            return None
        return anyio.current_time() - self._last_used

    # --- the supervising task ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Runs until it is cancelled or has been dismissed, which ends the program, too."""
        try:
            await self._run()
        finally:
            self._dismissed = self._dismissed or "it was ended"
            self._attempt.over.set()  # nobody waits for a start that does not come
        self._move(UpstreamState.STOPPED, self._dismissed)

    async def _run(self) -> None:
        while not self._dismissed:
            if self.state is UpstreamState.FAILED:
                await self._end.wait()
                self._move(UpstreamState.STOPPED, "")
            await self._needed.wait()
            await self._pause()
            if self._dismissed:
                return
            self._end, self._run_over, self._loss_known = anyio.Event(), anyio.Event(), anyio.Event()
            self._move(UpstreamState.STARTING, f"its last run failed: {self._lost}" if self._lost else "")
            lost = ""
            try:
                lost = await self._one_run()
            except Exception as error:  # noqa: BLE001 (the end of a run, however it came about)
                lost = self._link.explained(only_cause(error)) if self._link else self._masks.masked(str(error))
            finally:
                self._over(lost)

    async def _pause(self) -> None:
        pause = backoff_s(self.crashes, first_s=self._around.policy.restart_delay_s, cap_s=RESTART_CAP_S)
        if pause:
            self._move(UpstreamState.PAUSED, self.why)
            with anyio.move_on_after(pause):
                await self._end.wait()

    def _over(self, lost: str) -> None:
        """A run has ended; `lost` says of what, where nobody wanted it."""
        self._connection = self._serving = self._link = None
        self._started_at = None
        attempt, self._attempt = self._attempt, _Attempt()
        self._lost = lost
        self._needed = anyio.Event()  # who came during the start has its outcome, and no need of another one
        if lost:
            self.crashes += 1
            failed = self.crashes > self._around.policy.restarts
            self._move(UpstreamState.FAILED if failed else UpstreamState.PAUSED, lost)
            attempt.error = UpstreamUnavailable(self.spec.name, lost, failed=failed, sent=False)
            self._end = anyio.Event()
            if self.subscribers:
                self._needed.set()  # they wait for updates, and don't call
            logger.warning("the MCP server %s: %s", self.spec.name, lost)
        else:
            self._move(UpstreamState.STOPPED, self._end_reason)
        attempt.over.set()
        self._loss_known.set()
        self._run_over.set()

    async def _one_run(self) -> str:
        """From the start to the end; what it ended of, empty where that was wanted."""
        spec, around = self.spec, self._around
        log = WireLog(around.log_folders, spec.name, self._masks)
        self._link = link = Link(spec, log, self._masks, around.logins)
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + spec.start_timeout_s) as bound:
                self._starting = bound
                async with link.opened(
                    around.temporary, around.policy.memory_limit_mb * 1024 * 1024, around.mark
                ) as streams:
                    lost = await self._connected(link, streams, bound)
                    log.note(f"the connection ends: {lost or self._end_reason}")
                    return lost
            if self._dismissed:
                return ""
            raise TimeoutError
        finally:
            self._starting = None
            log.close()

    async def _connected(self, link: Link, streams: tuple[Any, Any], bound: anyio.CancelScope) -> str:
        spec, around = self.spec, self._around
        made = Connection(
            spec.name, around.version, self._heard, around.asking(spec.key), self._learn_asking, self._masks.masked
        )
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(connected(made, *streams))
                await self._learn(connection)
            except (MCPError, UpstreamCallFailed) as error:
                await link.settle()
                return link.explained(error)
            bound.deadline, self._starting = math.inf, None
            self._ready(connection)
            for uri in self.subscribers.uris:
                try:
                    await connection.subscribe(uri)
                except SerenaCentralError as error:
                    logger.warning("updates of %.200r do not come any more: %s", uri, error)
            lost = await self._while_it_lives(connection)
            if lost:
                await link.settle()
                self._lost = link.explained(None, lost)
                self._loss_known.set()
                return self._lost
            link.end_in_order()
            return ""

    async def _learn(self, connection: Connection) -> None:
        self._lists.begin_reading()
        self.catalog = self._masks.without_secrets(await connection.catalog())
        self._around.learned(self, self.catalog)

    def _learn_asking(self, tools: set[str]) -> None:
        if self.catalog is not None:
            self._around.learned(self, structs.replace(self.catalog, asking=sorted(tools)))

    def _ready(self, connection: Connection) -> None:
        self._connection = self._serving = connection
        self._last_used, self._started_at, self._lost = anyio.current_time(), time.time(), ""
        self._move(UpstreamState.READY, "")
        attempt, self._attempt = self._attempt, _Attempt()
        attempt.over.set()

    async def _while_it_lives(self, connection: Connection) -> str:
        """Returns what ends the run; empty where nobody needs it any more, or somebody has ended it."""
        policy, began, lost = self._around.policy, anyio.current_time(), ""
        pinged = began
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()
            tasks.start_soon(self._until_closed, connection, ended)
            tasks.start_soon(self._lists.follow, partial(self._learn, connection), self.spec.start_timeout_s)
            tasks.start_soon(self.subscribers.run)
            try:
                while True:
                    with anyio.move_on_after(self._patience(pinged)):
                        await _first(self._end, ended)
                    if self._end.is_set() or ended.is_set():
                        break
                    now = anyio.current_time()
                    if now - began >= policy.stable_s:
                        self.crashes = 0
                    if self.in_use:
                        pinged = now  # what is waited for has deadlines of its own, and it may well be busy
                    elif now - self._last_used >= policy.idle_stop_s and not self.subscribers:
                        self._end_reason = f"it was not called for {policy.idle_stop_s:.0f} s"
                        self._end.set()
                    elif now - pinged >= policy.health_interval_s:
                        lost = await self._trouble(connection)
                        if lost:
                            break
                        pinged = anyio.current_time()
            finally:
                self._connection = None  # nobody new comes in while it ends
                tasks.cancel_scope.cancel()
        return lost or ("" if self._end.is_set() else "its connection ended")

    def _patience(self, pinged: float) -> float:
        """How long until something has to be looked at."""
        policy, now = self._around.policy, anyio.current_time()
        due = min(pinged + policy.health_interval_s, self._last_used + policy.idle_stop_s)
        return min(max(due - now, 0.05), policy.health_interval_s)

    async def _until_closed(self, connection: Connection, ended: anyio.Event) -> None:
        await connection.closed()
        ended.set()

    async def _trouble(self, connection: Connection) -> str:
        """What a health check finds wrong."""
        limit_s = self._around.policy.health_timeout_s
        with anyio.move_on_after(limit_s):
            return await connection.trouble()
        # Nothing where somebody has called meanwhile.
        return "" if self.in_use else f"it did not answer a health check within {limit_s:.0f} s"

    async def _heard(self, _connection: Connection, message: ServerNotification) -> None:
        if message.method.endswith("/list_changed"):
            self._lists.heard()
        elif message.method == "notifications/resources/updated":
            self.subscribers.updated(str(message.params.uri))

    def _move(self, state: UpstreamState, why: str) -> None:
        before, self.state, self.why = self.state, state, why
        if before is not state:
            self._around.moved(self, before)


async def _first(*events: anyio.Event) -> None:
    """Waits for the first of several events."""
    async with anyio.create_task_group() as tasks:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        for event in events:
            tasks.start_soon(wait, event)


@asynccontextmanager
async def running(upstream: Upstream) -> AsyncGenerator[Upstream]:
    """Runs one upstream by itself while the block is open, for tests and commands."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(upstream.run)
        yield upstream
        tasks.cancel_scope.cancel()
