"""The front of a cluster: which host a call means, what becomes of it when a host is lost, and one answer of several.

The unit of placement is a root that a node offers: what lies below it (a super-repo's modules) is on the same host,
which resolves the rest of the scope itself. Tools on no project run here.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

import anyio
import msgspec

from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import HostAddress
from serena_central.cluster.host_requests import HostRequests
from serena_central.cluster.host_wire import HostGone, HostWire, Left
from serena_central.cluster.remote_host import RemoteHost
from serena_central.core import progress
from serena_central.core.decoding import from_json
from serena_central.core.errors import (
    DeadlineExceeded,
    DirectoryUnavailable,
    HostFenced,
    HostLost,
    HostUnavailable,
    SerenaCentralError,
    SeveralHosts,
    UnknownProject,
)
from serena_central.core.project_names import listed_names
from serena_central.core.quoting import escaped, quoted, visible_json
from serena_central.projects.editing.shared_calls import SharedCalls
from serena_central.projects.registry import KnownProject
from serena_central.projects.scope import EVERYTHING, labels_of
from serena_central.sessions.session import Session
from serena_central.sessions.users import User
from serena_central.tools.answer import Answer, page
from serena_central.tools.catalogue import PATH_PARAMETERS, Tool
from serena_central.tools.context import Services
from serena_central.tools.grouped_call import internal_error
from serena_central.tools.project_call import timeout_of
from serena_central.tools.tool_run import ToolHost, ToolReply, ToolRun

logger = logging.getLogger(__name__)

ROOTS_KEPT_S = 2.0
"""How long the list of offered roots is used before the directory is asked again."""

RETRY_S = 0.2
"""The pause before a host is asked for again."""

MOST_LOSSES = 4
"""Of hosts and connections in one call: what it asks may be the reason."""

ON_HOSTS = ("activate_project", "route")
"""Tools that run on no project, and need to see its files."""


class Placing(Protocol):
    """What a front asks the directory."""

    async def roots(self) -> list[str]:
        """All roots that hosts can hold.

        Raises:
            DirectoryUnavailable
        """
        ...

    async def place(
        self, root: str, lost_epoch: int = 0, unreachable: str = ""
    ) -> tuple[Placement, HostAddress | None]:
        """The host of a root, and where it takes runs; None where it does not answer. `lost_epoch`: the host of that
        epoch is lost; `unreachable`: it may live, and why it can't be reached from here.

        Raises:
            HostUnavailable
            DirectoryUnavailable
        """
        ...


class ClusterFront:
    """Carries out tool runs by project hosts. Belongs to the event loop's thread."""

    writes_here = False

    def __init__(self, services: Services, local: ToolHost, directory: Placing) -> None:
        self._services = services
        self._local = local
        self._directory = directory
        store, name = services.store, services.settings.front_name
        self._shared = SharedCalls(store, name)
        self._wires: dict[str, HostWire] = {}
        self._roots: list[str] = []
        self._roots_until = 0.0
        self._asked_by: WeakKeyDictionary[Session, dict[str, None]] = WeakKeyDictionary()
        self._stand_in(services)

    def _stand_in(self, services: Services) -> None:
        """Has hosts do what needs open projects, and is no call of an agent."""
        asking = HostRequests(
            self._on,
            self._unit_of,
            lambda: list(self._wires),
            lambda one: [*self._asked_by.get(one, ())],
            services.history,
        )
        services.history.reversed_elsewhere = asking.undo
        services.warm_up.by = services.analysis_runs.by = services.held_elsewhere.by = asking

    async def run(self, tool: Tool, run: ToolRun, reply: ToolReply) -> Answer:
        """Carries a call out on the hosts of the projects that it means; here, if it means none.

        Raises:
            NotReady: the call may have been sent before, and the database can't be asked.
            SeveralHosts: an edit means projects of several hosts.
            HostUnavailable: no node can hold the project.
            HostLost: a host was lost, and it is unknown what its run did.
        """
        if not tool.on_project and tool.name not in ON_HOSTS:
            return await self._local.run(tool, run, reply)
        units = await self._units(tool, run)
        self._asked_by.setdefault(run.session, {}).update(dict.fromkeys(units))
        if len(units) == 1:
            ((root, named),) = units.items()
            return await self._on(root, tool, _for(run, named), reply)
        if tool.edits or tool.journaled:
            raise SeveralHosts(tool.name, list(units))
        return await self._on_several(units, tool, run, reply)

    # --- which ---------------------------------------------------------------------------------------------------

    async def _units(self, tool: Tool, run: ToolRun) -> dict[str, list[str] | None]:
        """Root of a host → the projects that the call names there; None: as the call says it."""
        session = run.session
        offered = await self._visible(session)
        asked = run.arguments.get("project")
        if asked:
            names = listed_names(asked)
            if isinstance(names, str) and names != EVERYTHING:
                return {self._unit_for(names, session, offered): None}
            units: dict[str, list[str] | None] = {}
            for name in [names] if isinstance(names, str) else names:
                everything = name == EVERYTHING
                named = (
                    self._all_open(session, offered) if everything else {self._unit_for(name, session, offered): [name]}
                )
                for unit, those in named.items():
                    units[unit] = [*(units.get(unit) or []), *those]
            if not units:
                raise UnknownProject(EVERYTHING, offered)
            return units
        paths = [path for name in PATH_PARAMETERS if (path := run.arguments.get(name))]
        places = [path for path in paths if path.startswith(("/", "~"))]
        unit = self._where(session, offered, *places)
        if unit is None:
            raise UnknownProject(None, offered)
        return {unit: None}

    def _where(self, session: Session, offered: list[str], *places: str) -> str | None:
        """The root of the host that has the first of these places, else where the session works."""
        active = session.active_project.root if session.active_project else None
        around = (_around(place, offered) for place in (*places, active, session.working_folder) if place)
        return next(filter(None, around), None)

    def _unit_for(self, name: str, session: Session, offered: list[str]) -> str:
        """The same as `_unit`. What no root is called may be a module of where the session works: its host knows."""
        try:
            return self._unit(name, offered)
        except UnknownProject:
            if name.startswith(("/", "~")) or (unit := self._where(session, offered)) is None:
                raise
            return unit

    async def _offered(self) -> list[str]:
        if anyio.current_time() >= self._roots_until:
            try:
                self._roots = await self._directory.roots()
            except DirectoryUnavailable:
                if not self._roots:
                    raise  # else hosts answer as before, while the directory is started again
            else:
                for root in self._roots:
                    self._services.projects.remember(KnownProject(Path(root).name, root))
            self._roots_until = anyio.current_time() + ROOTS_KEPT_S
        return self._roots

    async def _visible(self, session: Session) -> list[str]:
        """Offered roots of which the session's user may open at least a part; which part, their host decides."""
        offered = await self._offered()
        user = self._user(session)
        if user is None:
            return offered
        return [
            root
            for root in offered
            if user.may_open(Path(root)) or any(Path(own).is_relative_to(root) for own in user.roots)
        ]

    def _all_open(self, session: Session, offered: list[str]) -> dict[str, list[str]]:
        """Root of a host that was asked before → all that is open there, and the root itself, which a new one has not
        opened yet. No host is started: a node may offer hundreds of roots."""
        user = self._user(session)
        return {
            root: [EVERYTHING, root] if user is None or user.may_open(Path(root)) else [EVERYTHING]
            for root in offered
            if root in self._wires
        }

    def _user(self, session: Session) -> User | None:
        """The session's user, if that is one of a team's who may not open everything."""
        users = self._services.users
        user = users.restricted(session.credential) if users.present else None
        return None if user is None or user.opens_everything else user

    async def _unit_of(self, root: str) -> str:
        return self._unit(root, await self._offered())

    def _unit(self, name: str, offered: list[str]) -> str:
        """The root whose host has a project of this name or path.

        Raises:
            UnknownProject
        """
        if name.startswith(("/", "~")):
            unit = _around(name, offered)
            if unit is not None:
                return unit
        fitting = [root for root in offered if root.rpartition("/")[2] == name]
        if len(fitting) != 1:
            raise UnknownProject(name, fitting or offered)
        return fitting[0]

    # --- how -----------------------------------------------------------------------------------------------------

    async def _on(self, root: str, tool: Tool, run: ToolRun, reply: ToolReply) -> Answer:
        """Runs it on the host of a root; on another one if that is lost: what only reads again, and what is journaled
        under the same key, so that it is done once. What was not begun is run on any."""
        shared = self._shared if tool.journaled and run.repeat is not None else None
        if tool.journaled and run.repeat is None:
            run.repeat = f"call {run.id}"
        arguments, begun_at = msgspec.to_builtins(run.arguments), None
        limit_s = timeout_of(tool, self._services.settings)
        lost_epoch, unreachable = 0, ""
        losses = 0
        with anyio.move_on_at(run.began + limit_s):
            while losses < MOST_LOSSES:
                wire = await self._able_wire(root, lost_epoch, unreachable, tool, begun_at)
                part = msgspec.structs.replace(run, arguments=dict(arguments))
                try:
                    return await self._at(wire, tool, part, reply, shared)
                except HostGone as gone:
                    losses += 1
                    begun_at = wire.placement.node if gone.begun else begun_at
                    logger.warning("the host of %s (epoch %d): %s, %s", root, wire.placement.epoch, gone.left, gone)
                    if gone.left is Left.LIVES:
                        await anyio.sleep(RETRY_S)
                        continue
                    lost_epoch = wire.placement.epoch
                    unreachable = str(gone) if gone.left is Left.UNREACHABLE else ""
                except HostFenced as fenced:
                    if fenced.current is None:
                        raise
                    logger.warning("%s", fenced)  # the directory knows the newer one
                self._forget(wire)
        if begun_at is not None and not tool.read_only:
            raise HostLost(root, tool.name)
        if losses == MOST_LOSSES:
            raise HostUnavailable(root, f"{losses} hosts or connections in a row were lost while {tool.name} ran")
        what = "was lost" if losses else "has not answered"
        raise DeadlineExceeded(tool.name, limit_s, f"the host of {root} {what}")

    async def _able_wire(
        self, root: str, lost_epoch: int, unreachable: str, tool: Tool, begun_at: str | None
    ) -> HostWire:
        """The way to a host that may run what was perhaps begun on a node (`begun_at`) already.

        Raises:
            HostUnavailable: nothing was begun.
            HostLost: it is unknown what was done.
        """
        try:
            wire = await self._wire(root, lost_epoch, unreachable)
        except HostUnavailable as error:
            if begun_at is None or tool.read_only:
                raise
            raise HostLost(root, tool.name) from error
        known_there = tool.read_only or (tool.journaled and wire.placement.node == begun_at)
        if begun_at is not None and not known_there:
            raise HostLost(root, tool.name)
        return wire

    async def _at(
        self, wire: HostWire, tool: Tool, run: ToolRun, reply: ToolReply, shared: SharedCalls | None
    ) -> Answer:
        """Runs it on the host of a wire. A call that clients may send again, to other fronts, too (`shared`), is
        run on one node alone, whose journal knows it.

        Raises:
            HostGone
            HostFenced
        """
        placement, repeat = wire.placement, run.repeat or ""
        sent_to = await shared.sent_to(repeat, placement.node) if shared is not None else None
        if sent_to not in (None, placement.node):
            raise HostLost(placement.root, tool.name)
        try:
            answer = await RemoteHost(wire, services=self._services).run(tool, run, reply)
        except (HostGone, HostFenced) as error:
            begun = isinstance(error, HostGone) and error.begun
            if shared is not None and sent_to is None and not begun:
                await shared.not_made(repeat)
            raise
        if shared is not None and reply.edits:
            shared.made_by_host(repeat, placement.node, reply.edits[-1])
        return answer

    async def _wire(self, root: str, lost_epoch: int, unreachable: str) -> HostWire:
        """The way to the host of a root, which is placed where it is not known."""
        known = self._wires.get(root)
        if known is not None:
            return known
        with progress.waiting_for(lambda: (f"starting the host of {root}", None)):
            while True:
                try:
                    placement, address = await self._directory.place(root, lost_epoch, unreachable)
                    break
                except DirectoryUnavailable:
                    await anyio.sleep(RETRY_S)
        wire = self._wires.get(root)  # another call may have been first
        if wire is None or wire.placement.epoch < placement.epoch:
            if wire is not None:
                wire.retire()
            wire = self._wires[root] = HostWire(placement, address)
        return wire

    def _forget(self, wire: HostWire) -> None:
        """Its host is lost or replaced."""
        if self._wires.get(wire.placement.root) is wire:
            del self._wires[wire.placement.root]
        wire.retire()

    async def _on_several(
        self, units: dict[str, list[str] | None], tool: Tool, run: ToolRun, reply: ToolReply
    ) -> Answer:
        """Each host answers for its projects; one that fails spoils no other."""
        answers: dict[str, Answer | str] = {}
        replies = {root: ToolReply() for root in units}
        units = _continued(units, page(run.arguments.get("cursor") or "", None, 0).group)
        asked = run.arguments.get("max_answer_chars", -1)
        share = (self._services.settings.max_answer_chars if asked < 0 else asked) // len(units)

        async def one(root: str, names: list[str] | None) -> None:
            named = names or [root]
            part = _for(run, [*named, named[0]])  # several, so that its answer is grouped
            part.by_root = True
            if "max_answer_chars" in part.arguments:
                part.arguments["max_answer_chars"] = share
            try:
                answers[root] = await self._on(root, tool, part, replies[root])
            except SerenaCentralError as error:
                answers[root] = str(error)
            except Exception:
                logger.exception("%s: %s failed on the host of %s", run.id, tool.name, root)
                answers[root] = internal_error(run.id)

        async with anyio.create_task_group() as tasks:
            for root, names in units.items():
                tasks.start_soon(one, root, names)
        reply.projects = [project for part in replies.values() for project in part.projects]
        reply.unopened = [project for part in replies.values() for project in part.unopened]
        named = [(one.name, one.root) for one in (*reply.projects, *reply.unopened)]
        silent = [Path(root) for root, part in replies.items() if not (part.projects or part.unopened)]
        labels = labels_of([*named, *((root.name, root) for root in silent)])
        notes = (_relabelled(note, labels) for part in replies.values() for note in part.notes)
        reply.notes += [note for note in dict.fromkeys(notes) if note not in reply.notes]
        reply.answer = joined({root: answers[root] for root in units}, labels, reply.notes)
        return reply.answer


