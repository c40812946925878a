"""Edits the files of one project: a planned change is written only if the text it was planned on is still there.

The way of every edit: its place in the files' queue → the tree's barrier → read the file as it is on disk → find the
symbol in that very text → plan → write → let tree, language servers and index see it, before anything else is answered
→ leave the queue → what it broke. An outside writer makes the plan start again, and so does whoever writes another file
that the plan relied on. It knows authors as plain data, and no sessions.
"""

import logging
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import (
    EditConflict,
    EditRefused,
    FileChanged,
    PathNotFound,
    PathRefused,
    SerenaCentralError,
    StoreError,
)
from serena_central.core.groups import only_cause
from serena_central.core.text import Position, Range, Text
from serena_central.editing.change import Author, FileChange
from serena_central.editing.plan import TextEdit, apply_edits, with_newlines
from serena_central.editing.replacing import Mode
from serena_central.editing.transaction import Applier, Written
from serena_central.files.boundary import Access
from serena_central.files.text import DEFAULT_ENCODING, MARK, FileText, read_text
from serena_central.files.tree import FileTree
from serena_central.projects.editing.blame import Blame, edits_of
from serena_central.projects.editing.bulk_replacement import Found, Occurrence, changes_of, check_count, find
from serena_central.projects.editing.conflicts import WHOLE_FILE, ConflictGuard
from serena_central.projects.editing.edit_effects import NO_EFFECT, Consequences, EditEffects
from serena_central.projects.editing.edit_queue import EditQueue, Turn
from serena_central.projects.editing.edit_records import (
    AppliedEdit,
    ChangedFile,
    Recorded,
    check_targets,
    differs,
    new_edit_id,
)
from serena_central.projects.editing.following_changes import FollowingChanges, Made
from serena_central.projects.editing.joint_edits import (
    Check,
    check_allowed,
    check_approved,
    edit_watch,
    learn_before,
    nothing_to_check,
    write_edit,
)
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import Symbol, below, kind_numbers
from serena_central.symbols.syntax.messages import Declared, SyntaxEdit

logger = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 8
"""How often an edit is planned because somebody outside wrote the file meanwhile."""

COMPARED_AT_ONCE = 8
"""Changed files whose differences are made on the event loop's thread: 0.1 to 1 ms each."""

_VALUES = kind_numbers(["Constant", "EnumMember", "Field", "Property", "Variable"])

_OF_LISTS = kind_numbers(["EnumMember"])
"""What stands between signs that whole lines beside it may lack, or come behind: `A, B;`."""

Way = Literal["insert", "replace", "delete"]
"""What an edit does with a symbol."""

NOTHING_SEEN: Mapping[str, str] = MappingProxyType({})


class Meant(NamedTuple):
    """A symbol that an author means, and what the author knows of it: hashes of bodies (symbols/symbol.py), of the
    symbol and of those in it, by name path. What it holds nothing of is not compared."""

    path: str
    name_path: str
    seen: Mapping[str, str] = NOTHING_SEEN


