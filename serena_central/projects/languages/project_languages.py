"""The languages of one project: selects the server for a file and reaches it through the pool.

It joins the selection (names, settings), what can run and where (`server_availability`) and the
pool (processes), and forwards what the tree saw to every server that was ever asked for this project. It knows no
symbols.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread

from serena_central.core.errors import LanguageServerError, RequestFailed, ServerNotInstalled
from serena_central.core.places import Places
from serena_central.core.text import Text
from serena_central.files.boundary import Access
from serena_central.files.path_watch import PathWatch
from serena_central.files.text import FileText
from serena_central.files.tree import Change
from serena_central.lsp.answers import DocumentSymbol, FileEvent
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.roots import ProjectDependencies, ProjectPython
from serena_central.pool.key import WantedServer
from serena_central.pool.pool import LanguageServerPool, Lease
from serena_central.pool.state import Cause
from serena_central.projects.languages.root_texts import RootTexts
from serena_central.projects.languages.selection import LanguageSelection
from serena_central.projects.languages.server_availability import (
    Installations,
    ServerAvailability,
    ServerOrders,
    can_run,
)
from serena_central.projects.languages.syntax_access import SyntaxAccess, UnmarkedBuilds, completed, is_flat
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.symbol_source import Outline
from serena_central.symbols.syntax.reader import SyntaxReader

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ProjectLanguages:
    """The language servers of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        pool: LanguageServerPool,
        places: Places,
        *,
        trusted: bool,
        access: Access,
        above: Path | None = None,
        languages: Sequence[str] = (),
        chosen: dict[str, Any] | None = None,
        users: dict[str, Any] | None = None,
        encoding: str | None = None,
        around: Path | None = None,
        python: str | None = None,
        side_percent: float = 0,
        syntax: SyntaxReader | None = None,
        installations: Installations | None = None,
        path_watch: PathWatch | None = None,
    ) -> None:
        """`languages` limits what is served (empty: all); `chosen` maps language → server name, or its options.

        `trusted`: its user trusts the project. What it brings is not executed otherwise, and its own settings choose no
        server that has to be fetched; `users` is `chosen` without them. `above`: what another user has put above the
        root, if the project is taken for not trusted for that alone.
        `around` is the super-repo of the root: servers of its other modules hear of changes, too.
        `python` names the environment of the project, if it has to be named; `side_percent` is `SideLanguages`' bound.
        Without `syntax` no file is read by syntax; without `installations` only a person gets what is missing; without
        `path_watch` the environment is looked at by stat at each call.
        """
        self._root = root
        self.texts = RootTexts(root, encoding)
        self._access = access
        self._pool = pool
        self._untrusted = None if trusted else root
        self.selection = LanguageSelection(
            root,
            trusted=trusted,
            languages=languages,
            chosen=chosen or {},
            users=users or {},
            side_percent=side_percent,
            has_syntax=syntax is not None,
        )
        self._choices = self.selection.choices
        self.syntax = SyntaxAccess(
            root, syntax, identifier=self.selection.identifier, read_text=self.read_text, encoding=encoding
        )
        self.builds = UnmarkedBuilds(root, self.selection, self.syntax)
        # Put for every file: straight to the part that answers.
        self.language_of = self.selection.language_of
        self.spec_for = self.selection.spec_for
        self.place = self.selection.place
        self.is_code = self.selection.is_code
        self.is_left_alone = self.selection.is_left_alone
        self.is_side = self.selection.is_side
        self.is_marker = self.selection.is_marker
        self.grammar = self.syntax.grammar
        self.instead = self.builds.instead
        self.read_by_syntax = self.syntax.read
        self.are_at_hand = self.texts.are_at_hand
        self.holds_text = self.texts.holds
        self.holding_texts = self.texts.holding
        self.forget_texts = self.texts.forget
        self.encoding = encoding
        self.changes = 0
        """How often something changed that answers of its servers depend on."""
        self._around = around
        self.restricted: dict[str, str] = {}
        """Servers that were asked and run restricted because the project is not trusted → what answers lack for it."""
        self.python = ProjectPython(root, [around] if around and around != root else [], python)
        self._path_watch = path_watch or PathWatch(watches=False)
        self._environment_seen: object = None
        self.availability = ServerAvailability(
            root, places, self._choices, untrusted=self._untrusted, installations=installations, above=above
        )
        self.orders = ServerOrders(
            root,
            self._choices,
            self.python,
            untrusted=self._untrusted,
            texts=self.texts,
            builds_changes=lambda: self.builds.changes,
        )
        self._dependencies = ProjectDependencies(root)

    def is_searched(self, path: str) -> bool:
        """Whether the symbols of a root-relative path are found by name in the whole project.

        Those of data and markup are read when their file is asked for, unless the settings name their language, as are
        those of side languages that no grammar reads; go.mod and its like hold none.
        """
        return self.selection.is_code_file(path) and (not self.is_left_alone(path) or self.grammar(path) is not None)

    def side_languages(self) -> dict[str, str]:
        """Titles of the side languages whose servers are left alone, or asked for in vain → what becomes of how many
        files."""
        return self.selection.side_languages(self.availability.not_found) if self.selection.side.exist else {}

    def identity(self, path: str) -> str | None:
        """Server, version and settings digest that answer for a path: what a cached answer must agree with."""
        spec = self.spec_for(path)
        if spec is None:
            return None
        instead = self.instead(path)
        if instead is None:
            return self.availability.identity_of(spec)
        return (
            instead
            if self.builds.reads_by_syntax(spec)
            else source_identity.united(self.availability.identity_of(spec), instead)
        )

    def meaning(self, path: str) -> str | None:
        """As `identity`, for answers that depend on what is imported, as references do and a file's symbols don't."""
        spec = self.spec_for(path)
        if spec is None or not spec.environment:
            return self.identity(path)
        return f"{self.availability.identity_of(spec)} {self.orders.meaning(spec)}"

    def environment_of(self, languages: Iterable[str]) -> str:
        """The state of the environment that servers of these languages resolve imports in; empty where none does."""
        specs = map(self._choices.server_for, languages)
        return next(filter(None, (self.orders.environment(spec) for spec in specs if spec)), "")

    def look_at_environment(self) -> None:
        """Sees whether the Python environment has changed, if it is in use, or the project above its root that a server
        belongs to: what was started before ends."""
        if self.orders.reach_changed(self._path_watch):
            self._end_servers("the project above its root is another one")
        if not self.python.state:
            return
        if (places := self.python.places) is not None:
            # Another object whenever something may have changed.
            seen = self._path_watch.get(("python", places), lambda: places, object)
            if seen is self._environment_seen:
                return
            self._environment_seen = seen
        if self.python.look():
            self._end_servers("the Python environment has changed")

    def _end_servers(self, reason: str) -> None:
        self.changes += 1
        for key in self.orders.environment_changed():
            self._pool.replace(key, reason)

    def is_installed(self, path: str) -> bool:
        """Whether the server that answers for a root-relative path is there, and may be run."""
        identity = self.identity(path)
        return identity is not None and can_run(identity)

    def read(self, path: Path) -> FileText:
        """A file as the project's encoding says; may be called in any thread.

        Libraries outside of the root, which servers point into, may lie behind symlinks; nothing of the root may.

        Raises:
            PathError
        """
        self._check_reading(path)
        return self.texts.read(path)

    async def fetch(self, path: Path) -> FileText:
        """As `read`, for the event loop: in a thread, unless the text is remembered and a look at the file takes less
        than a turn of one.

        Raises:
            PathError
        """
        self._check_reading(path)
        known = self.texts.known(path)
        return known if known is not None else await anyio.to_thread.run_sync(self.texts.read, path)

    def _check_reading(self, path: Path) -> None:
        below = self.texts.below
        if str(path).startswith(below):
            self._access.check_reading(str(path)[len(below) :])

    def read_text(self, path: Path) -> Text:
        """As `read`, the text alone."""
        return self.read(path).text

    async def users_elsewhere(self, path: str, files: Collection[str]) -> list[str]:
        """Root-relative folders of modules that use the one of `path`, and that its server doesn't load with it.

        `files` are the project's.

        Raises:
            LanguageServerError
        """
        return await self.orders.users_elsewhere(self._wanted_for(path), files)

    def caveat(self, path: str) -> str | None:
        """What the uses of a path's symbols may lack, since the project doesn't say how it is built."""
        spec = self.spec_for(path)
        if spec is None or not self.builds.is_unmarked_by(spec, path):
            return None
        return spec.roots.unmarked

    async def ask(self, path: str, question: Callable[[LanguageServer], Awaitable[T]]) -> T:
        """Puts a read-only question to the server for `path`; it is asked again if the server crashes.

        Raises:
            LanguageServerError: no server, or it failed.
        """
        self.selection.asked_about(path)
        wanted = self._wanted_for(path)

        if wanted.spec.dependencies:
            self._dependencies.asked(wanted.spec.name, wanted.spec.dependencies, path)

        async def inside(server: LanguageServer) -> T:
            await server.enter(wanted.folder or wanted.root)
            return await question(server)

        return await self._read(path, wanted, inside)

    def lacking(self) -> dict[tuple[str, Path], str]:
        """(server that was asked, folder) → which packages of others answers lack there, and how to get them."""
        if self._dependencies.asked_since:
            self._dependencies.look(self._dependencies_arrived)
        return self._dependencies.notes

    def _dependencies_arrived(self, manifest: Path) -> None:
        """They lie where no tree looks: servers read the manifest again."""
        for root in self.orders.roots:
            self._pool.files_changed(root, [FileEvent(manifest, "changed")])

    def _wanted_for(self, path: str) -> WantedServer:
        spec = self.spec_for(path)
        if spec is None:
            raise ServerNotInstalled("none", path, "no language server is known for this kind of file")
        return self.orders.order(spec, path)

    async def _read(self, path: str, wanted: WantedServer, question: Callable[[LanguageServer], Awaitable[T]]) -> T:
        self._prepare(wanted)
        with self.availability.noticing_removal(wanted.spec):
            return await self._pool.read(wanted, question, partial(self._wanted_for, path))

    def _prepare(self, wanted: WantedServer) -> None:
        """Before a server is leased.

        Raises:
            ServerBeingInstalled, ServerNotTrusted
        """
        self.availability.check(wanted.spec)
        if self._untrusted and wanted.spec.untrusted and wanted.spec.untrusted.lacks:
            self.restricted[wanted.spec.name] = wanted.spec.untrusted.lacks
        self.python.asked(wanted.spec)

    def standing(self, path: str) -> str:
        """Why no server has said yet what a root-relative path holds: a sentence, true at this moment."""
        spec = self.spec_for(path)
        if spec is None:
            return "no language server is known for this kind of file."
        share = self.selection.share(spec.name)
        if share is not None:
            return (
                f"its language server {spec.name} is not started for {share} until a call names "
                "such a file as its relative_path (setting side_language_percent)."
            )
        against = self.availability.reason_against(spec)
        if against is not None:
            return against
        try:
            key = self.orders.order(spec, path).key
        except LanguageServerError as error:
            return str(error)
        return f"its language server {spec.name} {self._pool.standing(key).rstrip('.')}."

    async def until_installed(self, path: str) -> bool:
        """Waits while the server for `path` is being installed; whether there was something to wait for."""
        spec = self.spec_for(path)
        return spec is not None and await self.availability.until_installed(spec)

    @property
    def untrusted(self) -> Path | None:
        """The root if the project is not trusted, so that nothing of it is executed; else None."""
        return self._untrusted

    def installed(self, server: str) -> None:
        """A server is there now, or another version of it."""
        self.changes += 1
        self.availability.installed(server)
        for root in self.orders.roots:
            self._pool.may_start(root, "it was reinstalled", server=server)

    def given_up(self) -> dict[str, str]:
        """Servers that failed too often and are not started for this project any more → why."""
        return self._pool.given_up(self.orders.roots)

    async def retire(self, successor: "ProjectLanguages") -> None:
        """Ends the servers that were started for this, and that the same root's new settings would start otherwise."""
        for wanted in self.orders.current():
            if successor.orders.key_now(wanted) != wanted.key:
                await self._pool.stop(wanted.key, "the project's settings changed", cause=Cause.SETTINGS_CHANGED)

    def server_of(self, path: str) -> Hashable:
        """Paths with equal answers share one language server, have none for the same reason, or are read by syntax."""
        said = self.identity(path)
        if said is not None and source_identity.is_instead(said):
            return said
        try:
            return self._wanted_for(path).key
        except LanguageServerError as error:
            return str(error)

    def workplace_of(self, path: str) -> Hashable:
        """Questions about paths with equal answers can be put under one lease: same server, same workspace folder."""
        try:
            wanted = self._wanted_for(path)
        except LanguageServerError as error:
            return str(error)
        return wanted.key, wanted.folder

    @property
    def read_retries(self) -> int:
        """How often a question may be put to a new server after a crash."""
        return self._pool.policy.read_retries

    @asynccontextmanager
    async def server_for(self, path: str) -> AsyncGenerator["LeasedServer"]:
        """Leases the server for `path`, for questions about the symbols of many files.

        Raises:
            LanguageServerError: no server, or it failed.
        """
        wanted = self._wanted_for(path)  # a file's own symbols need none of the folder around it
        self._prepare(wanted)
        lease = self._pool.lease(wanted, partial(self._wanted_for, path))
        with self.availability.noticing_removal(wanted.spec):
            async with lease as server:
                yield LeasedServer(self, lease, server)

    async def compare_builds(self) -> bool:
        """Decides who knows files better of which nothing says how they are built; whether some are to be read by
        their server since."""
        return await self.builds.compare(
            lambda path: self._read(
                path, self._wanted_for(path), lambda server: server.document_symbols(self._root / path)
            )
        )

    async def outline(self, server: LanguageServer, path: str) -> Outline:
        """The symbols of a file, as its server tells them and the syntax completes them.

        Raises:
            LanguageServerError: a RequestFailed also where the server has no answer for a file that has symbols.
        """
        symbols = await server.symbols_or_null(self._root / path)
        if symbols is None and self.grammar(path) is not None and (await self.syntax.outline(path)).symbols:
            why = "it answered null for a file that has symbols"
            raise RequestFailed(server.spec.name, "textDocument/documentSymbol", 0, why)
        outline = Outline(await self._whole(path, symbols or []))
        return outline if self.instead(path) is None else await self.builds.united_with_syntax(path, outline)

    async def _whole(self, path: str, symbols: Sequence[DocumentSymbol]) -> Sequence[DocumentSymbol]:
        """A server's symbols with whole definitions, as far as the syntax tells what a flat answer does not."""
        if not is_flat(symbols) or self.grammar(path) is None:
            return symbols
        try:
            return completed(symbols, (await self.syntax.outline(path)).symbols)
        except LanguageServerError as error:
            logger.warning("cannot determine the definitions of %s: %s", path, error)
            return symbols

    def changed(self, changes: Sequence[Change]) -> Collection[str]:
        """Tells every server of this project what happened on disk, before anybody asks again.

        Returns files that did not change and may have another language, and so another server, now.
        """
        self._note_markers(changes)
        moved = self.selection.changed(changes)
        self.orders.deleted(change.path for change in changes if change.kind == "deleted")
        self._tell(changes)
        return moved

    def changed_for_servers(self, changes: Sequence[Change]) -> None:
        """Tells every server of this project what happened to files that it may read although they are none of the
        project's; they may say how the project's are built, too."""
        self._note_markers(changes)
        self._tell(changes)

    def _note_markers(self, changes: Sequence[Change]) -> None:
        self.changes += 1
        if any(self.is_marker(change.path) for change in changes):
            if any(self.selection.marks_builds(change.path) for change in changes):
                self.builds.marked()
            self._forget_places()
            self.python.forget()
            self._dependencies.forget()
            for root in self.orders.roots:
                self._pool.may_start(root, "the project's configuration has changed")

    def _tell(self, changes: Sequence[Change]) -> None:
        told = [FileEvent(self._root / change.path, change.kind) for change in changes]
        for root in self.orders.roots:
            self._pool.files_changed(root, told)
        if self._around is not None:
            self._pool.files_changed_near(self._around, self.orders.roots, told)

    def take_over(self, roots: Collection[Path]) -> None:
        """Makes the servers its own that were asked for the project when it was open before."""
        self.orders.roots |= set(roots)

    def missed(self, changes: Sequence[Change]) -> None:
        """Tells every server of this project what happened on disk while it was not open."""
        for root in self.orders.roots:
            self._pool.may_start(root, "the project's files have changed")
        self._tell(changes)

    def hearing(self) -> Callable[[], bool]:
        """Tells whether any server runs that was told of this project's files; also later, when this is gone."""
        return partial(self._pool.has_runs, self.roots, self._around)

    def external_folders(self) -> set[Path]:
        """Folders that this project's servers read, as they or manifests say; also such as lie in the root."""
        return self._pool.watched_folders(self.orders.roots) | self.orders.named_folders

    def on_external_folders(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` when servers may read other folders than before. Returns the way to end it."""
        self.orders.on_reached = listener
        return self._pool.on_watching(listener)

    def changed_outside(self, changes: Sequence[FileEvent]) -> None:
        """Tells every server of this project what happened to files that are not the project's."""
        self.changes += 1
        if any(self.is_marker(change.path.name) for change in changes):
            self._forget_places()
        for root in self.orders.roots:
            self._pool.files_changed(root, changes)

    def written_outside(self, paths: Sequence[Path]) -> None:
        """Tells every server of this project of files of others that this server wrote."""
        if paths:
            self.changed_outside([FileEvent(path, "changed") for path in paths])

    def asked_since_ns(self) -> int | None:
        """Since when servers may have read files; None while none runs."""
        return self._pool.oldest_ns(self.orders.roots)

    def _forget_places(self) -> None:
        self.orders.forget()
        self.builds.forget()

    @property
    def roots(self) -> frozenset[Path]:
        """Roots of the servers that were asked for this project."""
        return frozenset(self.orders.roots)


class LeasedServer:
    """A language server of a project while it is leased, as the indexer asks it."""

    def __init__(self, languages: ProjectLanguages, lease: Lease, server: LanguageServer) -> None:
        self._languages = languages
        self._lease = lease
        self._server = server

    @property
    def run(self) -> object:
        return self._server

    @property
    def lost(self) -> bool:
        return self._lease.lost

    async def outline(self, path: str) -> Outline:
        return await self._languages.outline(self._server, path)