def _around(place: str, offered: list[str]) -> str | None:
    path = Path(os.path.expanduser(place))  # noqa: PTH111 - no file is looked at but the password file
    around = {str(path), *map(str, path.parents)}
    return next((root for root in offered if root in around), None)


def _for(run: ToolRun, named: list[str] | None) -> ToolRun:
    arguments = dict(run.arguments) if named is None else {**run.arguments, "project": named}
    return msgspec.structs.replace(run, arguments=arguments)


def _continued(units: dict[str, list[str] | None], group: str) -> dict[str, list[str] | None]:
    """The one host whose list a cursor of this group continues, if it is of one of them."""
    around = {root: names for root, names in units.items() if f"{group}/".startswith(f"{escaped(root)}/")}
    return around or units


def _relabelled(line: str, labels: Mapping[Path, str]) -> str:
    """A line about one project, which begins with its root, with its label instead."""
    for root, label in labels.items():
        if line.startswith(start := f"{quoted(root)}: "):
            return f"{quoted(label)}: {line.removeprefix(start)}"
    return line


def joined(answers: Mapping[str, Answer | str], labels: Mapping[Path, str], notes: Sequence[str]) -> Answer:
    """One answer of several hosts', whose groups are labelled by root; `answers` is by the root of each host, and a
    text says why one gave none."""
    says: list[str] = []
    groups: dict[str, msgspec.Raw] = {}
    for host, one in answers.items():
        if isinstance(one, str):
            parts = {host: msgspec.Raw(msgspec.json.encode({"error": one}))}
        else:
            assert one.data is not None, "it was asked for several"
            says += [_relabelled(line, labels) for line in one.blocks[0].removesuffix(one.data).splitlines()]
            parts = from_json(one.data, dict[str, msgspec.Raw])
        groups |= {labels[Path(root)]: part for root, part in parts.items()}
    data = visible_json(msgspec.json.encode(groups).decode())
    blocks = ["\n".join([*says, data])]
    return Answer([*blocks, "\n".join(notes)] if notes else blocks, bool(says), data)