class Site(NamedTuple):
    """Where a symbol stands: its file's text as it is on disk, and its place in that very text."""

    hit: Hit
    read: FileText
    declared: Declared | None = None
    """What the syntax says of the symbol's range."""

    @property
    def text(self) -> Text:
        return self.read.text

    @property
    def container(self) -> Symbol | None:
        """The symbol of this file that it is in."""
        place = self.hit.symbol.container
        return self.hit.file.symbols[place] if place >= 0 else None

    def check_whole(self) -> None:
        """Refuses to overwrite or delete what may be a part of a definition only, its beginning left behind.

        Raises:
            EditRefused
        """
        symbol = self.hit.symbol
        start, end = symbol.range.start, symbol.range.end
        before = self.text.line(start.line0)[: start.column]
        is_name_alone = self.text.slice(Range(start, end)) == symbol.name
        # fortls ends a definition where its last line begins, which others mean to be the one behind it.
        is_end_open = end.column == 0 and bool(self.text.line(end.line0).strip())
        if symbol.flat and (before.strip() or is_name_alone or is_end_open):
            raise self.no_declaration()

    def others_in(self, span: Range) -> Iterator[str]:
        """Names that a range defines beside the symbol and what is inside of it."""
        file, place, own = self.hit.file, self.hit.place, self.hit.symbol
        inside = set(below(file, place))
        for number, other in enumerate(file.symbols):
            at = other.name_position
            if number in inside or not span.start <= at < span.end or other.name == own.name:
                continue
            end = Position(at.line0, at.column + len(other.name))
            if other.container in inside or self.text.slice(Range(at, end)) != other.name:
                inside.add(number)  # what has no name in the text is a part of what has one
            elif at < own.name_position or own.kind in _VALUES:
                yield other.name

    def no_declaration(self) -> EditRefused:
        start = self.hit.symbol.range.start
        return EditRefused(
            f"Nothing was changed: the extent of the definition of {self.hit.name_path} is unknown. The "
            f"language server places it in {self.hit.path}:{start.line0}, column {start.column}. "
            "Edit it as text (replace_content)."
        )


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """What an edit did. `id` is None if nothing was written: a dry run, which has a unified `diff`, or no difference.
    `conflicts` are those that the settings let pass."""

    id: str | None
    files: list[ChangedFile]
    diff: str = ""
    consequences: Consequences = Consequences()
    conflicts: list[EditConflict] = []


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement in many files. `count`: occurrences that were (or would be) replaced; `skipped`: files that could
    not be read as text."""

    edited: Edited
    count: int
    occurrences: list[Occurrence]
    skipped: list[str]


Plan = Callable[[], Awaitable[Sequence[FileChange]]]
"""Makes the changes from what is on disk at the moment of the call; called again when that has changed, which it may
say itself by raising FileChanged."""

Ground = Callable[[], AbstractAsyncContextManager[Check]]
"""What a plan relies on without changing it. Is entered before each plan, and gives what is called just before that is
written: it raises FileChanged for a file that the plan relied on."""


@asynccontextmanager
async def _nothing() -> AsyncGenerator[Check]:
    """For a plan that is right whatever happens to files that it doesn't change."""
    yield nothing_to_check


