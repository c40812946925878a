"""Project: all operations on one root. Everything that must run where the files are stands behind it.

Its methods take and return plain data. Each read first passes the tree's barrier, so that an answer is never staler
than the call that asked for it; then the index or a language server answers. It knows no sessions, tools or MCP.
"""

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from serena_central.config.load import serena_home, settings_stamp
from serena_central.config.settings import ProjectSettings
from serena_central.core.allocator import give_back
from serena_central.core.errors import PathIgnored, PathNotFound, PathRefused, SymbolNotFound
from serena_central.core.pacing import paced
from serena_central.core.paths import expanded
from serena_central.core.quoting import as_name
from serena_central.editing.transaction import Applier
from serena_central.files.boundary import Access, from_shown, relative, relative_or_none, resolve_inside, shown
from serena_central.files.corpus import Corpora
from serena_central.files.path_watch import PathWatch
from serena_central.files.search import SearchRequest, SearchResult, Source, search
from serena_central.files.shared_trees import SharedTrees
from serena_central.files.text import FileText
from serena_central.files.tree import Change, FileTree, Seen
from serena_central.files.walk import is_utf8
from serena_central.files.watch import Watches
from serena_central.lsp.catalogue import catalogue, is_read
from serena_central.projects.editing.edit_effects import EditEffects
from serena_central.projects.editing.edit_records import AppliedEdit
from serena_central.projects.editing.edits import Edits
from serena_central.projects.languages.external_folders import ExternalFolders
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.memories import Memories
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.symbol_views import SymbolView, view_of
from serena_central.projects.refactoring.counterparts import Counterparts
from serena_central.projects.refactoring.name_conflicts import Naming
from serena_central.projects.refactoring.refactoring import Refactoring
from serena_central.projects.warming.project_warm_up import Warmed, warm
from serena_central.store.index_cache import IndexCache
from serena_central.symbols.finder import Finder, Found
from serena_central.symbols.index import Hit, IndexedFiles, SymbolIndex
from serena_central.symbols.indexing.incompleteness import Incompleteness
from serena_central.symbols.indexing.indexer import Indexer
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import FileSymbols, below, body_hashes

SAME_NAMES = 3
"""Files of one name that are listed where another path was meant."""

COMPARED_AFTER_S = 60.0
"""Comparing sources takes a language server some ten seconds, in which the index of a large project is filled."""

ATTEMPTS = 4
"""How often a file that changes during a question is read again."""


async def _not_told(edit: AppliedEdit) -> None:
    """Of what becomes of an edit, where no history is kept."""


class Told(NamedTuple):
    """What the language servers of a project were told when it was closed: they go on running, and hear nothing until
    it is open again."""

    roots: frozenset[Path]
    """Of these servers."""
    files: Seen
    outside: Mapping[Path, Seen]
    """Folders outside of the root that were followed, with their files."""
    is_needed: Callable[[], bool]
    """Whether any of the servers runs."""


