"""The hub: which upstreams a project has, one process for each, their lists, and calls to them.

It gets callers as data (`Caller`) and the configuration by a function; it knows neither sessions nor tools.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from serena_central.claude_config.effective import Effective
from serena_central.claude_config.sources import Servers
from serena_central.config.policies import HubPolicy
from serena_central.core.errors import SerenaCentralError, UpstreamUnavailable
from serena_central.core.event_kinds import UpstreamListed, UpstreamMoved, UpstreamResourceUpdated
from serena_central.core.events import EventBus, Severity
from serena_central.core.lru import Lru
from serena_central.core.periodic import contained, repeat
from serena_central.core.places import Places
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.hub.callers import Caller
from serena_central.hub.catalogs import Catalog, Catalogs
from serena_central.hub.connection import Connection
from serena_central.hub.masks import Masks
from serena_central.hub.own_server import leads_to_ourselves
from serena_central.hub.snapshots import UpstreamSnapshot, UpstreamState
from serena_central.hub.specs import UpstreamSpec, spec_of
from serena_central.hub.subscribers import Subscriber
from serena_central.hub.upstream import Surroundings, Upstream
from serena_central.pool.budget import OtherProcess
from serena_central.processes.usage import usage_of

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

MOST_ROOTS = 1000
"""Whose upstreams are remembered."""

MOST_MASKS = 1000
"""Upstreams whose secrets are remembered beside those of running ones."""

LEARNED_AT_ONCE = 8
"""Upstreams that start at the same time only because their lists are not known: hundreds that share the CPU would all
exceed the deadline of their start."""

TURN_S = 10.0
"""After which the next one has its turn, unless this one needs the CPU: what else takes longer waits for something."""

BUSY_SHARE = 0.05
"""Of one core, in a turn: less is no start that others would slow down."""

KEPT_RUNNING = 32
"""Beyond this many, one that was started for its lists alone ends when they are known."""

CONFIGURATION_S = 5.0
"""How often it is looked whether what runs is still configured, beside each reading that finds a change."""

NO_ENTRY = "its entry was changed, disabled or removed"

OURSELVES = "it is serena-central itself"


class Configuration(NamedTuple):
    """What the files say of a root; `trusted`: a person trusts what the repository brings."""

    servers: Servers
    settings: Effective
    trusted: bool


class Upstreams(NamedTuple):
    """The usable upstreams of a root by name, and why others that the configuration enables are not used."""

    specs: Mapping[str, UpstreamSpec]
    left_out: Mapping[str, str]


class _Running(NamedTuple):
    upstream: Upstream
    scope: anyio.CancelScope
    roots: set[Path]
    """Whose sessions have used it."""


class _Learning(NamedTuple):
    """Lists that are not known, and are being learned or wait for that."""

    over: anyio.Event
    """Set when they are known, or can't be had."""
    callers: list[Caller]
    """Who wants them, a session once; the upstream is started on behalf of the first."""


