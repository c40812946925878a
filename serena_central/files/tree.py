"""The live list of a root's files, never staler than the call that asks for it.

A `FileTree` owns one scan (what is there) and, where that is possible, one watch (what changed). `fresh()` is the
barrier: afterwards everything that was on disk before the call has been seen and told. Scanning is done by one task at
a time, in a thread when it may take long; `files` and the listeners are touched in the event loop's thread alone.

Without a watch `fresh()` compares the whole root by stat, and `note` says why.
"""

import logging
import stat
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.nofollow import status_of
from serena_central.core.pacing import paced
from serena_central.core.tracing import phase
from serena_central.files.ignore import ignores
from serena_central.files.left_out import IsRead
from serena_central.files.notification import Heard, Watch, WatchUnavailable
from serena_central.files.path_watch import PathWatch
from serena_central.files.repository import IGNORE_FILE, OuterRules
from serena_central.files.stamp import Stamp
from serena_central.files.walk import CatchAll, TreeScan
from serena_central.files.watch import STEP_S, Watches

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 64
"""Maximum of changed files that are examined on the event loop (6 µs each); more, and all folders, go to a thread."""

TOLD_AT_ONCE = 500
"""Changes that are passed to listeners before other tasks get a turn: some 20 ms."""

CLOCK_NS = 20_000_000
"""A stamp that is taken this soon after its file's change may stay the same at the next change: the clock of file
systems before Linux 6.13 steps by up to 10 ms."""

MOST_ROUNDS = 8
"""How often the queue is read in one `fresh()`. One reading holds all that happened before the call; the others follow
what happens meanwhile, and must end although somebody writes without pause."""

_BEHIND_SLASH = chr(ord("/") + 1)

Kind = Literal["created", "changed", "deleted"]


class Change(msgspec.Struct, frozen=True, gc=False):
    """What became of one file; `path` is relative to the root, POSIX."""

    path: str
    kind: Kind


Listener = Callable[[Sequence[Change]], None]

Seen = Mapping[str, Stamp | None]
"""What somebody knows of a root's files: path → stamp; None where another content may have the same one."""