class Project:
    """One root, its files, symbols and language servers. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        settings: ProjectSettings,
        languages: ProjectLanguages,
        cache: IndexCache | None = None,
        *,
        access: Access,
        watches: Watches,
        applier: Applier,
        edited: Callable[[AppliedEdit], None],
        amended: Callable[[AppliedEdit], Awaitable[None]] = _not_told,
        shared_trees: SharedTrees | None = None,
        corpora: Corpora | None = None,
        indexing: IndexingPolicy | None = None,
        path_watch: PathWatch | None = None,
    ) -> None:
        """`applier` writes edits, and `edited` is called for each; it must neither wait nor raise. `amended` is called
        for one that a hook added to. Without `shared_trees` language servers are not notified of files outside the
        root. Paths that `access` closes do not exist for callers. `corpora` keeps texts for searches."""
        self.root = root
        self.access = access
        self._corpora = corpora or Corpora()
        self.name = settings.project_name or as_name(root.name)
        self.settings = settings
        self.languages = languages
        self.tree = FileTree(
            root,
            watches,
            ignored_paths=settings.ignored_paths,
            ignore_all_files_in_gitignore=settings.ignore_all_files_in_gitignore,
            hidden=access.hides if access.reading else None,
            path_watch=path_watch,
            is_read=is_read,
        )
        languages.texts.follow(self.tree)
        self._external = ExternalFolders(root, self.tree, languages, shared_trees) if shared_trees else None
        self.index = SymbolIndex()
        self.indexer = Indexer(root, self.tree, self.index, languages, cache, indexing)
        self._finder = Finder(
            root, self.tree, self.index, self.indexer, encoding=settings.encoding, rebinds=languages.selection.rebinds
        )
        self.navigation = Navigation(root, self.tree, self.index, self.indexer, languages, access)
        self.memories = Memories(root, serena_home(), settings, applier, edited, access)
        self.edits = Edits(
            root,
            self.tree,
            applier,
            EditEffects(
                root,
                self.index,
                self.indexer,
                self.navigation,
                languages,
                self.read,
                diagnostics_s=settings.edit_diagnostics_s,
            ),
            read=self.read,
            settled=self.settled,
            declared=languages.syntax.declared,
            damage=languages.syntax.damage,
            applied=edited,
            amended=amended,
            written_outside=languages.written_outside,
            refuses_conflicts=settings.edit_conflicts == "refuse",
            encoding=settings.encoding,
            access=access,
        )
        possible = self.navigation.possible
        naming = Naming(self.tree, self.index, self.indexer, languages, possible)
        counterparts = Counterparts(self.tree, self.index, self.indexer, possible)
        self.refactoring = Refactoring(
            root, self.tree, self.edits, self.navigation, naming, counterparts, self.languages, self.index
        )
        self.restrictions: list[str] = []
        """What is held back because the root is not trusted: clauses for notes."""
        self.settings_problems: list[str] = []
        """What its author got wrong in its settings, so that it has no effect: one sentence each."""
        self.strangers_above: Path | None = None
        """What another user has put above the root, if that is why nothing of it is executed although it is trusted."""
        self.settings_stamp: object = settings_stamp(root)
        """Stamp of the files that the settings were read from; when it differs, the project is reopened."""
        self._installed = anyio.Event()
        self._batches = 0
        """Of changes, so far."""
        self._languages_in_use = -1, set[str]()
        """As of so many batches."""
        self._told: Told | None = None
        """As of the end of the project that was open before, until the servers are told what they have missed."""
        self.opened_at = time.time()
        self.last_used = time.time()

    async def run(self, told: Told | None = None, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Scans, watches and indexes until it is cancelled; started() when the files are known. `told` is that of the
        project that was open before on this root, whose `run` has ended."""
        self._told = told
        async with anyio.create_task_group() as tasks:
            await tasks.start(self.tree.run)
            self.tree.subscribe(self._changed)
            self.tree.subscribe(self._changed_for_servers, for_servers=True)
            await self._take_over()
            await self.languages.selection.look_at_scripts(self.tree.files)
            places = await self.languages.selection.by_place(list(self.tree.files))
            await self.languages.selection.count(places)
            self.languages.selection.on_woken = self.indexer.take_in
            await self.languages.builds.look_at(places)
            del places
            await self.indexer.load()
            self.indexer.on_filled = self._forget_texts
            tasks.start_soon(self.indexer.run)
            tasks.start_soon(self._compare)
            if self._external is not None:
                tasks.start_soon(self._external.run)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self.languages.forget_texts()
                with anyio.move_on_after(5, shield=True):
                    await self.indexer.save()

    async def _take_over(self) -> None:
        """Has the servers that were asked before hear of all changes: of further ones from the beginning."""
        told, self._told = self._told, None
        if told is not None:
            self.languages.take_over(told.roots)
            if self._external is not None:
                self._external.resume(told.outside)
            await self.tree.tell_since(told.files, self._missed)

    def _missed(self, changes: Sequence[Change]) -> None:
        self.languages.missed([self._as_on_disk(change) for change in changes])

    def _as_on_disk(self, change: Change) -> Change:
        """The change as it is for servers: what other settings hide from the project is there for them."""
        is_there = change.kind == "deleted" and os.path.lexists(self.root / change.path)
        return Change(change.path, "changed") if is_there else change

    def told(self) -> Told | None:
        """What its servers were told, once `run` has ended; None if none of them runs."""
        told = self._told
        if told is None:
            outside: Mapping[Path, Seen] = self._external.seen if self._external is not None else {}
            told = Told(self.languages.roots, self.tree.seen(), outside, self.languages.hearing())
        return told if told.is_needed() else None

    async def _forget_texts(self) -> None:
        """What the background has read is read again when somebody asks for it: it was the text of any file."""
        self.languages.forget_texts()
        await anyio.to_thread.run_sync(give_back)

    async def _compare(self) -> None:
        """Has files read by who knows them better; again when a server comes to be there."""
        while True:
            self._installed = anyio.Event()
            await anyio.sleep(COMPARED_AFTER_S)
            if await self.languages.compare_builds():
                self.indexer.doubt(self.tree.files)
            await self._installed.wait()

    def _changed(self, changes: Sequence[Change]) -> None:
        self._batches += 1
        with self._noticing_builds(changes):
            # Servers hear of a change before the index asks them about it.
            moved = self.languages.changed(changes)
            self.indexer.changed(changes)
            if moved:
                self.indexer.doubt(moved)
        self._finder.changed(changes)

    def _changed_for_servers(self, changes: Sequence[Change]) -> None:
        """Servers read what is none of the project's, as far as they import it; the index does not. A folder is nothing
        for the index either, while ty finds a package that was missing only when it hears of its folder."""
        with self._noticing_builds(changes):
            self.languages.changed_for_servers(changes)

    @contextmanager
    def _noticing_builds(self, changes: Sequence[Change]) -> Generator[None]:
        """Has all files indexed again of which a change may tell how they are built."""
        by_builds = self.languages.builds.knows_builds
        yield
        if by_builds and any(self.languages.is_marker(change.path) for change in changes):
            self.indexer.doubt(self.tree.files)

    async def warm(self) -> list[Warmed]:
        """Starts the language servers, waits until they are ready, and fills the index; returns the outcome of each."""
        await self.fresh()
        return await warm(self.name, list(self.tree.files), self.languages, self.indexer)

    def index_again(self) -> None:
        """Indexes every file again, in the background."""
        self.indexer.ask_again()

    def server_installed(self, name: str) -> None:
        """A language server that was missing is there now: it is asked about its files."""
        self.languages.installed(name)
        self.indexer.doubt(self.tree.files)
        self._installed.set()

    def server_started(self, root: Path) -> None:
        """A language server has started, for whomever: it is asked what is known by syntax."""
        if root in self.languages.roots:
            self.indexer.improve()

    # --- files ---------------------------------------------------------------------------------------------------

    async def fresh(self) -> None:
        """The barrier: afterwards all that was on disk before this call has been seen."""
        self.last_used = time.time()
        await self.tree.fresh()
        if self._external is not None:
            if self._external.behind:
                await self._external.catch_up()
            # Afterwards servers hear of all that was on disk there, too, before they are asked.
            for tree in self._external.trees:
                await tree.fresh()
        self.languages.look_at_environment()

    @property
    def state(self) -> tuple[float, int]:
        """Equal as long as nothing has changed that answers about the project depend on; true behind the barrier."""
        return self.opened_at, self.languages.changes

    def locate(self, path: str) -> str:
        """The root-relative form of a path in a call (relative, absolute, or `~/…`); `""` for the root itself.

        Raises:
            PathError: it leads outside, or nothing usable is there.
        """
        try:
            inside = self._resolved(path)
        except PathNotFound as error:
            if error.close:
                raise
            raise PathNotFound(path, self._of_the_same_name(path)) from None
        return "" if inside == "." else inside

    def _of_the_same_name(self, path: str) -> list[str]:
        """Files in other folders, some at most."""
        name = path.rpartition("/")[2]
        below = f"/{name}"
        found = (other for other in self.tree.files if other == name or other.endswith(below))
        return list(map(shown, islice(found, SAME_NAMES))) if name else []

    def _resolved(self, path: str, *, must_exist: bool = True) -> str:
        """Raises PathError; for what is closed also by the name that was asked for, whatever it leads to."""
        asked = str(expanded(path)) if path.startswith("~/") else from_shown(self.root, path)
        if self.access.reading is None:
            return relative(self.root, resolve_inside(self.root, asked, must_exist=must_exist))
        named = relative_or_none(str(self.root), os.path.normpath(self.root / asked)) if "\0" not in asked else None
        if named is not None:
            self.access.check_reading(named)
        hidden = self.access.hides
        inside = relative(self.root, resolve_inside(self.root, asked, must_exist=must_exist, hidden=hidden))
        self.access.check_reading(inside)
        return inside

    def locate_file(self, path: str) -> str:
        """Like `locate`, for a path that must be a file."""
        inside = self.locate(path)
        if (self.root / inside).is_dir():
            raise PathRefused(f"{path!r} is a folder; a file is required.")
        return inside

    def locate_new_file(self, path: str) -> str:
        """Like `locate_file`, for a file that may not be there yet."""
        inside = self._resolved(path, must_exist=False)
        if (self.root / inside).is_dir():
            raise PathRefused(f"{path!r} is a folder; a file is required.")
        return inside

    def locate_code(self, path: str) -> str:
        """Like `locate_file`, for a file that a language server must know."""
        inside = self.locate_file(path)
        self._check_code(inside)
        return inside

    def _check_code(self, inside: str) -> None:
        if self.languages.spec_for(inside) is None:
            raise PathRefused(f"No language server supports {inside!r}. Use read_file and search_for_pattern instead.")

    def named_file(self, path: str) -> str | None:
        """The root-relative form of a path that is a file; None for a folder, or no path at all.

        Raises:
            PathError
        """
        inside = self.locate(path) if path else ""
        return inside if (self.root / inside).is_file() else None

    def locate_folder(self, path: str) -> str:
        """Like `locate`, for a path that must be a folder; `""` for the root."""
        inside = self.locate(path)
        if not (self.root / inside).is_dir():
            raise PathRefused(f"{path!r} is a file; a folder is required.")
        return inside

    async def languages_in_use(self) -> set[str]:
        """Languages of the files that are there; looked through once, until some file changes."""
        batches, found = self._languages_in_use
        if batches != self._batches:
            batches, found = self._batches, set[str]()
            async for path in paced(list(self.tree.files)):
                language = self.languages.language_of(path)
                if language is not None:
                    found.add(language)
            self._languages_in_use = batches, found
        return found

    async def read_by_name_alone(self, within: str) -> Counter[str]:
        """Language → how many files of it at or below a path have symbols that no search of the project finds."""
        inside = self.locate(within) if within else ""
        prefix = inside + "/" if inside else ""
        count: Counter[str] = Counter()
        async for path in paced(list(self.tree.files)):
            if not path.startswith(prefix) or self.languages.selection.is_configuration(path):
                continue
            if not self.languages.is_searched(path):
                readable = self.languages.spec_for(path) is not None or self.languages.grammar(path) is not None
                language = self.languages.language_of(path) if readable else None
                if language is not None:
                    count[catalogue().languages[language].title] += 1
        return count

    async def servers_not_run(self) -> set[str]:
        """Servers of the languages in use that are not run, since they would execute code that is not trusted."""
        return self.languages.availability.not_run(await self.languages_in_use())

    async def read(self, path: str) -> FileText:
        """Reads a root-relative file in the project's encoding.

        Raises:
            PathError
        """
        return await self.languages.fetch(self.root / path)

    async def search(self, paths: Iterable[str], request: SearchRequest) -> SearchResult:
        """Searches root-relative files, as they were at the last `fresh()` or are now.

        Raises:
            InvalidArguments: a pattern or glob that is not well-formed.
        """
        corpus = self._corpora.of(self.root)
        found = await search(self.root, paths, request, source=Source(corpus, self.tree.snapshot))
        if unheard := corpus.unheard():
            await self.tree.examine(unheard)
        return found

    def _within(self, path: str) -> str | None:
        """Where to search for symbols: a file that can have some, or a folder; None for the whole root."""
        if not path:
            return None
        inside = self.locate(path)
        if (self.root / inside).is_file():
            self._check_indexable(inside)
        return inside or None

    # --- symbols -------------------------------------------------------------------------------------------------

    async def symbols_of(
        self, paths: Sequence[str], *, patient: bool = True
    ) -> tuple[IndexedFiles, list[Incompleteness]]:
        """Symbols per root-relative file, for those that could be had, unless `patient` those that are known soon; and
        what could not."""
        began = anyio.current_time()
        attempts_left = ATTEMPTS
        while True:
            if patient:
                gaps = await self.indexer.ensure(paths)
            else:
                gaps = await self.indexer.ensure_in_time(paths, began=began)
            known = [path for path in paths if path in self.index]
            files = await self.index.files(known)
            if len(files) == len(known):
                return files, gaps
            # Some changed while others had their turn: they are asked about again.
            attempts_left -= 1
            if not attempts_left:
                return files, self.indexer.gaps(paths)

    async def overview(self, path: str, *, patient: bool = False) -> tuple[IndexedFiles, list[Incompleteness]]:
        """Symbols of a file, or of every file below a folder: what is known soon, or, if `patient`, of all files.

        Raises:
            PathError: the path can't be used, or it is a file that no language server knows.
        """
        await self.fresh()
        inside = self.locate(path)
        if (self.root / inside).is_file():
            self._check_indexable(inside)
            files, gaps = await self.symbols_of([inside], patient=patient)
            if not files and not gaps:
                raise PathNotFound(path)  # gone since it was located
            if not files:
                raise PathRefused(f"{path!r} has no symbols available: {gaps[0].reason}")
            return files, gaps
        below = self.tree.below(inside)
        searched = [file async for file in paced(below) if self.languages.is_searched(file)]
        return await self.symbols_of(searched, patient=patient)

    def check_searched(self, path: str) -> None:
        """Raises PathIgnored for a root-relative path that is ignored."""
        if path and self.tree.is_ignored(path):
            raise PathIgnored(path, str(self.root))

    def _check_indexable(self, path: str) -> None:
        if not is_utf8(path):
            raise PathRefused(f"{path!r} has a name that is not UTF-8. read_file can read it.")
        if path not in self.tree.files:
            raise PathRefused(
                f"{path!r} is ignored (by git, by ignored_paths, as a nested repository or a build folder). "
                "read_file can read it."
            )
        self._check_code(path)
        self.languages.selection.asked_about(path)

    async def find(self, pattern: str, within: str = "", *, substring: bool = False) -> Found:
        """Symbols whose name path fits, in the project or within a file or folder."""
        await self.fresh()
        return await self._finder.find(parse_pattern(pattern, substring=substring), self._within(within))

    async def near(self, pattern: str, within: str = "") -> list[str]:
        """Symbols that may be meant where nothing fits a pattern (`Finder.near`)."""
        return await self._finder.near(parse_pattern(pattern), self._within(within))

    async def find_one(self, name_path: str, within: str = "", *, one_definition: bool = False) -> Hit:
        """Resolves one symbol; `one_definition` as in `Finder.find_one`.

        Raises:
            SymbolNotFound, AmbiguousSymbol, PathError
        """
        await self.fresh()
        pattern = parse_pattern(name_path)
        return await self._finder.find_one(pattern, self._within(within), one_definition=one_definition)

    async def view(self, hit: Hit, *, body: bool = False, info: bool = False, depth: int = 0) -> SymbolView:
        """The symbol as it is on disk now; its text and positions belong together."""
        if not body:
            return view_of(hit, depth, info=await self.navigation.hover(hit) if info else None)
        hit, read = await self.settled(hit.path, hit.name_path)
        hashes = body_hashes(read.text, hit.file, below(hit.file, hit.place))
        return view_of(hit, depth, body=read.text.slice(hit.symbol.range), hashes=hashes, digest=read.digest)

    def symbols_in(self, path: str, read: FileText) -> FileSymbols | None:
        """The symbols of a text that was just read, if they are known already."""
        return self.index.of_text(path, read.stamp)

    async def settled(self, path: str, name_path: str) -> tuple[Hit, FileText]:
        """A symbol and its file's text, both of the same moment, however often the file changes meanwhile.

        Raises:
            SymbolNotFound: the file, as it is now, has no symbol of exactly this name path.
            PathError: it can't be read, or does not settle.
        """
        for _ in range(ATTEMPTS):
            await self.indexer.settle()
            read = await self.read(path)
            entry = self.index.entry(path)
            file = self.index.of_text(path, read.stamp)
            if file is not None:
                place = file.place_of(name_path)
                if place is None:
                    raise SymbolNotFound(name_path, path)
                return Hit(path, file, place), read
            await self.tree.fresh()
            if entry is not None and self.index.entry(path) is entry:
                # No event came (a change through a hard link): the stamps differ, which is reason enough.
                self._changed([Change(path, "changed")])
            gaps = await self.indexer.ensure([path])
            if gaps and self.indexer.gave_up(path):
                raise PathRefused(f"{path!r} has no symbols available: {gaps[0].reason}")
        raise PathRefused(f"{path!r} keeps changing. Retry when the file no longer changes.")
