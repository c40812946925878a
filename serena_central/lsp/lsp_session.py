"""Carries out requests to one server: brings documents up to date, sends the request, repeats it where that helps.

It joins connection, documents, callbacks and readiness. It knows no process and no converted answer.
"""

import logging
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream

from serena_central.core import tracing
from serena_central.core.errors import (
    DeadlineExceeded,
    Inapplicable,
    PathError,
    RequestFailed,
    ServerBusy,
    Unsupported,
)
from serena_central.core.progress import waiting_for
from serena_central.core.quoting import quoted
from serena_central.core.text import Position, Text
from serena_central.core.tracing import phase
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.build_inputs import asks_for_a_build, built_files
from serena_central.lsp.callbacks import Callbacks, FileStatus, Watchers
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.spec import Feature
from serena_central.lsp.conversion import lsp_position, path_of, uri_of
from serena_central.lsp.diagnostics_wait import Patience
from serena_central.lsp.documents import Documents, Reading, never_at_hand
from serena_central.lsp.handshake import METHODS, ServerOffer, initialize_params, merged, offer_of, workspace_folders
from serena_central.lsp.readiness import ReadinessTracker, note_gap
from serena_central.lsp.settling import Settling
from serena_central.lsp.types import LspDiagnosticReport, LspInitializeResult, LspPublishedDiagnostics
from serena_central.lsp.wire import (
    METHOD_NOT_FOUND,
    AnswerUnreadable,
    Connection,
    ConnectionLost,
    ErrorAnswer,
    Pending,
    WireError,
)

logger = logging.getLogger(__name__)

SHUTDOWN_S = 1.0
"""How long to wait for the answer to `shutdown`; then the stop ladder continues."""

UNDISTURBED_S = 5.0
"""How long others wait at most for a question that changes have cancelled several times."""

RETRY_PAUSES_S = (0.05, 0.2, 0.5)
"""Pauses before a request is repeated that the server cancelled or found outdated."""

CURRENT_TRIES = 4
"""How often a request is repeated because its file changed before the answer came."""

WITHIN_ONE_FILE: frozenset[Feature] = frozenset({"document_symbols", "hover", "signature", "diagnostics"})
"""Features whose answer needs no other file to be known."""

UNREADABLE_CODE = -32700
"""JSON-RPC's "parse error", for an answer that can't be read."""


class Question(msgspec.Struct, frozen=True):
    """One request about one file. `method` and `params` only where they are not the feature's own for a position."""

    feature: Feature
    path: Path
    position: Position | None = None
    method: str = ""
    params: dict[str, Any] = {}
    open_first: Sequence[Path] = ()
    """Files that have to be open for a complete answer."""
    when_asked: Callable[[], None] = lambda: None
    """Called when the server has been sent the request, each time that it is."""


class Answered(NamedTuple):
    """An answer, `None` being one, too."""

    value: Any


