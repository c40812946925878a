"""What a server asks project hosts beside the tools of agents: it opens no projects, and they do for it what it would
do in a single process (`host_tools`). An edit is undone by the patches that the server has kept, so that also a host
on another node can, which knows nothing of the edit.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from serena_central.analysis.analysis_run import FindingsRun, GraphRun, Kind
from serena_central.cluster import host_tools
from serena_central.cluster.messages import HostFailed
from serena_central.core.decoding import converted, from_json, from_msgpack
from serena_central.core.errors import ClusterError, SerenaCentralError, SeveralHosts
from serena_central.core.quoting import quoted
from serena_central.core.tracing import new_call_id
from serena_central.editing.change import Author
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.editing.edits import ChangedFile, Edited
from serena_central.projects.editing.undo import CLIENT
from serena_central.projects.trust.trust_dialog import TrustQuestion
from serena_central.projects.warming.project_warm_up import Warmed
from serena_central.projects.warming.warm_up_roots import Chosen
from serena_central.sessions.session import ClientIdentity, IdentifiedBy, Session
from serena_central.store.rows import EditRow
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool
from serena_central.tools.refactoring_report import MOST_PATCHES
from serena_central.tools.tool_run import ToolReply, ToolRun

LISTED_S = 5.0
"""How long a host may take to say what it holds."""

OnHost = Callable[[str, Tool, ToolRun, ToolReply], Awaitable[Answer]]
"""Has the host of a root carry out a run."""


class HostRequests:
    """Stands for this process's own projects in its services. Belongs to the event loop's thread."""

    def __init__(
        self,
        on_host: OnHost,
        unit_of: Callable[[str], Awaitable[str]],
        known: Callable[[], Sequence[str]],
        asked: Callable[[Session], Sequence[str]],
        history: EditHistory,
    ) -> None:
        """`unit_of`: the root of the host that holds a project; `known`: roots of the hosts that are connected;
        `asked`: of those that a session has asked."""
        self._on_host = on_host
        self._unit_of = unit_of
        self._known = known
        self._asked = asked
        self._history = history

    # --- edits --------------------------------------------------------------------------------------------------------

    async def undo(self, rows: list[EditRow], author: Author) -> Edited:
        """Undoes the parts of an edit, on the host that has its projects.

        Raises:
            SeveralHosts: the edit changed projects of several hosts.
            SerenaCentralError: as `undo` and a tool's run.
        """
        units = {await self._unit_of(row.project_root) for row in rows}
        if len(units) > 1:
            raise SeveralHosts(author.tool, sorted(units))
        arguments = {"rows": rows, "symbol": author.symbol}
        session, call = _session(author.session), author.call
        answer = await self._answer(units.pop(), host_tools.UNDO, arguments, session, call)
        if answer.data is None:
            raise ClusterError("The project host did not say what it undid.")
        done = from_json(answer.data.encode())
        return Edited(id=done["id"], files=converted(done["files"], list[ChangedFile]))

    # --- Warming ------------------------------------------------------------------------------------------------------

    async def choose(self, folder: Path, modules: Sequence[str] = (), *, only_default: bool = False) -> Chosen:
        arguments = {"folder": str(folder), "modules": list(modules), "only_default": only_default}
        said = await self._data(await self._unit_of(str(folder)), host_tools.CHOOSE, arguments)
        roots, default, names = from_msgpack(said, tuple[list[str], str | None, dict[str, str]])
        chosen = [Path(root) for root in roots]
        return Chosen(chosen, Path(default) if default else None, {Path(root): name for root, name in names.items()})

    async def warm(self, root: Path) -> list[Warmed]:
        said = await self._data(await self._unit_of(str(root)), host_tools.WARM_UP, {"root": str(root)})
        return from_msgpack(said, list[Warmed])

    # --- Analyses -----------------------------------------------------------------------------------------------------

    async def analyze(self, root: Path, kind: Kind) -> GraphRun | FindingsRun:
        form = GraphRun if kind == "graph" else FindingsRun
        arguments = {"root": str(root), "kind": kind}
        said = await self._data(await self._unit_of(str(root)), host_tools.ANALYZE, arguments)
        return await anyio.to_thread.run_sync(from_msgpack, said, form)

    async def fingerprints(self, roots: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for unit, own in (await self._by_unit(roots)).items():
            said = await self._data(unit, host_tools.FINGERPRINTS, {"roots": own})
            found |= from_msgpack(said, dict[str, str])
        return found

    async def rules(self, root: Path, roots: Sequence[str]) -> str:
        arguments = {"root": str(root), "roots": list(roots)}
        return from_msgpack(await self._data(await self._unit_of(str(root)), host_tools.PATH_RULES, arguments), str)

    # --- ProjectHolders -----------------------------------------------------------------------------------------------

    async def listed(self, session: Session) -> dict[str, dict[str, Any] | None]:
        held: dict[str, dict[str, Any] | None] = {}

        async def one(unit: str) -> None:
            try:
                with anyio.fail_after(LISTED_S):
                    said = await self._data(unit, host_tools.HELD, {}, session)
                held.update(from_msgpack(said, dict[str, dict[str, Any]]))
            except (SerenaCentralError, TimeoutError):
                held[unit] = None

        async with anyio.create_task_group() as tasks:
            for unit in self._known():
                tasks.start_soon(one, unit)
        return held

    async def introduced(self, session: Session, root: str) -> list[str]:
        said = await self._data(await self._unit_of(root), host_tools.INTRODUCE, {"root": root}, session)
        return from_msgpack(said, list[str])

    async def reported(self, session: Session, made: Sequence[EditRow]) -> tuple[str, list[str]]:
        """Each host reports on its own projects: of others it knows nothing."""
        units = {unit: list[EditRow]() for unit in self._asked(session)}
        whole = {row.id: await self._history.edit(row.id) or row for row in made[-MOST_PATCHES:]}
        texts: list[str] = []
        notes: list[str] = []
        for row in made:
            try:
                unit = await self._unit_of(row.project_root)
            except SerenaCentralError as error:  # no node offers it any more
                notes += [note] if (note := f"{quoted(row.project_root)} is not included: {error}") not in notes else []
                continue
            units.setdefault(unit, []).append(whole.get(row.id, row))
        told: list[str] = []
        among_others = len(units) > 1 or len({row.project_root for row in made}) > 1
        for unit, rows in units.items():
            arguments = {"rows": rows, "among_others": among_others}
            try:
                said = await self._data(unit, host_tools.REPORT, arguments, session)
            except SerenaCentralError as error:
                notes.append(f"{quoted(unit)} is not included: {error}")
                continue
            text, noted = from_msgpack(said, tuple[str, list[str]])
            if not text:
                continue
            texts.append(text)
            told.append(unit)
            notes += [note for note in noted if note not in notes]
        if len(told) > 1:
            notes.append(
                f"{', '.join(map(quoted, told))} are on different hosts, and reported one after the other: what one "
                "needs of another is not seen."
            )
        nothing = "Nothing is known." if notes else "This session has made no changes, and asked for no findings."
        return "\n".join(texts) or f"{nothing}\n", notes

    async def question(self, root: Path) -> TrustQuestion | None:
        said = await self._data(await self._unit_of(str(root)), host_tools.QUESTION, {"root": str(root)})
        return from_msgpack(said, TrustQuestion | None)

    async def keep(self, question: TrustQuestion, by: str) -> None:
        arguments = {"question": question, "by": by}
        await self._data(await self._unit_of(question.root), host_tools.KEEP, arguments)

    # --- one request --------------------------------------------------------------------------------------------------

    async def _by_unit(self, roots: Sequence[str]) -> dict[str, list[str]]:
        units: dict[str, list[str]] = {}
        for root in roots:
            units.setdefault(await self._unit_of(root), []).append(root)
        return units

    async def _data(self, unit: str, tool: Tool, arguments: Mapping[str, Any], session: Session | None = None) -> bytes:
        answer = await self._answer(unit, tool, arguments, session or _session("server"), new_call_id())
        said = host_tools.unpacked(answer)
        if said is None:
            raise ClusterError(f"The host of {quoted(unit)} did not answer {tool.name} with data.")
        return said

    async def _answer(self, unit: str, tool: Tool, arguments: Mapping[str, Any], session: Session, call: str) -> Answer:
        run = ToolRun(
            id=call,
            tool=tool.name,
            arguments={"project": None, "semantic_context": None, **arguments},
            session=session,
            began=anyio.current_time(),
            person=True,
        )
        try:
            return await self._on_host(unit, tool, run, ToolReply())
        except HostFailed as error:  # who asks is no call, which would be answered by an internal error
            raise ClusterError(f"The host of {quoted(unit)} failed: {error}. Its log says more.") from error


def _session(name: str) -> Session:
    """Of requests that no client made: it is no user's."""
    identity = ClientIdentity(credential="", era="modern", client_name=CLIENT)
    return Session(name, IdentifiedBy.EXPLICIT, identity, now=time.time())
