"""The client of one language server: its life from spawn to exit, and the requests to it.

`lsp_session` carries out the requests. It does not know pools, sessions or projects.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread
import msgspec
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from serena_central.core.errors import (
    STDERR_SHOWN,
    LanguageServerError,
    RequestFailed,
    ServerBusy,
    ServerCrashed,
    ServerStartFailed,
    ServerUnavailable,
)
from serena_central.core.patterns import TooSlow
from serena_central.core.quoting import quoted
from serena_central.core.text import Position, Text
from serena_central.lsp.answers import (
    MOST_SYMBOLS,
    Diagnostic,
    DocumentSymbol,
    FileEvent,
    HierarchyCall,
    HierarchyItem,
    Location,
    Signature,
    WorkspaceEdit,
)
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.spec import Feature
from serena_central.lsp.conversion import Converter, plain, signatures, take_long
from serena_central.lsp.documents import Reading, never_at_hand
from serena_central.lsp.handshake import merged
from serena_central.lsp.locate import Launch
from serena_central.lsp.lsp_session import LspSession, Question
from serena_central.lsp.patterns import NamePatterns
from serena_central.lsp.readiness import note_gap
from serena_central.lsp.types import (
    LspDiagnosticReport,
    LspHover,
    LspIncomingCall,
    LspLocation,
    LspOutgoingCall,
    LspRange,
    LspSignatureHelp,
    LspSymbol,
    LspWorkspaceEdit,
)
from serena_central.lsp.wire import ConnectionLost, WireError
from serena_central.processes.child import GIVES_WAY, ChildProcess, Limits, supervised
from serena_central.processes.environment import inherited
from serena_central.processes.usage import Usage

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LIMITS = Limits(nice=GIVES_WAY)

AT_ONCE_S = 0.01
"""Of CPU time, for telling imports from definitions in the event loop's thread. A hostile text of 20 KB takes as long
as it may: a worker thread begins again with it."""

REAPING_S = 6.0
"""How long a caller whose server ended waits to learn how; longer than the whole stop ladder."""

Lead = Literal["declaration", "definition"]
"""What several places may be asked for in one go."""

FEW_LOCATIONS = 200
"""Converted in less than half a millisecond, if no file has to be read for it."""

ASKED_AGAIN_S = 0.2
"""Until a server is asked again for the symbols of a text that it has not taken in yet."""

REREAD_TRIES = 3
"""How often an answer is asked for again because it points into files that the server knows as they were."""


class LanguageServer:
    """A language server for one root. `run` owns the process; every other method may be called from any task.

    Requests raise: ServerCrashed when the process ends meanwhile and ServerUnavailable when it was stopped,
    RequestFailed for an error or an unreadable answer, ServerBusy when it kept cancelling or the file kept changing,
    Unsupported when it does not offer the request, PathNotFound and PathRefused for the file. Cancelling the caller
    cancels the request in the server, once nobody else waits for the same.
    """

    def __init__(
        self,
        spec: ServerSpec,
        root: Path,
        *,
        launch: Launch,
        settings: dict[str, Any],
        read_text: Callable[[Path], Text],
        are_at_hand: Callable[[Collection[Path]], bool] = never_at_hand,
        folder: Path | None = None,
        temporary: Path | None = None,
        on_watching: Callable[[], None] = lambda: None,
    ) -> None:
        """`settings` are laid over the catalogue's. `read_text` is called from worker threads too, and for files that
        `are_at_hand` from the loop's. `on_watching` is called when `watched_folders` may be others.

        `folder` is the first workspace folder, None for the root. Below `temporary` it gets a temporary folder.
        """
        if launch.options is not None:
            spec = msgspec.structs.replace(spec, initialization_options=launch.options)
        self.spec = spec
        self.root = root
        self._names = NamePatterns(spec.naming, spec.name)
        self._launch = launch
        self._temporary = temporary
        self._process: ChildProcess | None = None
        self._initialized = False
        self._stopped = False
        self._ending = anyio.Event()
        self._reaped = anyio.Event()
        settings = merged(settings, launch.settings)
        self._lsp_session = LspSession(
            spec,
            root,
            folder or root,
            settings=settings,
            read_text=read_text,
            are_at_hand=are_at_hand,
            on_watching=on_watching,
            builds=not launch.within,
        )
        self.created_ns = time.time_ns()
        """Before it read anything, by the clock that files are stamped with."""

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Spawns, initializes, calls started(), serves until `stop` or the end of the process; then the tree is reaped.

        Raises:
            ServerStartFailed: the handshake fails.
        """
        failure: WireError | None = None
        try:
            environment = inherited() | self._launch.env
            async with supervised(
                [*self._launch.within, *self._launch.command],
                self.root,
                environment=environment,
                temporary=self._temporary,
                limits=_LIMITS,
            ) as process:
                self._process = process
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._connect, process)
                    try:
                        await self._lsp_session.greet()
                    except WireError as error:
                        failure = error
                    else:
                        self._initialized = True
                        task_status.started()
                        tasks.start_soon(self._send_changes)
                        await self._ending.wait()
                        await self._lsp_session.take_leave()
                    tasks.cancel_scope.cancel()
        except OSError as error:
            raise ServerStartFailed(self.spec.name, f"{self.spec.title} could not be started: {error}") from error
        finally:
            self._lsp_session.close()
            self._ending.set()
            self._reaped.set()
        if failure is not None:
            raise ServerStartFailed(self.spec.name, self._start_failure(failure)) from failure

    def stop(self) -> None:
        """Begins the stop ladder; `run` ends within five seconds."""
        if not self._ending.is_set():
            self._stopped = True
            self._ending.set()

    @property
    def alive(self) -> bool:
        """It is initialized, and its end has not begun."""
        return self._initialized and not self._ending.is_set()

    @property
    def watched_folders(self) -> frozenset[Path]:
        """Folders whose files it wants to hear of, as it has registered; also outside of its root."""
        return self._lsp_session.watchers.folders

    @property
    def open_documents(self) -> int:
        """Documents that are open in it."""
        return len(self._lsp_session.documents)

    @property
    def proven(self) -> bool:
        """It has answered a question since its handshake: there is no crash loop."""
        return self._lsp_session.proven

    @property
    def pid(self) -> int | None:
        """The language server's own process, not its supervisor."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal; None while it runs."""
        return self._process.exit_code if self._process else None

    @property
    def stderr_tail(self) -> str:
        return self._process.stderr_tail if self._process else ""

    @property
    def broken(self) -> str:
        """What it sent in place of a message, for which it was ended; empty if it did not."""
        return self._lsp_session.connection.broken

    @property
    def capabilities(self) -> dict[str, Any]:
        return self._lsp_session.offer.capabilities

    @property
    def server_version(self) -> str:
        """As it was installed, else as the server itself says; "" when neither is known."""
        return self._launch.version or self._lsp_session.offer.version

    @property
    def heard_at(self) -> float:
        """When it sent its last message, in `running_time`."""
        return self._lsp_session.connection.heard_at

    @property
    def answered_at(self) -> float:
        """When it answered last, in `running_time`."""
        return self._lsp_session.connection.answered_at

    @property
    def is_loading(self) -> bool:
        """Whether it has not said yet that its answers can be believed, although it says so when it is ready."""
        return self._lsp_session.readiness.pending

    def usage(self) -> Usage:
        """Of the whole process tree; memory is the proportional set size where the platform tells it, else resident.

        Reads /proc for some milliseconds: call it in a thread.
        """
        return self._process.usage() if self._process else Usage()

    async def ready(self) -> str | None:
        """Waits until its answers can be believed; a note when the wait was cut short, else None."""
        return await self._lsp_session.readiness.wait() or self.trouble or None

    @property
    def lacks(self) -> str | None:
        """What an answer may lack that came just now: since `ready`, it may have begun to load or failed to."""
        return self._lsp_session.readiness.lacks

    @property
    def trouble(self) -> str:
        """Why a pattern of its entry is not used any more; empty while all are."""
        bounded = (*self._names.bounded, *self._lsp_session.readiness.bounded)
        return next((matcher.trouble for matcher in bounded if matcher.trouble), "")

    async def enter(self, folder: Path) -> None:
        """Makes sure that a folder is one of the workspace's: questions about its files need more than each file."""
        try:
            await self._lsp_session.enter(folder)
        except ConnectionLost as error:
            raise await self._end() from error

    def files_changed(self, changes: Sequence[FileEvent]) -> None:
        """Records changes on disk; the server is notified before any later request."""
        self._lsp_session.note(changes)

    async def ping(self) -> None:
        """Returns when the server has answered something: proof that it is not hung. The caller bounds the wait."""
        try:
            await self._lsp_session.ping()
        except ConnectionLost as error:
            raise await self._end() from error

    async def document_symbols(self, path: Path) -> list[DocumentSymbol]:
        return await self.symbols_or_null(path) or []

    async def symbols_or_null(self, path: Path) -> list[DocumentSymbol] | None:
        """None where the server answered null, which may mean that there are no symbols, or that it can't tell."""
        lag_s = self.spec.documents.symbols_lag_s
        while True:
            symbols, text = await self._document_symbols(path)
            shown_long = not lag_s or self._lsp_session.documents.shown_for_s(path) >= lag_s
            if shown_long or _all_stand(symbols or [], text):
                return symbols
            await anyio.sleep(ASKED_AGAIN_S)

    async def _document_symbols(self, path: Path) -> tuple[list[DocumentSymbol] | None, Text]:
        """The symbols that the server tells, and the text that it was sent."""
        reading, found = await self._ask(Question("document_symbols", path), list[LspSymbol] | None)
        if found is None and self._lsp_session.readiness.pending:
            raise ServerBusy(
                self.spec.name, f"{self.spec.title} is still loading the project and has no answer for {path} yet."
            )
        if found is None:
            return None, reading.text
        symbols: list[LspSymbol] = found
        del symbols[MOST_SYMBOLS + 1 :]  # as many as tell that there are more
        convert = self._converter().symbols
        try:
            if not take_long(reading.text, symbols):
                with suppress(TooSlow):  # the text of a stranger: others don't wait for it
                    return convert(reading.text, symbols, AT_ONCE_S), reading.text
            return await anyio.to_thread.run_sync(convert, reading.text, symbols), reading.text
        except RecursionError as error:  # costs this file its answer, not the project its life
            method = "textDocument/documentSymbol"
            raise RequestFailed(
                self.spec.name, method, 0, f"the symbols of {path.name} are nested too deeply"
            ) from error
        except TooSlow as error:
            method = "textDocument/documentSymbol"
            why = f"which symbols of {path.name} are imports is unknown: {error}"
            raise RequestFailed(self.spec.name, method, 0, why) from error

    async def references(
        self,
        path: Path,
        position: Position,
        *,
        include_declaration: bool = False,
        candidates: Sequence[Path] = (),
        when_asked: Callable[[], None] = lambda: None,
    ) -> list[Location]:
        """Every place that names what stands at `position`; that place itself only with `include_declaration`.

        `candidates` are files that hold the name as a word: for servers that must be shown them first. `when_asked` is
        called when the server has been sent the request.
        """
        # Always with declarations: to some servers an import is one, and would be missing.
        context = {"context": {"includeDeclaration": True}}
        question = Question("references", path, position, "", context, candidates, when_asked)
        found = await self._locations(question)
        if include_declaration:
            return found
        return [place for place in found if place.path != path or not place.range.contains(position)]

    async def definition(self, path: Path, position: Position) -> list[Location]:
        return await self._locations(Question("definition", path, position))

    async def definitions(
        self, path: Path, positions: Sequence[Position], feature: Lead = "definition"
    ) -> list[list[Location] | None]:
        """Where several names of one file lead, asked in one go; None where the server could not tell."""
        questions = [Question(feature, path, position) for position in positions]
        try:
            together = await self._lsp_session.ask_together(questions, list[LspLocation] | LspLocation | None)
        except ConnectionLost as error:
            raise await self._end() from error
        convert = self._converter().locations
        found: list[list[Location] | None] = [None if one is None else [] for one in together]
        leading = {at: one.value for at, one in enumerate(together) if one is not None and one.value}
        if leading:
            located = await anyio.to_thread.run_sync(lambda: {at: convert(value) for at, value in leading.items()})
            if self._lsp_session.are_outdated({place.path for places in located.values() for place in places}):
                located = dict.fromkeys(located)
            for at, places in located.items():
                found[at] = places
        for at, position in enumerate(positions):
            if found[at] is None:
                with suppress(RequestFailed, ServerBusy):
                    found[at] = await self._locations(Question(feature, path, position))
        return found

    async def implementation(
        self, path: Path, position: Position, *, candidates: Sequence[Path] = ()
    ) -> list[Location]:
        return await self._locations(Question("implementation", path, position, open_first=candidates))

    async def rename(
        self, path: Path, position: Position, new_name: str, *, candidates: Sequence[Path] = ()
    ) -> WorkspaceEdit:
        """What the server would change to rename what stands at `position`; nothing where it sees nothing to rename.

        It may be too little: compare it with the references.

        Raises:
            RequestFailed: for a name that it won't give.
        """
        question = Question("rename", path, position, params={"newName": new_name}, open_first=candidates)

        async def ask() -> WorkspaceEdit:
            _, found = await self._ask(question, LspWorkspaceEdit | None)
            return await anyio.to_thread.run_sync(self._converter().workspace_edit, found or LspWorkspaceEdit())

        return await self._settled(ask, lambda edit: set(edit.replacements))

    async def hover(self, path: Path, position: Position) -> str | None:
        """Markdown or plain text, or None."""
        _, found = await self._ask(Question("hover", path, position), LspHover | None)
        return (plain(found.contents).strip() or None) if found else None

    async def signature(self, path: Path, position: Position) -> list[Signature]:
        """What is called at a place between a call's parentheses."""
        _, found = await self._ask(Question("signature", path, position), LspSignatureHelp | None)
        return signatures(found.signatures) if found else []

    async def diagnostics(self, path: Path) -> list[Diagnostic]:
        """Raises DeadlineExceeded too: when a server that sends them by itself sends none in time."""
        try:
            published = None
            if not self._lsp_session.pulls_diagnostics():
                published = await self._lsp_session.await_published(path)
        except ConnectionLost as error:
            raise await self._end() from error
        if published is not None:
            return self._converter().diagnostics(published[0].text, published[1].diagnostics)
        reading, report = await self._ask(Question("diagnostics", path), LspDiagnosticReport)
        return self._converter().diagnostics(reading.text, report.items)

    async def errors_if(
        self, texts: Mapping[Path, Text], paths: Sequence[Path], *, opened: Collection[Path], within_s: float
    ) -> dict[Path, list[Diagnostic]]:
        """Diagnostics of files as they would be if some had other texts; see `LspSession.errors_if`."""
        try:
            reports = await self._lsp_session.errors_if(texts, paths, opened=opened, within_s=within_s)
        except ConnectionLost as error:
            raise await self._end() from error

        def convert() -> dict[Path, list[Diagnostic]]:
            converter, text_of = self._converter(), self._lsp_session.documents.text_of
            return {
                path: converter.diagnostics(texts.get(path) or text_of(path), report.items) if report.items else []
                for path, report in reports.items()
            }

        return await anyio.to_thread.run_sync(convert)

    async def prepare_call_hierarchy(self, path: Path, position: Position) -> list[HierarchyItem]:
        return await self._items(Question("call_hierarchy", path, position))

    async def incoming_calls(self, item: HierarchyItem, *, candidates: Sequence[Path] = ()) -> list[HierarchyCall]:
        question = _follow_up("call_hierarchy", "callHierarchy/incomingCalls", item, candidates)

        def parts(call: LspIncomingCall) -> tuple[msgspec.Raw, list[LspRange]]:
            return call.caller, call.from_ranges

        return await self._calls(question, list[LspIncomingCall] | None, parts, own=False)

    async def outgoing_calls(self, item: HierarchyItem) -> list[HierarchyCall]:
        question = _follow_up("call_hierarchy", "callHierarchy/outgoingCalls", item)

        def parts(call: LspOutgoingCall) -> tuple[msgspec.Raw, list[LspRange]]:
            return call.callee, call.from_ranges

        return await self._calls(question, list[LspOutgoingCall] | None, parts, own=True)

    async def prepare_type_hierarchy(self, path: Path, position: Position) -> list[HierarchyItem]:
        return await self._items(Question("type_hierarchy", path, position))

    async def supertypes(self, item: HierarchyItem) -> list[HierarchyItem]:
        return await self._items(_follow_up("type_hierarchy", "typeHierarchy/supertypes", item))

    async def subtypes(self, item: HierarchyItem, *, candidates: Sequence[Path] = ()) -> list[HierarchyItem]:
        return await self._items(_follow_up("type_hierarchy", "typeHierarchy/subtypes", item, candidates))

    async def _ask(self, question: Question, shape: Any) -> tuple[Reading, Any]:
        try:
            return await self._lsp_session.ask(question, shape)
        except ConnectionLost as error:
            raise await self._end() from error

    async def _locations(self, question: Question) -> list[Location]:
        async def ask() -> list[Location]:
            _, found = await self._ask(question, list[LspLocation] | LspLocation | None)
            return await self._converted(found) if found else []

        return await self._settled(ask, lambda found: {place.path for place in found})

    async def _converted(self, found: Sequence[LspLocation] | LspLocation) -> list[Location]:
        """The files that the places lie in are read: where these are not at hand, not in the loop's thread."""
        converter = self._converter()
        are_few = isinstance(found, LspLocation) or len(found) <= FEW_LOCATIONS
        if are_few and self._lsp_session.documents.are_at_hand(converter.paths(found)):
            return converter.locations(found)
        return await anyio.to_thread.run_sync(converter.locations, found)

    async def _items(self, question: Question) -> list[HierarchyItem]:
        async def ask() -> list[HierarchyItem]:
            _, found = await self._ask(question, list[msgspec.Raw] | None)
            return await anyio.to_thread.run_sync(self._converter().items, found) if found else []

        return await self._settled(ask, lambda found: {item.path for item in found})

    async def _calls(
        self, question: Question, shape: Any, parts: Callable[[Any], tuple[msgspec.Raw, list[LspRange]]], *, own: bool
    ) -> list[HierarchyCall]:
        """`parts`: a call's item, and its places, which lie in the asked item's file (`own`) or in each caller's."""

        async def ask() -> list[HierarchyCall]:
            converter = self._converter()
            _, found = await self._ask(question, shape)
            calls = [parts(call) for call in found or ()]

            def convert() -> list[HierarchyCall]:
                items = [(converter.item(raw), spans) for raw, spans in calls]
                return [
                    HierarchyCall(item, converter.ranges_in(question.path if own else item.path, spans))
                    for item, spans in items
                    if item
                ]

            return await anyio.to_thread.run_sync(convert) if calls else []

        return await self._settled(ask, lambda found: {call.item.path for call in found})

    async def _settled(self, ask: Callable[[], Awaitable[T]], files_of: Callable[[T], set[Path]]) -> T:
        """Asks again while the answer points into files that have changed since the server read them."""
        found = await ask()
        for _ in range(REREAD_TRIES):
            try:
                if not await self._lsp_session.read_again(files_of(found)):
                    break
            except ConnectionLost as error:
                raise await self._end() from error
            found = await ask()
        else:
            note_gap(f"files in the answer kept changing while {self.spec.title} read them; call again")
        return found

    def _converter(self) -> Converter:
        return Converter(self._lsp_session.offer.encoding, self._lsp_session.documents.text_of, self._names)

    async def _connect(self, process: ChildProcess) -> None:
        await self._lsp_session.run(process.stdout, process.stdin)
        self._ending.set()

    async def _send_changes(self) -> None:
        try:
            await self._lsp_session.send_changes()
        except ConnectionLost:
            logger.debug("%s exited while it was notified of changes", self.spec.name)

    async def _end(self) -> LanguageServerError:
        """What happened to the server, once that is known."""
        with anyio.move_on_after(REAPING_S):
            await self._reaped.wait()
        if self._stopped:
            return ServerUnavailable(self.spec.name, f"The language server {self.spec.name} was stopped; call again.")
        return ServerCrashed(self.spec.name, self.exit_code, self.stderr_tail, self.broken)

    def _start_failure(self, failure: WireError) -> str:
        how = f"it exited with code {self.exit_code}" if isinstance(failure, ConnectionLost) else str(failure)
        how = f"it sent {quoted(self.broken)}" if self.broken else how
        tail = f" Last lines of its stderr: {quoted(self.stderr_tail, STDERR_SHOWN)}" if self.stderr_tail else ""
        return f"The language server {self.spec.name} did not start: {how}.{tail}"


def _follow_up(feature: Feature, method: str, item: HierarchyItem, candidates: Sequence[Path] = ()) -> Question:
    return Question(feature, item.path, method=method, params={"item": item.raw}, open_first=candidates)


def _all_stand(symbols: Sequence[DocumentSymbol], text: Text) -> bool:
    """Whether every symbol whose name is a word stands where it is said to, which for a package is all that declares
    it."""
    return all(
        (not one.name.isidentifier() or one.name in text.slice(one.selection)) and _all_stand(one.children, text)
        for one in symbols
    )