class Hub:
    """Belongs to the event loop's thread. `run` has to run for anything to start."""

    def __init__(
        self,
        *,
        configured: Callable[[Path], Configuration | None],
        bus: EventBus,
        places: Places,
        policy: HubPolicy,
        version: str,
        port: int,
        mark: Mapping[str, str],
        started: Callable[[], None],
        own_urls: Iterable[str] = (),
        client_logs: Path | None = None,
    ) -> None:
        """`configured` returns None where no file has a server, and the same `servers` while nothing has changed.
        `mark` goes into the environment of each process, `started` is called when one has started.
        `client_logs`: a folder of the client's own that gets the wire logs, too, where it exists."""
        self._configured = configured
        self._bus = bus
        self._port = port
        self._started = started
        self._own_urls = [*own_urls]
        self.policy = policy
        self.catalogs = Catalogs(places.upstreams)
        self._of_root: Lru[Path, tuple[Servers, Upstreams]] = Lru(MOST_ROOTS)
        self._running: dict[tuple[str, str], _Running] = {}
        """(key, scope) → the upstream, also when its process is stopped."""
        self._masks: Lru[str, Masks] = Lru(MOST_MASKS)
        """By key: all processes of an upstream share what is known of its secrets."""
        self._tasks: anyio.abc.TaskGroup | None = None
        self._learners = anyio.Semaphore(LEARNED_AT_ONCE)
        self._learning: dict[str, _Learning] = {}
        """By key; also those that wait for their turn."""
        self._is_ending = False
        self.changes = 0
        """Counts changes of any list."""
        logs = [places.wire_logs, *([client_logs] if client_logs is not None and client_logs.is_dir() else [])]
        self._around = Surroundings(
            version=version,
            policy=policy,
            temporary=places.temporary,
            log_folders=tuple(logs),
            logins=places.logins,
            mark=mark,
            learned=self._learned,
            updated=self._updated,
            moved=self._moved,
            asking=self._asking,
        )

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs the upstreams until it is cancelled, and ends them."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            await repeat("ending MCP servers without an entry", self._end_unconfigured, every_s=CONFIGURATION_S)

    # --- what there is -------------------------------------------------------------------------------------------

    def of(self, root: Path) -> Upstreams:
        """The upstreams of a root, by name. Some microseconds where nothing has changed."""
        found, known = self._configured(root), self._of_root.get(root)
        if known is not None and found is not None and known[0] is found.servers:
            return known[1]
        made = self._read(root, found) if found is not None else Upstreams({}, {})
        if found is not None:
            self._of_root[root] = found.servers, made
        else:
            self._of_root.discard(root)
        if known is not None:
            self._end_unconfigured()
        return made

    def _end_unconfigured(self) -> None:
        """Ends what no root has any more whose sessions have used it, and forgets what does not run. Calls in progress
        may finish."""
        if self._is_ending:  # a root whose files have changed as well
            return
        self._is_ending = True
        try:
            for place, one in list(self._running.items()):
                if any(self._has(root, one.upstream.spec) for root in one.roots):
                    continue
                if one.upstream.is_idle:
                    self._running.pop(place).scope.cancel()
                else:
                    one.upstream.dismiss(NO_ENTRY)
        finally:
            self._is_ending = False

    def _has(self, root: Path, spec: UpstreamSpec) -> bool:
        found = self.of(root).specs.get(spec.name)
        return found is not None and found.key == spec.key

    def _read(self, root: Path, found: Configuration) -> Upstreams:
        specs: dict[str, UpstreamSpec] = {}
        left_out: dict[str, str] = {}
        for name, server in found.servers.usable().items():
            spec = spec_of(server, root, found.settings, self.policy, trusted=found.trusted)
            if leads_to_ourselves(spec.command, spec.url, self._port, self._own_urls):
                left_out[name] = OURSELVES
                continue
            specs[name] = spec
        return Upstreams(specs, left_out)

    async def known(self, specs: Iterable[UpstreamSpec], caller: Caller, wait_s: float) -> dict[str, Catalog]:
        """Name → what an upstream offers, from the kept lists. Those that are not known are started to learn them,
        and are in the answer if that takes less than `wait_s`; else `UpstreamListed` tells when they are."""
        specs = list(specs)
        missing = [self._learned_soon(spec, caller) for spec in specs if self.catalogs.get(spec.key) is None]
        if missing:
            with anyio.move_on_after(wait_s):
                for over in missing:
                    await over.wait()
        return {spec.name: found for spec in specs if (found := self.catalogs.get(spec.key)) is not None}

    def _learned_soon(self, spec: UpstreamSpec, caller: Caller) -> anyio.Event:
        """Learns the lists of an upstream in the background, `LEARNED_AT_ONCE` at a time; set when that is over."""
        learning = self._learning.get(spec.key)
        if learning is None:
            assert self._tasks is not None
            learning = self._learning[spec.key] = _Learning(anyio.Event(), [])
            self._tasks.start_soon(self._learn_in_turn, spec, learning)
        if all(one.session != caller.session for one in learning.callers):
            learning.callers.append(caller)
        return learning.over

    async def _learn_in_turn(self, spec: UpstreamSpec, learning: _Learning) -> None:
        async with self._learners:
            assert self._tasks is not None
            learn = partial(self._learn_for_all, spec, learning)
            self._tasks.start_soon(contained, f"learning the tools of {quoted(spec.name)}", learn)
            used_s, before_s = 0.0, float("-inf")
            while not learning.over.is_set() and used_s - before_s >= BUSY_SHARE * TURN_S:
                with anyio.move_on_after(TURN_S):
                    await learning.over.wait()
                before_s, used_s = used_s, await self._cpu_s(spec, learning)

    async def _cpu_s(self, spec: UpstreamSpec, learning: _Learning) -> float:
        """What its start has taken of the CPU until now; 0 where no process of ours runs."""
        found = self._running.get((spec.key, scope_of(spec, learning.callers[0]))) if learning.callers else None
        pid = found.upstream.pid if found is not None else None
        return 0.0 if pid is None else (await anyio.to_thread.run_sync(usage_of, pid)).cpu_s

    async def _learn_for_all(self, spec: UpstreamSpec, learning: _Learning) -> None:
        try:
            while learning.callers and self.catalogs.get(spec.key) is None:  # a call may have started it meanwhile
                caller = learning.callers[0]
                await self._learn(spec, caller)
                if caller in learning.callers:
                    break  # else its session has ended, and its process with it: the next one's is started
        finally:
            del self._learning[spec.key]
            learning.over.set()

    async def _learn(self, spec: UpstreamSpec, caller: Caller) -> None:
        try:
            upstream = self._upstream(spec, scope_of(spec, caller), caller)
            if upstream.crashes and upstream.state is not UpstreamState.STARTING:
                return  # it has failed before: a call, or a person, has it started again
            await upstream.connection()
            if not upstream.calls and self._ready() > KEPT_RUNNING:
                upstream.retire("its tools are known; it starts again when it is called")
        except SerenaCentralError as error:
            logger.info("the tools of %s are not known: %s", spec.name, error)

    def _ready(self) -> int:
        return sum(one.upstream.state is UpstreamState.READY for one in self._running.values())

    def unlisted(self, specs: Iterable[UpstreamSpec], caller: Caller) -> dict[str, UpstreamSnapshot]:
        """Name → the state of those whose lists are not known."""
        missing = [spec for spec in specs if self.catalogs.get(spec.key) is None]
        found = {spec.name: self._running.get((spec.key, scope_of(spec, caller))) for spec in missing}
        return {
            spec.name: (one.upstream if (one := found[spec.name]) is not None else self._idle(spec)).snapshot()
            for spec in missing
        }

    async def start(self, spec: UpstreamSpec, caller: Caller) -> None:
        """Starts an upstream for a caller, unless it runs.

        Raises:
            UpstreamUnavailable
        """
        await self._upstream(spec, scope_of(spec, caller), caller).connection()

    def upstreams(self, root: Path | None = None) -> list[UpstreamSnapshot]:
        """All upstreams that were needed since the start, by name and scope; with a root also those that it has and
        nobody needed yet."""
        found = [one.upstream for one in self._running.values()]
        if root is not None:
            specs = self.of(root).specs
            keys = {spec.key for spec in specs.values()}
            found = [one for one in found if one.spec.key in keys]
            there = {one.spec.key for one in found}
            found += [self._idle(spec) for spec in specs.values() if spec.key not in there]
        return sorted((one.snapshot() for one in found), key=lambda one: (one.name, one.scope, one.key))

    def _idle(self, spec: UpstreamSpec) -> Upstream:
        upstream = Upstream(spec, "", self._around, self._masks_of(spec))
        upstream.catalog = self.catalogs.get(spec.key)
        return upstream

    def state(self, name: str, root: Path | None = None) -> UpstreamState | None:
        """Of the upstream of this name, the busiest where there are several; None if there is none."""
        order = (UpstreamState.READY, UpstreamState.STARTING, UpstreamState.PAUSED, UpstreamState.FAILED)
        states = {one.state for one in self.upstreams(root) if one.name == name}
        return next((one for one in order if one in states), next(iter(states), None))

    # --- requests ------------------------------------------------------------------------------------------------

    async def call(self, spec: UpstreamSpec, tool: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Calls a tool; the result is as it came on the wire (MCP's CallToolResult).

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
        """
        scope = scope_of(spec, caller)
        if spec.kind == "stdio" and tool in self._asking(spec.key):
            scope = caller.session  # in a process of its own it is known whom it asks
        return await self._upstream(spec, scope, caller).call(tool, arguments, caller)

    async def ask(
        self, spec: UpstreamSpec, request: Callable[[Connection], Awaitable[Result]], caller: Caller
    ) -> Result:
        """Any other request of a caller.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
        """
        return await self._upstream(spec, scope_of(spec, caller), caller).asked(request, caller)

    async def subscribe(self, spec: UpstreamSpec, uri: str, caller: Caller, stream: str = "") -> None:
        """Updates of a resource are published for the caller's session from now on, as `UpstreamResourceUpdated`.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
        """
        upstream = self._upstream(spec, scope_of(spec, caller), caller)
        await upstream.subscribe(uri, Subscriber(caller.session, stream))

    async def unsubscribe(self, spec: UpstreamSpec, uri: str, caller: Caller, stream: str = "") -> None:
        """Raises as `subscribe` does."""
        found = self._running.get((spec.key, scope_of(spec, caller)))
        if found is not None:
            await found.upstream.unsubscribe(uri, Subscriber(caller.session, stream))

    async def want_logs(self, specs: Iterable[UpstreamSpec], level: str, caller: Caller) -> None:
        """The upstreams of a caller that run are to send log messages of this level, too. Waits for none of them longer
        than a request may take."""
        async with anyio.create_task_group() as tasks:
            for spec in specs:
                found = self._running.get((spec.key, scope_of(spec, caller)))
                if found is not None:
                    tasks.start_soon(_want_logs, found.upstream, level)

    # --- what people do ------------------------------------------------------------------------------------------

    async def restart(self, name: str, root: Path | None = None) -> int:
        """Ends what runs of this name, and forgets that it failed; it starts when it is needed. Returns how many
        ran."""
        chosen = self._named(name, root)
        running = sum(one.state in (UpstreamState.READY, UpstreamState.STARTING) for one in chosen)
        for one in chosen:
            one.forgive()
            await one.end("it was restarted by hand")
        return running

    async def stop(self, name: str, root: Path | None = None) -> int:
        """Ends what runs of this name, until it is needed again. Returns how many."""
        chosen = [one for one in self._named(name, root) if one.state is UpstreamState.READY]
        for one in chosen:
            await one.end("it was stopped by hand")
        return len(chosen)

    def session_ended(self, session: str) -> None:
        """Ends what belonged to a session alone."""
        for one in self._running.values():
            one.upstream.subscribers.forget(session)
        for learning in self._learning.values():
            learning.callers[:] = [one for one in learning.callers if one.session != session]
        for key in [key for key in self._running if key[1] == session]:
            self._running.pop(key).scope.cancel()

    def _named(self, name: str, root: Path | None) -> list[Upstream]:
        keys = {one.key for one in self.of(root).specs.values()} if root is not None else None
        every = [one.upstream for one in self._running.values()]
        return [one for one in every if one.spec.name == name and (keys is None or one.spec.key in keys)]

    # --- running -------------------------------------------------------------------------------------------------

    def _upstream(self, spec: UpstreamSpec, scope: str, caller: Caller) -> Upstream:
        """The upstream for a caller, if its root still has it: it may have been found long before, and a person asked
        meanwhile.

        Raises:
            UpstreamUnavailable
        """
        if not self._has(caller.root, spec):
            raise UpstreamUnavailable(spec.name, NO_ENTRY, gone=True, sent=False)
        key = spec.key, scope
        found = self._running.get(key)
        if found is None or found.upstream.is_dismissed:
            assert self._tasks is not None
            upstream = Upstream(spec, scope, self._around, self._masks_of(spec))
            upstream.catalog = self.catalogs.get(spec.key)
            found = self._running[key] = _Running(upstream, anyio.CancelScope(), set())
            run = partial(self._run_one, key, found)
            self._tasks.start_soon(contained, f"running the MCP server {quoted(spec.name)}", run)
        found.roots.add(caller.root)
        return found.upstream

    async def _run_one(self, key: tuple[str, str], one: _Running) -> None:
        with one.scope:
            await one.upstream.run()
        if self._running.get(key) is one:
            del self._running[key]

    def masked(self, spec: UpstreamSpec, text: str) -> str:
        """A text of an upstream without its secrets, for what keeps it."""
        return self._masks_of(spec).masked(text)

    def _masks_of(self, spec: UpstreamSpec) -> Masks:
        found = self._masks.get(spec.key)
        if found is None:
            found = self._masks[spec.key] = Masks(spec.secrets)
        return found

    def _asking(self, key: str) -> list[str]:
        catalog = self.catalogs.get(key)
        return catalog.asking if catalog is not None else []

    def _learned(self, upstream: Upstream, catalog: Catalog) -> None:
        before = self.catalogs.get(upstream.spec.key)
        catalog.asking = sorted({*catalog.asking, *(before.asking if before else ())})
        if before == catalog:
            return
        self.catalogs.put(upstream.spec.key, catalog)
        self.changes += 1
        self._bus.publish(
            UpstreamListed(
                server=upstream.spec.name,
                key=upstream.spec.key,
                tools=len(catalog.tools),
                message=f"offers {counted(len(catalog.tools), 'tool')}",
            )
        )

    def processes(self) -> list[OtherProcess]:
        """What runs, for the memory budget. One that belongs to a session or a project may keep a state of theirs: it
        counts, and is never stopped to make room."""
        return [
            OtherProcess(
                f"MCP server {quoted(one.spec.name)}",
                pid,
                one.idle_s if one.spec.sharing == "shared" and not one.scope else None,
                one.retire,
            )
            for one in (running.upstream for running in self._running.values())
            if (pid := one.pid) is not None
        ]

    def _updated(self, upstream: Upstream, session: str, uri: str) -> None:
        spec = upstream.spec
        self._bus.publish(
            UpstreamResourceUpdated(server=spec.name, key=spec.key, session=session, uri=uri, keep=False, message=uri)
        )

    def _moved(self, upstream: Upstream, before: UpstreamState) -> None:
        now = upstream.state
        if now is UpstreamState.READY and upstream.pid is not None:
            self._started()
        bad = {UpstreamState.FAILED: Severity.ERROR, UpstreamState.PAUSED: Severity.WARNING}
        shown = upstream.snapshot()
        self._bus.publish(
            UpstreamMoved(
                server=upstream.spec.name,
                key=upstream.spec.key,
                source=str(before),
                to=str(now),
                reason=upstream.why,
                pid=shown.pid,
                severity=bad.get(now, Severity.INFO),
                message=f"{before} → {now}" + (f" ({upstream.why})" if upstream.why else ""),
            )
        )


async def _want_logs(upstream: Upstream, level: str) -> None:
    with suppress(SerenaCentralError):
        await upstream.want_logs(level)


def scope_of(spec: UpstreamSpec, caller: Caller) -> str:
    """Whose process serves a caller: empty for one that all share, a root, or a session's id."""
    match spec.sharing:
        case "shared":
            return ""
        case "project":
            return str(caller.root)
        case "session":
            return caller.session