class Edits:
    """Edits of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        applier: Applier,
        effects: EditEffects,
        *,
        refuses_conflicts: bool,
        encoding: str | None,
        read: Callable[[str], Awaitable[FileText]],
        settled: Callable[[str, str], Awaitable[tuple[Hit, FileText]]],
        declared: Callable[[str, Text, Symbol], Awaitable[Declared | None]],
        damage: Callable[[str, Text, SyntaxEdit], Awaitable[str]],
        applied: Callable[[AppliedEdit], None],
        amended: Callable[[AppliedEdit], Awaitable[None]],
        written_outside: Callable[[Sequence[Path]], None],
        access: Access,
    ) -> None:
        """`read` reads a root-relative file; `settled` gives the symbol of a path and name path together with the text
        that it stands in; `declared` gives what the syntax of such a text says of a symbol's range (None: nothing);
        `damage` what an edit breaks in that syntax; `applied` is called for every edit, and `written_outside` for the
        files that its parts in other projects wrote, before its effects are collected. Both must neither wait nor
        raise. `amended` is called for an edit that grew by what followed it."""
        self._root = root
        self._tree = tree
        self._applier = applier
        self._effects = effects
        self._read = read
        self._settled = settled
        self._declared = declared
        self._damage = damage
        self._applied = applied
        self._written_outside = written_outside
        self._access = access
        self._refuses = refuses_conflicts
        self._encoding = encoding or DEFAULT_ENCODING
        self._guard = ConflictGuard()
        self._queue = EditQueue(root, applier.planned)
        self._following = FollowingChanges(
            root, tree, applier, effects, self._guard, self._queue, read=read, applied=applied, amended=amended
        )

    async def change_symbol(
        self,
        within: str | None,
        find: Callable[[], Awaitable[Meant]],
        plan: Callable[[Site], TextEdit],
        author: Author,
        *,
        way: Way = "insert",
        dry_run: bool = False,
        ground: Ground | None = None,
        check: Callable[[Site, str], Awaitable[None]] | None = None,
    ) -> tuple[Meant, Edited]:
        """Changes the file of one symbol by an edit that is planned on its place; tells which it was. `find` looks for
        it, after the barrier, in the file `within` if there is one; `plan` may raise, to refuse, and so may `check`,
        which gets the file's new text when nothing else is left that speaks against it. With a `ground` it
        takes long to find: the file is held from the write on, or if others hold it then, from before the next look.

        Raises:
            SymbolNotFound: it is gone.
            EditConflict: it is not any more what the author knows, and the settings say to refuse.
            EditRefused: by syntax, its range is no whole declaration, or what stands around it would be broken.
            PathError, EditError, InvalidArguments: the file can't be changed.
        """
        found: list[Meant] = []
        conflicts: list[EditConflict] = []

        async def changes() -> list[FileChange]:
            found[:] = [meant := await find()]
            site, foreseen = await self._by_syntax(await self.site(meant.path, meant.name_path), plan, way)
            if site.declared is not None and not site.declared.is_whole:
                raise site.no_declaration()
            conflicts[:] = await self.conflicts(site, meant.seen, author)
            edit = plan(site)
            if way != "insert" or site.hit.symbol.kind in _OF_LISTS:
                if foreseen is None or foreseen.edit != edit:
                    foreseen = _Foreseen(edit, await self._broken_by(site, edit, way))
                _check_rest(site, foreseen, way)
            after = apply_edits(site.text, [edit])
            if check is not None:
                await check(site, after)
            return [FileChange(self._root / meant.path, site.read, after)]

        held = [] if ground else [(await find()).path if within is None else within]
        edited = await self.change_files(
            held,
            changes,
            author,
            dry_run=dry_run,
            wrote=lambda: found[0].name_path if way == "replace" else None,
            ground=ground or _nothing,
        )
        return found[0], msgspec.structs.replace(edited, conflicts=conflicts)

    async def _by_syntax(
        self, site: Site, plan: Callable[[Site], TextEdit], way: Way
    ) -> "tuple[Site, _Foreseen | None]":
        """A site with what the syntax says of the symbol; and what the edit would break that is planned on it before
        that is known, as nearly all replacements turn out: the parser answers both in one go."""
        foreseen: _Foreseen | None = None

        async def foresee() -> None:
            nonlocal foreseen
            with suppress(SerenaCentralError):  # it is planned again, and refused then
                edit = plan(site)
                foreseen = _Foreseen(edit, await self._broken_by(site, edit, way))

        declared: Declared | None = None
        try:
            async with anyio.create_task_group() as tasks:
                if way == "replace":
                    tasks.start_soon(foresee)
                declared = await self._declared(site.hit.path, site.text, site.hit.symbol)
        except BaseExceptionGroup as group:
            raise only_cause(group) from group
        return site._replace(declared=declared), foreseen

    async def _broken_by(self, site: Site, edit: TextEdit, way: Way) -> str:
        """What an edit would break in the syntax of what stands around it; empty if nothing."""
        if "\0" in edit.new_text:
            return ""  # what writes it refuses it
        return await self._damage(site.hit.path, site.text, SyntaxEdit(*edit, way == "delete"))

    async def site(self, path: str, name_path: str) -> Site:
        """A symbol and its file's text as it is on disk, both of the same moment.

        Raises:
            SymbolNotFound, PathError
        """
        return Site(*await self._settled(path, name_path))

    async def conflicts(self, site: Site, seen: Mapping[str, str], author: Author) -> list[EditConflict]:
        """What stands against changing a symbol; `seen` as in `change_symbol`.

        Raises:
            EditConflict: something does, and the setting `edit_conflicts` says to refuse.
        """
        conflict = self._guard.conflict(author, site.hit, site.text, site.read.stamp, seen=seen)
        if conflict is not None:
            blame = await self._blame(site.hit.path, site.read, author)
            check = partial(self._guard.conflict, author, site.hit, site.text, site.read.stamp, seen=seen, blame=blame)
            conflict = await anyio.to_thread.run_sync(check)
        return self._let_pass(conflict)

    async def _file_conflicts(self, path: str, read: FileText, seen: str | None, author: Author) -> list[EditConflict]:
        conflict = self._guard.file_conflict(author, path, read, seen)
        if conflict is not None:
            blame = await self._blame(path, read, author)
            conflict = self._guard.file_conflict(author, path, read, seen, blame=blame)
        return self._let_pass(conflict)

    async def _blame(self, path: str, read: FileText, author: Author) -> Blame:
        """Whose edits made a file what it is. Asked only when an edit would be refused: it reads the journal."""
        try:
            past = await anyio.to_thread.run_sync(
                lambda: edits_of(self._applier.journal.past(), f"{self._root}/{path}"), abandon_on_cancel=True
            )
        except StoreError as error:
            logger.warning("cannot determine who edited %s: %s", path, error)
            past = []
        return Blame(read, past, author.session)

    def _let_pass(self, conflict: EditConflict | None) -> list[EditConflict]:
        if conflict is not None and self._refuses:
            raise conflict
        return [conflict] if conflict is not None else []

    async def change_text(
        self,
        path: str,
        plan: Callable[[FileText], str],
        author: Author,
        *,
        seen: str | None = None,
        dry_run: bool = False,
    ) -> Edited:
        """Changes one file, root-relative, to what `plan` makes of it. `plan` may raise, to refuse. `seen` is the
        digest of the content that the author knows; None: nothing is compared.

        Raises:
            EditConflict: the file is not any more what the author knows, and the settings say to refuse.
            PathError, EditError, InvalidArguments: the file can't be changed.
        """
        conflicts: list[EditConflict] = []

        async def changes() -> list[FileChange]:
            read = await self._read(path)
            conflicts[:] = await self._file_conflicts(path, read, seen, author)
            return [FileChange(self._root / path, read, plan(read))]

        edited = await self.change_files([path], changes, author, dry_run=dry_run)
        return msgspec.structs.replace(edited, conflicts=conflicts)

    async def create_file(
        self, path: str, content: str, author: Author, *, seen: str | None = None, dry_run: bool = False
    ) -> Edited:
        """Makes a file, root-relative, hold `content`, whatever it held; `seen` and errors as in `change_text`."""
        conflicts: list[EditConflict] = []

        async def changes() -> list[FileChange]:
            conflicts.clear()
            try:
                read = await self._read(path)
            except PathNotFound:
                return [FileChange(self._root / path, None, content, encoding=self._encoding)]
            conflicts.extend(await self._file_conflicts(path, read, seen, author))
            after = with_newlines(content.removeprefix(MARK) if read.bom else content, read.newline)
            return [FileChange(self._root / path, read, after)]

        edited = await self.change_files([path], changes, author, dry_run=dry_run, wrote=lambda: WHOLE_FILE)
        return msgspec.structs.replace(edited, conflicts=conflicts)

    async def replace_in_files(
        self,
        paths: Sequence[str],
        needle: str,
        repl: str,
        mode: Mode,
        author: Author,
        *,
        wanted: Collection[str] | None = None,
        expected: int | None = None,
        dry_run: bool = False,
    ) -> Replaced:
        """Replaces text in all of these files, or in none; only the `wanted` occurrences, if there are as many as
        `expected`.

        Raises:
            InvalidArguments, EditError, PathError
        """
        found = Found([], [])
        stop = threading.Event()

        def look() -> Found:
            read = partial(read_text, encoding=self._encoding)
            return find(paths, lambda path: read(self._root / path), needle, repl, mode, cancelled=stop.is_set)

        async def changes() -> list[FileChange]:
            nonlocal found
            found = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
            check_count(found.occurrences, expected)
            return changes_of(self._root, found, wanted)

        try:
            edited = await self.change_files([], changes, author, dry_run=dry_run)
        finally:
            stop.set()
        count = len(found.occurrences) if wanted is None else len(wanted)
        return Replaced(edited=edited, count=count, occurrences=found.occurrences, skipped=found.skipped)

    async def change_files(
        self,
        paths: Sequence[str],
        plan: Plan,
        author: Author,
        *,
        dry_run: bool = False,
        undoes: str | None = None,
        wrote: Callable[[], str | None] = lambda: None,
        ground: Ground = _nothing,
    ) -> Edited:
        """Makes all planned changes, or none. `paths` are the files that will be changed, as far as they are known
        before the plan: nobody else in this server changes them meanwhile. `undoes` names the edit that this one
        undoes; `wrote` returns, after the plan, which symbol the author writes as a whole ("": the file). `ground`
        is for a plan that relies on other files than it changes."""
        if not dry_run:
            await self._effects.learn_errors([path for path in paths if not self.queued(path)])
        needed = frozenset(paths)
        watch = edit_watch(self._root)
        intent = _Intent(author, dry_run=dry_run, undoes=undoes, wrote=wrote, ground=ground)
        while True:
            async with self._queue.turn(needed) as turn:
                outcome = await self._attempts(turn, plan, intent)
                if isinstance(outcome, Made) and watch is not None and watch.follow_up is not None:
                    outcome = await self._following.run(outcome, watch.follow_up)
            if isinstance(outcome, frozenset):
                needed |= outcome
            elif isinstance(outcome, Edited):
                return outcome
            else:
                break
        if watch is not None and watch.later is not None:
            watch.later(outcome.edit, partial(self._follow_later, outcome))
        # No await between the end of an edit that was made and its being shielded again.
        return await self._told(outcome)

    async def _attempts(self, turn: Turn, plan: Plan, intent: "_Intent") -> "Edited | Made | frozenset[str]":
        """Plans and writes while the turn's files are its own; or tells the files that it needs and others have."""
        path, files = "", frozenset[str]()
        for _ in range(ATTEMPTS):
            await self._tree.fresh()
            try:
                async with intent.ground() as recheck:
                    changes = [change for change in await plan() if differs(change)]
                    check_targets(changes)
                    if changes:
                        check_allowed()
                        for file in self._files_of(changes):
                            self._access.check_editing(file)
                        check_approved(self._root, self._files_of(changes))
                    if intent.dry_run or not changes:
                        return await self._planned(changes)
                    files = self._files_of(changes)
                    if turn.is_empty:  # all that is edited was unknown before the plan: nobody is kept waiting
                        await self._effects.learn_errors(files)
                    if not turn.add_free(files):
                        return files
                    await learn_before(self._root, files)
                    return await self._make(changes, intent, recheck)
            except FileChanged as error:
                path = self._shown(Path(error.path))
                if not turn.holds(path):  # it may have been another edit of this server
                    return files | {path}
        raise PathRefused(
            f"{path!r} keeps changing: a program outside this server writes it repeatedly. Nothing was "
            "changed; retry when the file no longer changes."
        )

    def queued(self, path: str) -> int:
        """How many edits of a root-relative file are being made, or wait for their turn."""
        return self._queue.queued(path)

    def check_editable(self, path: str) -> None:
        """Raises PathRefused for a root-relative path that is ignored: changes there are not tracked."""
        if self._tree.is_ignored(path):
            raise PathRefused(
                f"{path!r} is ignored (by git, by ignored_paths, or as a nested repository) and cannot be edited."
            )

    def _files_of(self, changes: Sequence[FileChange]) -> frozenset[str]:
        both = (path for change in changes for path in (change.path, change.moved_to) if path is not None)
        return frozenset(map(self._shown, both))

    async def _planned(self, changes: Sequence[FileChange]) -> Edited:
        def edited() -> Edited:
            recorded = Recorded.of(self._root, changes)
            return Edited(id=None, files=recorded.files(), diff=recorded.diff())

        return await _compared(changes, edited)

    async def _make(self, changes: Sequence[FileChange], intent: "_Intent", recheck: Check) -> Made:
        """Writes, and notifies those who plan on these files next of the result."""
        author = intent.author
        recorded = await _compared(changes, lambda: Recorded.of(self._root, changes))
        edit = AppliedEdit(
            id=new_edit_id(),
            at=time.time(),
            author=author,
            root=str(self._root),
            files=recorded.files(),
            patches=recorded.patches(),
            undoes=intent.undoes,
            wrote=intent.wrote(),
        )
        before, effect = self._effects.before(changes), NO_EFFECT
        written: Mapping[Path, Written] = {}
        with anyio.CancelScope(shield=True):  # from the first file on, until it is known what became of it
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._effects.look_ahead, changes, before)
                    edit, written = await write_edit(self._applier, self._applied, changes, edit, recheck)
            except BaseExceptionGroup as group:
                raise only_cause(group) from group
            self._written_outside([path for path in written if not path.is_relative_to(self._root)])
            await self._tree.fresh()
            effect = await self._effects.effect(changes, before, written)
            self._guard.note(author, edit.at, effect.bodies)
        return Made(edit, effect, changes, before, written)

    async def _follow_later(self, made: Made, work: Callable[[], Awaitable[None]]) -> Edited:
        made = await self._following.run_later(made, work)
        return Edited(
            id=made.edit.id,
            files=made.edit.files,
            consequences=Consequences(bodies=made.effect.bodies, unknown=made.effect.unknown),
        )

    async def _told(self, made: Made) -> Edited:
        """The answer to an edit that was made; only its author waits for it."""
        consequences = Consequences()
        with anyio.CancelScope(shield=True):  # bounded by the wait for diagnostics
            consequences = await self._effects.consequences(made.effect, lambda path: self.queued(path) > 0)
        return Edited(id=made.edit.id, files=made.edit.files, consequences=consequences)

    def _shown(self, path: Path) -> str:
        """Root-relative; absolute outside of the root, where a plan may rely on files."""
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)


async def _compared(changes: Sequence[FileChange], compare: Callable[[], T]) -> T:
    """What `compare` makes of changes, in a thread if they are many."""
    return compare() if len(changes) <= COMPARED_AT_ONCE else await anyio.to_thread.run_sync(compare)


class _Foreseen(NamedTuple):
    """An edit, and what it would break."""

    edit: TextEdit
    problem: str


def _check_rest(site: Site, foreseen: _Foreseen, way: Way) -> None:
    """Raises EditRefused for an edit that would break the syntax of what stands around it."""
    if foreseen.problem:
        hit, edit = site.hit, foreseen.edit
        if way == "insert":
            what = f"this were inserted in {hit.path}:{edit.range.start.line0}"
        else:
            done = "deleted" if way == "delete" else "replaced"
            what = f"{hit.name_path} were {done} in {hit.path}:{hit.symbol.range.start.line0}"
        raise EditRefused(
            f"Nothing was changed: if {what}, {foreseen.problem}. Read the surrounding lines and edit them as text "
            "(replace_content)."
        )


class _Intent(NamedTuple):
    """Who edits, and how: see `Edits.change_files`."""

    author: Author
    dry_run: bool
    undoes: str | None
    wrote: Callable[[], str | None]
    ground: Ground