class FileTree:
    """See the module. `note` is a sentence for answers when the root can't be watched, else None."""

    def __init__(
        self,
        root: Path,
        watches: Watches,
        *,
        ignored_paths: Sequence[str] = (),
        ignore_all_files_in_gitignore: bool = True,
        hidden: Callable[[str], bool] | None = None,
        path_watch: PathWatch | None = None,
        is_read: IsRead | None = None,
    ) -> None:
        """`hidden` tells of a root-relative path whether rules keep it out of everything. Without `path_watch` each
        `fresh()` compares by stat the files outside of the root that it follows. With `is_read` files are followed that
        are none of the root's and that language servers may read (`left_out`)."""
        self._is_read = is_read
        self._path_watch = path_watch or PathWatch(watches=False)
        self._hidden = hidden
        self.root = root
        self._watches = watches
        self.note: str | None = None
        self.not_utf8: list[str] = []
        """Files and folders that are left out for their names, as of the last `fresh()`."""
        self.unreadable: list[str] = []
        """Those that this user may not read, as of the last `fresh()`; folders end with `/`. What they hold is known to
        nobody."""
        self.catch_all: CatchAll | None = None
        """The line of an ignore file or setting that ignores all folders of the root, as of the last `fresh()`."""
        self._make_outer = partial(OuterRules, root, ignored_paths=ignored_paths, use_git=ignore_all_files_in_gitignore)
        self._use_git = ignore_all_files_in_gitignore
        self._files: dict[str, Stamp] = {}
        self._left_out: dict[str, Stamp] = {}
        self._ordered: list[str] | None = None
        """The paths in order, made when somebody wants them: of 100,000 that takes 40 ms."""
        self._snapshot: Mapping[str, Stamp] | None = None
        self._just_stamped: set[str] = set()
        self._links_seen: object = None
        self._listeners: dict[object, Listener] = {}
        self._servers_listeners: dict[object, Listener] = {}
        self._turn = anyio.Lock(fast_acquire=True)
        self._scanned = anyio.Event()
        self._scans_begun = 0
        self._scans_ended = 0
        self._watch: Watch | None = None
        self._watching = anyio.CancelScope()
        self._scan: TreeScan | None = None

    @property
    def is_watched(self) -> bool:
        """Whether changes are heard of, which also means that the root lies on a file system of this machine."""
        return self._watch is not None

    @property
    def files(self) -> Mapping[str, Stamp]:
        """Every regular file of the root that is not ignored: path → stamp, as of the last `fresh()`. Live: copy it
        before awaiting anything or handing it to a thread."""
        return self._files

    @property
    def snapshot(self) -> Mapping[str, Stamp]:
        """`files` as they are now; the same object until some file changes."""
        if self._snapshot is None:
            self._snapshot = dict(self._files)
        return self._snapshot

    @property
    def left_out(self) -> Mapping[str, Stamp]:
        """Files that are followed for language servers although they are none of the root's, like `files`. Live."""
        return self._left_out

    def follows(self, path: str) -> bool:
        """Whether a root-relative file or folder is left out and followed."""
        folder = self._scan.folders.get(f"{path}/") if self._scan is not None else None
        return path in self._left_out or (folder is not None and folder.left_out)

    @property
    def not_followed(self) -> Collection[str]:
        """Files and folders, root-relative, that are left out and of which language servers may read more than is
        followed."""
        left_out = self._scan.left_out if self._scan is not None else None
        return left_out.missing.values() if left_out is not None else ()

    def seen(self) -> Seen:
        """What listeners have heard until now, of either kind, for `tell_since`. Not live."""
        return {**self._files, **self._left_out, **dict.fromkeys(self._just_stamped)}

    async def tell_since(self, seen: Seen, listener: Listener) -> None:
        """Tells a listener of later changes how `files` and `left_out` differ from what it has `seen`, by an earlier
        tree of the root. Shielded: what was told in part could not be continued."""
        folders: set[str] = {""}
        with anyio.CancelScope(shield=True):
            async for path in paced(seen):
                folders.update(_folders_of(path, folders))
            async for path in paced([*self._files, *self._left_out]):
                stamp = self._files.get(path) or self._left_out.get(path)
                if stamp is not None and stamp != seen.get(path):
                    listener([Change(path, "changed")] if path in seen else list(_created(path, folders)))
            async for path in paced(seen):
                if path not in self._files and path not in self._left_out:
                    listener([Change(path, "deleted")])

    def below(self, folder: str) -> Sequence[str]:
        """`files` below a root-relative folder ("" for the root), sorted. Not live, and nobody's to change."""
        ordered = self._ordered
        if ordered is None:
            ordered = self._ordered = sorted(self._files)
        if not folder:
            return ordered
        return ordered[bisect_left(ordered, f"{folder}/") : bisect_left(ordered, f"{folder}{_BEHIND_SLASH}")]

    def beside(self, path: str) -> list[str]:
        """`files` in the folder of a root-relative path, sorted: those below other folders are not looked at."""
        folder, slash, _ = path.rpartition("/")
        return [one for one in self.below(folder) if "/" not in one[len(folder + slash) :] and one != path]

    def outputs(self) -> list[str]:
        """Folders that are left out because a tool marked them as its output, root-relative."""
        return self._scan.outputs() if self._scan is not None else []

    @property
    def leaves_out_more_than_git(self) -> bool:
        """Whether `files` may lack one that git does not ignore, so that others who look through the root find it."""
        return self._scan is None or self._scan.leaves_out_more_than_git()

    @property
    def links(self) -> Iterable[str]:
        """Symlinks that lead to no folder, root-relative; none of them is in `files`."""
        return self._scan.links() if self._scan is not None else ()

    def hidden(self) -> frozenset[str]:
        """Files and folders that rules keep out of it, root-relative; some may be gone since."""
        return frozenset(self._scan.hidden) if self._scan is not None and self._hidden is not None else frozenset()

    def subscribe(self, listener: Listener, *, for_servers: bool = False) -> Callable[[], None]:
        """Calls `listener` with every later batch of changes, one per file, in the event loop's thread and before the
        `fresh()` that found them returns; or with what is told `for_servers` besides: files that are left out, and new
        folders, whose paths end in `/` and which come before their files. Files of the first scan are no changes.
        Returns the way to end it."""
        key = object()
        listeners = self._servers_listeners if for_servers else self._listeners
        listeners[key] = listener

        def end() -> None:
            listeners.pop(key, None)

        return end

    @contextmanager
    def noting(self) -> Generator[set[str]]:
        """Paths of the files that changed since the block was entered, as far as a `fresh()` has seen it; of those too
        that are left out."""
        changed: set[str] = set()

        def note(changes: Sequence[Change]) -> None:
            changed.update(change.path for change in changes if change.path[-1] != "/")

        ends = [self.subscribe(note), self.subscribe(note, for_servers=True)]
        try:
            yield changed
        finally:
            for end in ends:
                end()

    def is_ignored(self, path: str) -> bool:
        """Whether a root-relative POSIX path is ignored, or lies in a nested repository or a build tool's folder. It
        need not exist; one that ends in `/` is taken for a folder."""
        scan = self._scan
        if scan is None or path in self._files:
            return False
        folder = scan.folders.get("")
        names = path.strip("/").split("/")
        inside = ""
        for depth, name in enumerate(names):
            if folder is None or name in ("", "."):
                return False
            inside += name
            is_folder = depth < len(names) - 1 or path.endswith("/") or self._is_folder(inside)
            if folder.closed or ignores(folder.rules, inside, name, is_folder):
                return True
            inside += "/"
            folder = scan.folders.get(inside, folder)
        return folder is not None and folder.closed

    def _is_folder(self, path: str) -> bool:
        """A symlink to one is none, as for git, and is not followed."""
        try:
            return stat.S_ISDIR(status_of(f"{self.root}/{path}").st_mode)
        except OSError:
            return False

    @property
    def repository(self) -> Path | None:
        """The top folder of the repository that the root is in, or is; None also where that ignores the root."""
        outer = self._scan.outer if self._scan is not None else None
        return None if outer is None or outer.leaves_out else outer.repository

    def is_apart(self, folder: Path) -> bool:
        """Whether git separates the root from a folder above: it lies in another repository, or the root is ignored."""
        outer = self._scan.outer if self._scan is not None else None
        if outer is None or outer.repository is None:
            return False
        return outer.leaves_out or not folder.is_relative_to(outer.repository)

    def holds_others(self, folder: str) -> bool:
        """Whether nested repositories lie below a root-relative folder ("" for the root), hidden folders aside: their
        files are not among these."""
        prefix = f"{folder}/" if folder else ""
        folders = list(self._scan.folders.values()) if self._scan else []
        return any(one.nested and one.path.startswith(prefix) and "/." not in f"/{one.path}" for one in folders)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Scans, then follows the changes until cancelled; `started()` when the first scan is complete."""
        watch = self._begin_watching()
        try:
            outer = await anyio.to_thread.run_sync(self._make_outer)
            self._scan = TreeScan(
                self.root, outer, use_git=self._use_git, watch=watch, hidden=self._hidden, is_read=self._is_read
            )
            self._watch = watch
            async with self._turn:
                await self._rescan()
            self._scanned.set()
            task_status.started()
            with self._watching:
                while self._watch is not None:
                    await self._watch.heard()
                    await anyio.sleep(STEP_S)
                    await self.fresh()
            await anyio.sleep_forever()
        finally:
            self._watch = None
            if watch is not None:
                await _in_thread(watch.close)

    async def fresh(self) -> None:
        """The barrier: when it returns, `files` and the listeners have seen everything that was on disk before."""
        with phase("barrier"):
            if not self._scanned.is_set():
                await self._scanned.wait()
            if self._is_fresh():
                return
            wanted = self._scans_begun + 1  # a scan that has begun already may have missed what this call must see
            async with self._turn:
                if self._watch is not None:
                    await self._catch_up(self._watch)
                elif self._scans_ended < wanted:
                    await self._rescan()

    def _is_fresh(self) -> bool:
        """Whether nothing has happened since the last `fresh()`, and nobody is still taking in what has: there is
        nothing to wait for then, as at most calls."""
        if self._watch is None or self._scan is None or self._turn.locked():
            return False
        scan = self._scan
        return not self._is_outdated(scan) and self._links_state(scan) is self._links_seen and self._watch.is_read()

    def _links_state(self, scan: TreeScan) -> object:
        """Another object when files outside of the root may have changed that symlinks lead to."""
        elsewhere = scan.linked_elsewhere()
        targets = tuple(elsewhere.values())
        return self._path_watch.get(("links", self.root, targets), lambda: targets, object) if targets else None

    def _is_outdated(self, scan: TreeScan) -> bool:
        """Whether the whole root has to be looked at again."""
        outer = scan.outer
        state = self._path_watch.get(("ignore rules", outer.paths), lambda: outer.paths, outer.state)
        return scan.root_is_another() or state != outer.seen

    async def examine(self, paths: Iterable[str]) -> None:
        """Looks at files that have changed although no event said so."""
        async with self._turn:
            if self._scan is not None and self._watch is not None:  # without a watch each `fresh()` looks
                await self._follow(self._heard_of(paths))

    def _heard_of(self, paths: Iterable[str]) -> list[Heard]:
        """As if something was heard of these paths."""
        assert self._scan is not None
        heard: list[Heard] = []
        for path in paths:
            folder, _, name = path.rpartition("/")
            if (known := self._scan.folders.get(f"{folder}/" if folder else "")) is not None:
                heard.append(Heard(known, name, is_folder=False, moved_away=False))
        return heard

    async def _catch_up(self, watch: Watch) -> None:
        """Applies the watch's events until there are no more."""
        assert self._scan is not None
        if self._is_outdated(self._scan):
            await self._rescan()
        state = self._links_state(self._scan)
        if state is not self._links_seen:
            self._links_seen = state
            await self._follow(self._heard_of(self._scan.linked_elsewhere()))
        for _ in range(MOST_ROUNDS):
            heard = watch.read()
            if heard is None:
                await self._rescan()
            elif heard:
                await self._follow(heard)
            else:
                return

    async def _follow(self, heard: list[Heard]) -> None:
        assert self._scan is not None
        try:
            if len(heard) <= MOST_AT_ONCE and not any(_may_take_long(one) for one in heard):
                _examine(self._scan, heard)
            else:
                await _in_thread(partial(_examine, self._scan, heard))
        except WatchUnavailable as error:
            self._spare_watches(error)
            await self._rescan()
        else:
            await self._tell(self._scan, heard=True)

    async def _rescan(self) -> None:
        """Looks at the whole root again, with fewer watches, or none, if those give out."""
        assert self._scan is not None
        self._scans_begun += 1
        number = self._scans_begun
        while True:
            try:
                await _in_thread(partial(_look_everywhere, self._scan, self._make_outer))
                break
            except WatchUnavailable as error:
                self._spare_watches(error)
        self._scans_ended = number
        await self._tell(self._scan)

    def _begin_watching(self) -> Watch | None:
        try:
            return self._watches.open(self.root)
        except WatchUnavailable as error:
            self.note = _note(error)
            return None

    def _spare_watches(self, error: WatchUnavailable) -> None:
        """What belongs to the root comes before what does not."""
        assert self._scan is not None
        if self._scan.end_left_out():
            logger.warning("%s: folders that are ignored are no longer watched: %s", self.root, error)
        else:
            self._stop_watching(error)

    def _stop_watching(self, error: WatchUnavailable) -> None:
        """`run` closes the watch, once nothing waits for it."""
        assert self._scan is not None
        self.note = _note(error)
        logger.warning("%s: %s", self.root, self.note)
        self._scan.stop_watching()
        self._watch = None
        self._watching.cancel()

    @property
    def everything_ignored(self) -> str | None:
        """A sentence for a root all of whose folders are ignored, with what brings them back."""
        return self.mostly_ignored if self.catch_all is not None and not self.catch_all.kept else None

    @property
    def mostly_ignored(self) -> str | None:
        """The same for one most of whose folders are, which may be a list of what belongs to it."""
        found = self.catch_all
        if found is None or found.left_out <= found.kept:
            return None
        which = f"{found.left_out} of {found.left_out + found.kept}" if found.kept else "all"
        return (
            f"Skipped: {which} top-level folders, ignored by {found.line}. To include them, put "
            "`ignored_paths: ['!/*']` into .serena/project.yml."
        )

    async def _tell(self, scan: TreeScan, *, heard: bool = False) -> None:
        """Takes findings over into `files` and `left_out`, and tells the listeners what differs; many in parts, so that
        whoever waits for something else gets a turn. Shielded, because what was found can't be found again.

        What was `heard` of may have changed although its stamp has not, if that was new when it was taken.
        """
        self.not_utf8 = scan.not_utf8()
        self.unreadable = scan.unreadable()
        self.catch_all = scan.ignores_everything()
        findings, left_out = scan.take(), scan.take_left_out()
        # A file that is ignored now, or no longer, goes before it comes: servers hear of both.
        self._tell_servers(scan, [Change(path, "created") for path in scan.take_new_folders()], by_other_names=False)
        gone = {path: None for path, stamp in left_out.items() if stamp is None}
        there = {path: stamp for path, stamp in left_out.items() if stamp is not None}
        with anyio.CancelScope(shield=True):
            for some, files, listeners in (
                (gone, self._left_out, self._servers_listeners),
                (findings, self._files, self._listeners),
                (there, self._left_out, self._servers_listeners),
            ):
                found = iter(some.items())
                while part := list(islice(found, TOLD_AT_ONCE)):
                    self._tell_part(scan, part, heard, files, listeners)
                    if len(part) == TOLD_AT_ONCE:
                        await anyio.lowlevel.checkpoint()

    def _tell_part(
        self,
        scan: TreeScan,
        findings: Iterable[tuple[str, Stamp | None]],
        heard: bool,
        files: dict[str, Stamp],
        listeners: Mapping[object, Listener],
    ) -> None:
        changes: list[Change] = []
        newest = time.time_ns() - CLOCK_NS
        for path, stamp in findings:
            known = files.get(path)
            if stamp == known and not (heard and stamp is not None and path in self._just_stamped):
                continue
            self._just_stamped.discard(path)
            if stamp is not None and max(stamp.mtime_ns, stamp.ctime_ns) > newest:
                self._just_stamped.add(path)
            if stamp is None:
                files.pop(path, None)
                changes.append(Change(path, "deleted"))
            else:
                files[path] = stamp
                is_new = known is None or scan.is_link(path)  # what is below its name may be all different
                changes.append(Change(path, "created" if is_new else "changed"))
        if files is self._files and changes:
            self._snapshot = None
            if any(change.kind != "changed" for change in changes):
                self._ordered = None
        self._call(listeners, changes)
        self._tell_servers(scan, changes, by_other_names=True)

    def _tell_servers(self, scan: TreeScan, changes: Sequence[Change], *, by_other_names: bool) -> None:
        """Tells what servers hear besides: by the names that files have by symlinks as well, or by these alone."""
        others = [Change(name, one.kind) for one in changes for name in scan.other_names(one.path)]
        self._call(self._servers_listeners, others if by_other_names else [*changes, *others])

    def _call(self, listeners: Mapping[object, Listener], changes: Sequence[Change]) -> None:
        if not changes or not self._scanned.is_set():
            return
        for listener in list(listeners.values()):
            try:
                listener(changes)
            except Exception:
                logger.exception("a listener failed on %d changes in %s", len(changes), self.root)


