"""The state of documents in one server: which are open with which text, and which changes on disk it has not been
notified of.

Disk is the truth. Before a request, `prepare` compares the file with the disk by stat and tells the server what
changed; `still_current` says afterwards whether the answer was about the same text. The caller holds one lock around
`prepare`, `tell_changes` and the sending of the request, so that nothing gets in between.

A caller may be cancelled wherever it waits. So a file is read first, and no await comes between what the server is sent
then and the record of it.
"""

import itertools
import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import PathError, PathNotFound, PathRefused
from serena_central.core.nofollow import resolved
from serena_central.core.pacing import paced
from serena_central.core.text import Encoding, Text
from serena_central.files.stamp import Stamp
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.callbacks import Watchers
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.conversion import uri_of
from serena_central.lsp.go_platforms import other_platform_of_text
from serena_central.lsp.links import Links
from serena_central.lsp.types import LspPublishedDiagnostics
from serena_central.lsp.wire import Connection

logger = logging.getLogger(__name__)

MAX_OPEN = 200
"""Documents open at once; servers keep the syntax tree of each in memory."""

MAX_CANDIDATES = MAX_OPEN - 1
"""Files that are opened for one question, beside the one that it is about."""

RACY_NS = 50_000_000
"""A file that changed less than this before it was read may change again under the same mtime: it is read again."""

LARGE_BYTES = 200_000
"""Files beyond this are read in a thread: they take more than a millisecond."""

UNASKED_S = 1.0
"""A file of another platform that nobody has asked about for so long is closed before the next question …"""

LEFT_OPEN_S = 5.0
"""… and after so long without one: it keeps the server busy, with all that it depends on."""

_READ_TRIES = 3

_SURROGATE = re.compile("[\ud800-\udfff]")


class Reading(msgspec.Struct):
    """A file's text as the server has it, for one request. `version` is None for a file that is not open."""

    path: Path
    text: Text
    stamp: Stamp
    version: int | None = None


class _Document(msgspec.Struct):
    """An open document. `settled`: its stamp is old enough to stand for its content."""

    uri: str
    text: Text
    stamp: Stamp
    settled: bool
    version: int
    users: int = 0
    used_at: float = msgspec.field(default_factory=time.monotonic)
    """When a request about it ended last, by the monotonic clock; at first when it was opened."""
    outdated: bool = False
    """A file that is part of it has changed; the server sees that when it rebuilds the document."""
    doubtful: bool = False
    """It was rebuilt: what is published of it first may go by that file as it was."""
    at_work: bool = False
    """As the server says, who has not read all that it includes."""
    shown_at: float = msgspec.field(default_factory=time.monotonic)
    """When the server was sent this text, by the monotonic clock."""
    published: LspPublishedDiagnostics | None = None
    """What the server sent last."""


def never_at_hand(_paths: Collection[Path]) -> bool:
    """Has all files be read in threads."""
    return False