class LspSession:
    """One server's session. Its methods raise ConnectionLost when it ends, and the errors they name."""

    def __init__(
        self,
        spec: ServerSpec,
        root: Path,
        folder: Path,
        *,
        settings: dict[str, Any],
        read_text: Callable[[Path], Text],
        are_at_hand: Callable[[Collection[Path]], bool] = never_at_hand,
        on_watching: Callable[[], None] = lambda: None,
        builds: bool = True,
    ) -> None:
        """`on_watching` is called when the folders that it watches may be others. `builds`: it may run what the project
        brings."""
        self._root, self._builds = root, builds
        self._spec = spec
        self._folders = [folder]
        """The workspace's; shared with `callbacks`."""
        self._settings = merged(spec.settings, settings)
        self._inapplicable = re.compile(spec.inapplicable) if spec.inapplicable else None
        self._noted = anyio.Event()
        # Around "bring the documents up to date, then send": nothing may get in between.
        self._sending = anyio.Lock(fast_acquire=True)
        self._settling = Settling(self._show) if spec.documents.settle_candidates else None
        self._names_versions = False
        """The server says which version of a document its diagnostics are about."""
        self._diagnostics_moved = anyio.Event()
        self._patience = Patience()
        self._perhaps_inputs: dict[Path, None] = {}
        """What changed since it was last decided whether build scripts are to be run again."""
        self._building = False
        """It was asked to run build scripts, and not yet told what they wrote."""
        self._unbuilt = ""
        """Why it did not run them again after the last change that they read."""
        self.offer = ServerOffer()
        self.proven = False
        """It has answered a question since its handshake."""
        self.readiness = ReadinessTracker(spec.readiness, spec.title)
        self.watchers = Watchers(root, spec.watch)
        self._on_watching = on_watching
        self._callbacks = Callbacks(
            spec.name,
            self._folders,
            self._settings,
            readiness=self.readiness,
            watchers=self.watchers,
            on_diagnostics=self._take_diagnostics,
            on_registered=self._registered,
            file_status=spec.documents.file_status,
            on_file_status=self._take_file_status,
        )
        self.connection = Connection(
            spec.name,
            on_request=self._callbacks.request,
            on_notification=self._callbacks.notification,
            is_unready=lambda: self.readiness.pending,
        )
        self.documents = Documents(
            spec, self.connection, self.watchers, read_text, are_at_hand, on_unasked=self._wake_teller
        )

    async def run(self, receive: ByteReceiveStream, send: ByteSendStream) -> None:
        """Reads and writes until the connection ends."""
        try:
            await self.connection.run(receive, send)
        finally:
            self.close()

    def close(self) -> None:
        """Wakes everybody who waits for the server. May be called twice."""
        self.connection.close()
        self.wake()

    async def greet(self) -> None:
        """initialize and initialized.

        Raises:
            ErrorAnswer, AnswerUnreadable
        """
        pending = await self.connection.request("initialize", initialize_params(self._spec, self._folders))
        self.offer = offer_of(await pending.answer(LspInitializeResult))
        self.documents.encoding = self.offer.encoding
        self.documents.sync_kind = self.offer.sync_kind
        self.connection.notify("initialized", {})
        if self._settings:
            self.connection.notify("workspace/didChangeConfiguration", {"settings": self._settings})
        self.readiness.start_clock()

    async def take_leave(self) -> None:
        """shutdown and exit; returns after a bounded wait whatever the server does."""
        with anyio.move_on_after(SHUTDOWN_S):
            try:
                pending = await self.connection.request("shutdown", None)
                await pending.answer(msgspec.Raw)
            except (ErrorAnswer, AnswerUnreadable) as error:
                logger.debug("%s answered shutdown: %s", self._spec.name, error)
            except WireError:
                return
            await self.connection.farewell("exit")

    async def enter(self, folder: Path) -> None:
        """Adds a folder to the workspace, unless it is there."""
        async with self._sending:
            if folder not in self._folders:
                event = {"added": workspace_folders([folder]), "removed": []}
                self.connection.notify("workspace/didChangeWorkspaceFolders", {"event": event})
                self._folders.append(folder)

    def note(self, changes: Sequence[FileEvent]) -> None:
        self.documents.note(changes)
        if self._spec.watch.rebuild and self._builds:
            self._perhaps_inputs.update(dict.fromkeys(change.path for change in changes))
        if self._settling is not None:
            self._settling.note(changes)
            if any(self.documents.is_included(change.path) for change in changes):
                self._settling.forget()
        self._wake_teller()

    def _wake_teller(self) -> None:
        self._noted.set()

    async def send_changes(self) -> None:
        """Tells changes when they are noted, so that the server works on them before it is asked, and closes what is
        left open. Never returns."""
        while True:
            with anyio.move_on_after(self.documents.left_open_s):
                await self._noted.wait()
            self._noted = anyio.Event()
            async with self._sending:
                await self._tell_changes()
                self.documents.close_left_open()
            self.wake()

    async def _tell_changes(self) -> None:
        """Has build scripts run again, too, if they are to be; and tells what they wrote once they have."""
        if self._building and not self.readiness.pending:
            built = await anyio.to_thread.run_sync(built_files, self.watchers.folders)
            self._building = False
            self.documents.note([FileEvent(path, "changed") for path in built])
        inputs, self._perhaps_inputs = self._perhaps_inputs, {}
        try:
            await self.documents.tell_changes()
            if inputs:
                await self._have_built(list(inputs))
        except BaseException:  # a cancelled call's, too: the next one asks
            self._perhaps_inputs = inputs | self._perhaps_inputs
            raise

    async def _have_built(self, changed: Collection[Path]) -> None:
        asks = partial(asks_for_a_build, changed, self.watchers.folders, self._root)
        if await anyio.to_thread.run_sync(asks):
            pending = await self.connection.request(self._spec.watch.rebuild, None)
            try:
                await pending.answer(msgspec.Raw)
            except (ErrorAnswer, AnswerUnreadable) as error:
                logger.warning("%s refused %s: %s", self._spec.name, self._spec.watch.rebuild, error)
                self._unbuilt = str(error)
            else:
                self._unbuilt = ""
                self._building = True
                self.readiness.begin_again()

    async def ping(self) -> None:
        """Returns when the server has answered something."""
        pending = await self.connection.request("$/serenaCentral/ping", None)
        try:
            await pending.answer(msgspec.Raw)
        except (ErrorAnswer, AnswerUnreadable):
            return  # "no such method" is an answer

    async def ask(self, question: Question, shape: Any) -> tuple[Reading, Any]:
        """The answer, decoded as `shape`, and the text of the file that it is about.

        A server that was not ready before or after an answer may lack files for it, or say null because it has not
        read the one that it is asked about: it is asked again once it is ready. If that takes too long, or each
        question makes it busy again, its answer is taken as it is, and noted as one that may lack something.

        Raises:
            RequestFailed, ServerBusy, Unsupported, PathNotFound, PathRefused
        """
        self._check_offered(question.feature)
        across_files = question.feature not in WITHIN_ONE_FILE
        if across_files:
            await self._warm_up(question)
        for tries_left in reversed(range(CURRENT_TRIES)):
            early = self.readiness.pending
            reading, answer, unready = await self._ask_patiently(question, shape)
            unready = (across_files or answer is None or self._building) and (
                early or unready or self.readiness.pending
            )
            if unready and tries_left:
                await self.readiness.wait()
                if not self.readiness.pending:
                    continue
            if self.documents.still_current(reading):
                if unready:
                    note_gap(self.readiness.note)
                if across_files:
                    self._note_unbuilt()
                return reading, answer
        raise ServerBusy(self._spec.name, f"{question.path} keeps changing. Retry when the file no longer changes.")

    def _note_unbuilt(self) -> None:
        if self._unbuilt:
            note_gap(
                f"{self._spec.title} did not run build scripts and procedural macros again after a change "
                f"({quoted(self._unbuilt)}); restart_language_server does"
            )

    async def ask_together(self, questions: Sequence[Question], shape: Any) -> list[Answered | None]:
        """The answers to several questions about one file, which is prepared once and asked about in one go.

        None stands for those that have to be asked by themselves: the server failed, it was or became unready, or the
        file changed meanwhile.

        Raises:
            Unsupported, PathNotFound, PathRefused
        """
        first = questions[0]
        self._check_offered(first.feature)
        await self._warm_up(first)
        if self.readiness.pending or self._spec.documents.takes_in_s or self._spec.documents.open_candidates:
            return [None] * len(questions)
        sent: list[Pending] = []
        try:
            async with self._sending:
                await self._tell_changes()
                opened = first.feature not in self._spec.documents.unopened
                reading = await self.documents.prepare(first.path, opened=opened)
                for one in questions:
                    params = self._params(one, reading.text)
                    sent.append(await self.connection.request(METHODS[one.feature][0], params))
            with self.documents.held(first.path), self._waiting(METHODS[first.feature][0]):
                answers = [await _answered(pending, shape) for pending in sent]
        finally:
            for pending in sent:
                self.connection.abandon(pending)
        unready = self.readiness.pending or any(pending.unready for pending in sent)
        if unready or not self.documents.still_current(reading):
            return [None] * len(questions)
        self.proven = True
        self._note_unbuilt()
        return answers

    async def errors_if(
        self, texts: Mapping[Path, Text], paths: Sequence[Path], *, opened: Collection[Path], within_s: float
    ) -> dict[Path, LspDiagnosticReport]:
        """What the server would report of files if some had other `texts`; those about which it says nothing in time
        are left out. Nobody else gets an answer by these texts. `opened` are shown to it first.

        Raises:
            Unsupported, PathNotFound, PathRefused
        """
        method = METHODS["diagnostics"][0]
        if not self._spec.documents.answers_in_order or not self.pulls_diagnostics():
            raise Unsupported(self._spec.name, method)
        sent: dict[Path, Pending] = {}
        reports: dict[Path, LspDiagnosticReport] = {}
        try:
            async with self._sending:
                await self._tell_changes()
                await self.documents.open_many([path for path in opened if path not in texts])
                for path in texts:
                    await self.documents.prepare(path, opened=True)
                with self.documents.supposing(texts):
                    for path in paths:
                        params = {"textDocument": {"uri": uri_of(path)}}
                        sent[path] = await self.connection.request(method, params)
            with self._waiting(method), anyio.move_on_after(within_s):
                for path, pending in sent.items():
                    if (answered := await _answered(pending, LspDiagnosticReport)) is not None:
                        reports[path] = answered.value
        finally:
            for pending in sent.values():
                self.connection.abandon(pending)
        return reports

    def pulls_diagnostics(self) -> bool:
        return self._is_offered("diagnostics")

    async def await_published(self, path: Path) -> tuple[Reading, LspPublishedDiagnostics] | None:
        """The diagnostics that the server sent by itself for the file as it is now, also when it changes meanwhile: a
        server need not send any for a text that is outdated.

        None when the server has offered meanwhile to be asked for them.

        Raises:
            DeadlineExceeded, PathNotFound, PathRefused
        """
        reading = await self._opened(path)
        patience_s = self._patience.left_s(path)
        with anyio.move_on_after(patience_s), self._patience.waiting(path):
            while not self.pulls_diagnostics():
                if self.connection.closed:
                    raise ConnectionLost
                published = self.documents.published_of(path)
                is_of_reading = published is not None and published.version == reading.version
                if published is not None and is_of_reading and not self.documents.confirm(path):
                    return reading, published
                if self.documents.still_current(reading):
                    with self.documents.held(path):
                        await self._diagnostics_moved.wait()
                else:
                    reading = await self._opened(path)
            return None
        raise DeadlineExceeded(f"{self._spec.title}: diagnostics of {path.name}", patience_s)

    def wake(self) -> None:
        """Lets those who wait for diagnostics look again: some came, the file or the offer changed, or the connection
        ended."""
        self._diagnostics_moved.set()
        self._diagnostics_moved = anyio.Event()

    def _registered(self) -> None:
        self.wake()
        self._on_watching()

    async def read_again(self, paths: Collection[Path]) -> bool:
        """Makes the server read those of `paths` that changed since it did; whether there were any."""
        outdated = self._outdated(paths)
        if outdated:
            await self._let_read(outdated)
        return bool(outdated)

    def are_outdated(self, paths: Collection[Path]) -> bool:
        """Whether some of `paths` changed since the server read them."""
        return bool(self._outdated(paths))

    def _outdated(self, paths: Collection[Path]) -> list[Path]:
        return self._settling.outdated(paths) if self._settling is not None else []

    async def _let_read(self, paths: Collection[Path]) -> None:
        """Makes a server read files that it may know as they were; notes how many it did not get to."""
        unread = await self._settling.read(paths) if self._settling is not None else 0
        if unread:
            note_gap(f"{self._spec.title} has not read {unread} possibly relevant files yet; call again")

    async def _warm_up(self, question: Question) -> None:
        """Opens what an answer from several files needs, and waits for the work that begins in the server then."""
        if self._spec.readiness.after_open:
            async with self._sending:
                await self._tell_changes()
                await self.documents.open_many([question.path])
            self.readiness.start_clock(opened=True)
            await self.readiness.wait()
        if self._settling is not None and question.open_first:
            await self._let_read([*question.open_first, question.path])

    async def _show(self, paths: Sequence[Path]) -> list[Pending]:
        """Opens files, and asks for the symbols of each: a server that answers has read it. One that rebuilds a file
        whose included files have changed answers by those as they were, until it has published what it knows by now."""
        async with self._sending:
            await self._tell_changes()
            await self.documents.open_many(paths)
        for path in filter(self.documents.is_doubtful, paths):
            with suppress(DeadlineExceeded, PathError):
                await self.await_published(path)
        async with self._sending:
            return [
                await self.connection.request(METHODS["document_symbols"][0], {"textDocument": {"uri": uri_of(path)}})
                for path in paths
                if self.documents.version_of(path) is not None
            ]

    async def _ask_patiently(self, question: Question, shape: Any) -> tuple[Reading, Any, bool]:
        """Asks again, after a pause, while the server cancels or finds the content modified; at last undisturbed, since
        in a file that several agents edit each change may cancel the question about the one before.

        A server that fails for a file it was not shown is shown it: it may not have read its folders yet.
        """
        method = question.method or METHODS[question.feature][0]
        opened = question.feature not in self._spec.documents.unopened
        early = self.readiness.pending
        for pause in (*RETRY_PAUSES_S, None):
            try:
                return await self._ask_once(method, question, shape, opened=opened, undisturbed=pause is None)
            except ErrorAnswer as error:
                if error.code == METHOD_NOT_FOUND and early:
                    await self.readiness.wait()  # some know a request that they offer only when they have loaded
                    early = False
                    continue
                if not opened and error.code not in (METHOD_NOT_FOUND, *self._spec.retry_codes):
                    opened = True
                    continue
                if error.code == METHOD_NOT_FOUND:
                    raise Unsupported(self._spec.name, method) from error
                if error.code not in self._spec.retry_codes:
                    refused = self._inapplicable is not None and self._inapplicable.search(error.message)
                    failure = Inapplicable if refused else RequestFailed
                    raise failure(self._spec.name, method, error.code, error.message) from error
            except AnswerUnreadable as error:
                raise RequestFailed(self._spec.name, method, UNREADABLE_CODE, str(error)) from error
            if pause is not None:
                await anyio.sleep(pause)
        raise ServerBusy(
            self._spec.name, f"The language server {self._spec.name} is busy and cancelled {method}. Call again."
        )

    async def _ask_once(
        self, method: str, question: Question, shape: Any, *, opened: bool, undisturbed: bool
    ) -> tuple[Reading, Any, bool]:
        # For symbols, progress is the number of files that are left, which the indexer knows.
        with self._waiting(method, tells_progress=question.feature != "document_symbols"):
            return await self._exchange(method, question, shape, opened=opened, undisturbed=undisturbed)

    @contextmanager
    def _waiting(self, method: str, *, tells_progress: bool = True) -> Generator[None]:
        """While a call waits for the server, which its trace, its phases and its progress tell."""
        asked = f"{self._spec.name} is answering {method}"
        told = waiting_for(lambda: (asked, None)) if tells_progress else nullcontext()
        with tracing.step_span(f"{self._spec.name} {method}"), phase("server", self._spec.name), told:
            yield

    async def _opened(self, path: Path) -> Reading:
        """Shows the server the file as it is. One that takes documents in late may never take in what it is shown
        before it is ready."""
        if self._spec.documents.takes_in_s:
            await self.readiness.wait()
        async with self._sending:
            await self._tell_changes()
            return await self.documents.prepare(path, opened=True)

    async def _let_it_take_in(self, path: Path) -> None:
        """Shows the server the file as it is, and waits until it has had the time that it needs."""
        await self._opened(path)
        await anyio.sleep(self.documents.taken_in_after_s(path))

    async def _exchange(
        self, method: str, question: Question, shape: Any, *, opened: bool, undisturbed: bool
    ) -> tuple[Reading, Any, bool]:
        """What was read, the answer, and whether the server was not ready when it answered. `undisturbed`: meanwhile it
        is told and asked nothing else, for `UNDISTURBED_S` at most."""
        if self._spec.documents.takes_in_s:
            await self._let_it_take_in(question.path)
        async with self._sending:
            await self._tell_changes()
            if self._settling is None and self._spec.documents.open_candidates:
                await self.documents.open_many(question.open_first)
            reading = await self.documents.prepare(question.path, opened=opened)
            params = question.params if "item" in question.params else self._params(question, reading.text)
            pending = await self.connection.request(method, params, shared=True)
            question.when_asked()
            if undisturbed:
                await pending.settled(UNDISTURBED_S)
        with self.documents.held(question.path):
            answer = await pending.answer(shape)
        self.proven = True
        return reading, answer, pending.unready

    def _params(self, question: Question, text: Text) -> dict[str, Any]:
        params: dict[str, Any] = {"textDocument": {"uri": uri_of(question.path)}, **question.params}
        if question.position is not None:
            params["position"] = lsp_position(text, question.position, self.offer.encoding)
        return params

    def _is_offered(self, feature: Feature) -> bool:
        """Whether the server answers the feature's request, by its first word or by a registration since."""
        method, capability = METHODS[feature]
        return self.offer.capabilities.get(capability) not in (None, False) or method in self._callbacks.registered

    def _check_offered(self, feature: Feature) -> None:
        spec = self._spec
        if feature in spec.deny or not (feature in spec.unadvertised or self._is_offered(feature)):
            raise Unsupported(spec.name, METHODS[feature][0])

    def _take_diagnostics(self, published: LspPublishedDiagnostics) -> None:
        path = path_of(published.uri)
        version = self.documents.version_of(path) if path is not None else None
        if path is None or version is None:
            return
        if published.version is not None:
            self._names_versions = True
        elif self._names_versions:
            return  # it clears the diagnostics of a document that was closed
        self._patience.heard(path)
        # A server that names no version means the newest that it was told.
        published.version = published.version or version
        self.documents.take_published(path, published)
        self.wake()

    def _take_file_status(self, status: FileStatus) -> None:
        path = path_of(status.uri)
        if path is not None and self.documents.take_status(path, status.state):
            self.wake()


async def _answered(pending: Pending, shape: Any) -> Answered | None:
    try:
        return Answered(await pending.answer(shape))
    except (ErrorAnswer, AnswerUnreadable):
        return None