def _folders_of(path: str, known: Container[str]) -> list[str]:
    """The folders on the way to a file that are not among those that are known, the innermost first."""
    found: list[str] = []
    folder = path[: path.rfind("/") + 1]
    while folder not in known:
        found.append(folder)
        folder = folder[: folder.rfind("/", 0, -1) + 1]
    return found


def _created(path: str, known: set[str]) -> Iterable[Change]:
    """That a file is new, and before it the outermost of its folders that is; from then on they are known."""
    folders = _folders_of(path, known)
    known.update(folders)
    yield from (Change(folder, "created") for folder in folders[-1:])
    yield Change(path, "created")


def _examine(scan: TreeScan, heard: Iterable[Heard]) -> None:
    """Makes the scan examine each entry with events, once, as it is now."""
    entries: dict[tuple[str, str], None] = {}
    for folder, name, _, moved_away in heard:
        if moved_away:
            scan.forget(f"{folder.path}{name}/")
        entries[folder.path, name] = None
    for path, name in entries:
        folder = scan.folders.get(path)
        if folder is not None:
            scan.examine(folder, name)


def _look_everywhere(scan: TreeScan, make_outer: Callable[[], OuterRules]) -> None:
    if scan.root_is_another():
        scan.forget("")
    scan.look_everywhere(make_outer())


async def _in_thread(work: Callable[[], None]) -> None:
    """Shielded, because what was read from the queue can't be read again; bounded by the size of the tree. Not from the
    common pool of threads, whose other users may hang."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))


def _may_take_long(heard: Heard) -> bool:
    return heard.is_folder or heard.name in (IGNORE_FILE, ".git")


def _note(error: WatchUnavailable) -> str:
    return f"watching is not possible here ({error}); files are compared by stat"