class Documents:
    """The documents of one server. `sync_kind` is the server's TextDocumentSyncKind: 1 full, 2 ranges."""

    def __init__(
        self,
        spec: ServerSpec,
        connection: Connection,
        watchers: Watchers,
        read_text: Callable[[Path], Text],
        are_at_hand: Callable[[Collection[Path]], bool] = never_at_hand,
        on_unasked: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_unasked` is called when `left_open_s` may have become less."""
        self._spec = spec
        self._connection = connection
        self._watchers = watchers
        self._read_text = read_text
        self._are_at_hand = are_at_hand
        self._on_unasked = on_unasked
        self._open: OrderedDict[Path, _Document] = OrderedDict()
        self._versions = itertools.count(1)
        """Of all documents: what is said of one before it was closed is not about the one that is opened later."""
        self._for_other_platforms: set[Path] = set()
        """Open files for which the server keeps the project once more."""
        self._unopened: dict[str, Stamp] = {}
        """Files that the server was asked about without opening them: what they were like then."""
        self._importing: set[Path] = set()
        """Folders of files that were open."""
        self._news: dict[Path, FileEvent] = {}
        self.encoding: Encoding = "utf-16"
        self.sync_kind = 1

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def version_of(self, path: Path) -> int | None:
        document = self._open.get(path)
        return document.version if document else None

    def published_of(self, path: Path) -> LspPublishedDiagnostics | None:
        """The diagnostics that the server sent last since the file was opened."""
        document = self._open.get(path)
        return document.published if document else None

    def take_published(self, path: Path, published: LspPublishedDiagnostics) -> None:
        """Keeps diagnostics of an open file."""
        self._open[path].published = published

    def take_status(self, path: Path, state: str) -> bool:
        """Keeps what the server says that it does with a file; whether somebody may wait for that."""
        document = self._open.get(path)
        if document is not None:
            document.at_work = state != "idle"
        return document is not None and document.doubtful and not document.at_work

    def note(self, changes: Iterable[FileEvent]) -> None:
        """Queues changes for notification before the next request. Changes that cancel out are sent as one change."""
        for change in changes:
            if self.is_included(change.path):
                for document in self._open.values():
                    document.outdated = True
            before = self._news.get(change.path)
            if before is not None and before.kind != change.kind:
                kind = "deleted" if change.kind == "deleted" else "created" if before.kind == "created" else "changed"
                change = FileEvent(change.path, kind)  # noqa: PLW2901 - the merged change takes its place
            self._news[change.path] = change

    def is_included(self, path: Path) -> bool:
        """Whether the text of other files may depend on this one's."""
        return any(fnmatchcase(path.name, pattern) for pattern in self._spec.documents.included)

    async def tell_changes(self) -> None:
        """Brings the server up to date with everything noted. What it was not told, the next call tells.

        Raises:
            ConnectionLost
        """
        if not self._news:
            return
        await self._connection.drain()
        untold, self._news = self._news, {}
        poked: list[Path] = []
        try:
            for change in untold.values():
                known = self._unopened.pop(str(change.path), None)
                if change.path not in self._open:
                    if self._must_be_poked(change, known):
                        poked.append(change.path)
                    continue
                try:
                    await self._refresh(change.path, self._open[change.path])
                except (PathError, OSError) as error:
                    logger.debug("closed, because it can no longer be read: %s", error)
            self._tell_watched(await self._by_all_names(list(untold.values())))
            untold = {path: untold[path] for path in poked}
            await self._poke(poked)
        except BaseException:
            noted_since, self._news = self._news, untold
            self.note(noted_since.values())
            raise

    async def _by_all_names(self, changes: list[FileEvent]) -> list[FileEvent]:
        """With the names of links, for a server that knows files by those."""
        moved = [change for change in changes if change.kind != "changed"] if self._spec.watch.linked else []
        if not moved:
            return changes
        links = Links(self._importing)

        def find() -> list[FileEvent]:
            return [FileEvent(name, change.kind) for change in moved for name in links.names(change.path)]

        return changes + await anyio.to_thread.run_sync(find)

    def _must_be_poked(self, change: FileEvent, known: Stamp | None) -> bool:
        """Whether the server would miss a change. `known`: what the file was like when it was asked about it."""
        quirks = self._spec.documents
        missed = (quirks.reads_late and change.kind != "deleted") or (
            quirks.trusts_mtime and change.kind == "changed" and not _has_other_mtime(change.path, known)
        )
        return missed and catalogue().language_of(change.path.name) in self._spec.read_languages

    async def _poke(self, paths: Sequence[Path]) -> None:
        """Opens and closes changed files, for a server that does not read them, or not at once, when it is told.

        Of many files a server that trusts mtimes is shown only those that may have kept theirs: few of thousands do,
        and each costs a reading.
        """
        some_suffice = len(paths) > MAX_OPEN and not self._spec.documents.reads_late
        for path in paths:
            try:
                if some_suffice and not _mtime_says_little(_stamp(path)):
                    continue
                await self._did_open(path)
            except (PathError, OSError) as error:
                logger.debug("not touched: %s", error)
            else:
                self._close(path)

    async def prepare(self, path: Path, *, opened: bool) -> Reading:
        """Makes sure that the server has the file as it is on disk now, open if `opened`.

        Raises:
            PathNotFound, PathRefused, ConnectionLost
        """
        document = self._open.get(path)
        if document is None and not opened:
            reading = await self._prepare_unopened(path)
            if reading is not None:
                if self._for_other_platforms and other_platform_of_text(path.name, reading.text.content) is None:
                    self._close_unasked(UNASKED_S)
                return reading
        if document is None:
            document = await self._did_open(path)
        elif document.outdated:
            await self._rebuild(path, document)
        elif self._may_differ(path, document) and await self._refresh(path, document):
            self._tell_watched([FileEvent(path, "changed")])
        self._open.move_to_end(path)
        if path not in self._for_other_platforms:
            self._close_unasked(UNASKED_S)
        return Reading(path, document.text, document.stamp, document.version)

    def still_current(self, reading: Reading) -> bool:
        """Whether an answer that arrives now is about `reading`'s text."""
        document = self._open.get(reading.path)
        if document is not None:
            return document.version == reading.version
        try:
            return reading.version is None and _stamp(reading.path) == reading.stamp
        except PathNotFound:
            return False

    @contextmanager
    def held(self, path: Path) -> Generator[None]:
        """Keeps a document open while a request about it runs."""
        document = self._open.get(path)
        if document is not None:
            document.users += 1
        try:
            yield
        finally:
            if document is not None:
                document.users -= 1
                document.used_at = time.monotonic()
                if path in self._for_other_platforms:
                    self._on_unasked()

    def text_of(self, path: Path) -> Text:
        """The text that places in a file are about: as the server has it, else as it is on disk. Safe from threads.

        Servers name files as they reached them, also through symlinks. Such a text serves to count columns alone.
        """
        document = self._open.get(path)
        if document:
            return document.text
        try:
            return self._read_text(path)
        except PathRefused:
            return self._read_text(Path(resolved(path)))

    def are_at_hand(self, paths: Collection[Path]) -> bool:
        """Whether `text_of` these files takes less than a thread takes to begin with it."""
        return self._are_at_hand([path for path in paths if path not in self._open])

    async def open_many(self, paths: Sequence[Path]) -> None:
        """Opens files that a request is about without naming them; those that can't be read are left out."""
        async for path in paced(paths[:MAX_CANDIDATES]):
            try:
                await self.prepare(path, opened=True)
            except (PathError, OSError) as error:
                logger.debug("not opened: %s", error)

    async def _prepare_unopened(self, path: Path) -> Reading | None:
        """None for a file that must be opened, because the server would read something else from the disk."""
        text, stamp = await self._read(path)
        if not _looks_like_utf8(text, stamp):
            return None
        known = self._unopened.get(str(path))
        if known is not None and known != stamp:
            self._tell_watched([FileEvent(path, "changed")])
        self._unopened[str(path)] = stamp
        return Reading(path, text, stamp)

    async def _did_open(self, path: Path) -> _Document:
        """Opens a file, or reopens it."""
        text, stamp = await self._read(path)
        if path in self._open:
            self._close(path)
        self._make_room()
        known = self._unopened.pop(str(path), None)
        if known is not None and known != stamp:
            self._tell_watched([FileEvent(path, "changed")])
        document = _Document(uri_of(path), text, stamp, _is_settled(stamp), next(self._versions))
        item = {
            "uri": document.uri,
            "languageId": catalogue().identifier_of(path.name, self._spec.read_languages),
            "version": document.version,
            "text": _sendable(text),
        }
        self._connection.notify("textDocument/didOpen", {"textDocument": item})
        self._open[path] = document
        self._note_platform(path, text)
        self._importing.add(path.parent)
        return document

    def taken_in_after_s(self, path: Path) -> float:
        """How long the server still needs for what it was shown last of a file, in seconds."""
        document = self._open.get(path)
        return max(0.0, document.shown_at + self._spec.documents.takes_in_s - time.monotonic()) if document else 0.0

    def shown_for_s(self, path: Path) -> float:
        """How long ago the server was sent the text that it has of a file; endless for one that is not open."""
        document = self._open.get(path)
        return time.monotonic() - document.shown_at if document else math.inf

    async def _refresh(self, path: Path, document: _Document) -> bool:
        """Reads an open document again; returns whether its text had changed and the server was notified."""
        text, stamp = await self._read(path)
        is_new = text.content != document.text.content
        if is_new:
            self._did_change(document, text)
            self._note_platform(path, text)
        document.stamp, document.settled = stamp, _is_settled(stamp)
        return is_new

    async def _rebuild(self, path: Path, document: _Document) -> None:
        """Has the server read an open file again, with the files that are part of it. It stays open: clangd 22 can lock
        up for good when many files are closed and reopened while it still works on them."""
        text, stamp = await self._read(path)
        self._did_change(document, text, forceRebuild=True)  # clangd's extension of the protocol
        self._note_platform(path, text)
        document.stamp, document.settled, document.outdated = stamp, _is_settled(stamp), False
        document.published, document.doubtful = None, True

    def is_doubtful(self, path: Path) -> bool:
        """Whether what the server says of an open file may go by included files as they were."""
        document = self._open.get(path)
        return document is not None and document.doubtful

    def confirm(self, path: Path) -> bool:
        """Has the server look at an open file once more where what it published is doubtful; whether it is. clangd
        publishes at once by included files as it read them before, and of a text that it knows only when it has read
        them again."""
        document = self._open.get(path)
        if document is None or not document.doubtful:
            return False
        if document.at_work:
            return True  # its next status wakes who waits
        self._did_change(document, document.text, forceRebuild=True)
        document.published, document.doubtful = None, False
        return True

    @contextmanager
    def supposing(self, texts: Mapping[Path, Text]) -> Generator[None]:
        """Shows the server other texts of open files, and those as they are again: for requests that are sent between.
        Whatever else is known here stays with the files as they are: answers to earlier requests are still about
        them."""
        shown: list[tuple[_Document, Text]] = []
        try:
            for path, text in texts.items():
                document = self._open[path]
                self._send_text(document, document.text, text)
                shown.append((document, text))
            yield
        finally:
            for document, text in shown:
                self._send_text(document, text, document.text)

    def _did_change(self, document: _Document, text: Text, **more: Any) -> None:
        document.version = self._send_text(document, document.text, text, **more)
        document.text, document.shown_at = text, time.monotonic()

    def _send_text(self, document: _Document, before: Text, text: Text, **more: Any) -> int:
        """Returns the version that the server knows it by."""
        version = next(self._versions)
        change: dict[str, Any] = {"text": _sendable(text)}
        if self.sync_kind == 2 and self._spec.documents.ranged_edits_only:
            line, character = before.to_lsp(before.position(len(before.content)), self.encoding)
            end = {"line": line, "character": character}
            change["range"] = {"start": {"line": 0, "character": 0}, "end": end}
        identity = {"uri": document.uri, "version": version}
        params = {"textDocument": identity, "contentChanges": [change], **more}
        self._connection.notify("textDocument/didChange", params)
        return version

    def _may_differ(self, path: Path, document: _Document) -> bool:
        if not document.settled:
            return True
        try:
            return _stamp(path) != document.stamp
        except PathNotFound:
            return True

    def _close(self, path: Path) -> None:
        self._connection.notify("textDocument/didClose", {"textDocument": {"uri": self._open[path].uri}})
        del self._open[path]
        self._for_other_platforms.discard(path)

    def _note_platform(self, path: Path, text: Text) -> None:
        if not self._spec.documents.project_per_platform:
            return
        is_elsewhere = other_platform_of_text(path.name, text.content) is not None
        (self._for_other_platforms.add if is_elsewhere else self._for_other_platforms.discard)(path)

    @property
    def left_open_s(self) -> float:
        """After how many seconds `close_left_open` has something to do."""
        unasked = [self._open[path].used_at for path in self._for_other_platforms if not self._open[path].users]
        return max(0.0, min(unasked) + LEFT_OPEN_S - time.monotonic()) if unasked else math.inf

    def close_left_open(self) -> None:
        """Closes files of other platforms that nobody asks about any more.

        Raises:
            ConnectionLost
        """
        self._close_unasked(LEFT_OPEN_S)

    def _close_unasked(self, for_s: float) -> None:
        """Closes files of other platforms that nobody has asked about for so long."""
        until = time.monotonic() - for_s
        for path in sorted(self._for_other_platforms):
            document = self._open[path]
            if not document.users and document.used_at <= until:
                self._close(path)

    def _make_room(self) -> None:
        while len(self._open) >= MAX_OPEN:
            idle = next((path for path, document in self._open.items() if not document.users), None)
            if idle is None:
                return  # every open document is in use: bounded by the calls that run
            self._close(idle)

    def _tell_watched(self, changes: Sequence[FileEvent]) -> None:
        events = self._watchers.events(changes)
        if events:
            self._connection.notify("workspace/didChangeWatchedFiles", {"changes": events})

    async def _read(self, path: Path) -> tuple[Text, Stamp]:
        """The text and the stamp that it was read under, once the server keeps up. A file that can't be read is closed.

        Raises:
            PathNotFound, PathRefused, ConnectionLost
        """
        await self._connection.drain()
        try:
            return await self._read_under_stamp(path)
        except (PathError, OSError) as error:
            if path in self._open:
                self._close(path)
                kind = "deleted" if isinstance(error, PathNotFound) else "changed"
                self._tell_watched([FileEvent(path, kind)])
            raise

    async def _read_under_stamp(self, path: Path) -> tuple[Text, Stamp]:
        stamp = _stamp(path)
        tries = _READ_TRIES
        while True:
            if stamp.size > LARGE_BYTES:
                text = await anyio.to_thread.run_sync(self._read_text, path)
            else:
                text = self._read_text(path)
            before, stamp = stamp, _stamp(path)
            tries -= 1
            if before == stamp or not tries:
                return text, stamp


def _stamp(path: Path) -> Stamp:
    try:
        return Stamp.of(path.stat())
    except OSError as error:
        raise PathNotFound(str(path)) from error


def _looks_like_utf8(text: Text, stamp: Stamp) -> bool:
    """Whether the file is as long as its text in UTF-8, which servers take every file for; other encodings differ.

    So does a byte-order mark, which some servers count as a character of the first line.
    """
    length = len(text.content) if text.content.isascii() else len(text.content.encode("utf-8", "surrogatepass"))
    return stamp.size == length


def _has_other_mtime(path: Path, known: Stamp | None) -> bool:
    try:
        return known is not None and _stamp(path).mtime_ns != known.mtime_ns
    except PathNotFound:
        return False


def _is_settled(stamp: Stamp) -> bool:
    return time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > RACY_NS


def _mtime_says_little(stamp: Stamp) -> bool:
    """Whether the mtime was set by a program, or is so new that a second change may have the same."""
    return not _is_settled(stamp) or abs(stamp.ctime_ns - stamp.mtime_ns) > RACY_NS


def _sendable(text: Text) -> str:
    """Bytes that were no text are lone surrogates, which JSON can't carry: each becomes U+FFFD, of the same widths."""
    content = text.content
    return content if content.isascii() else _SURROGATE.sub("\ufffd", content)
