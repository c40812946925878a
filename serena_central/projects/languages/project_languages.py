"""The languages of one project: selects the server for a file and reaches it through the pool.

It joins the selection (names, settings), the places where servers run and the pool (processes), and forwards what the
tree saw to every server that was ever asked for this project. It knows no symbols.
"""

import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

from serena_central.core.errors import (
    LanguageServerError,
    ServerBeingInstalled,
    ServerNotInstalled,
    ServerNotTrusted,
)
from serena_central.core.nofollow import open_file, open_following
from serena_central.core.places import Places
from serena_central.core.text import Text
from serena_central.files.access import OPEN, Access
from serena_central.files.recent import RecentTexts
from serena_central.files.text import FileText
from serena_central.files.tree import Change
from serena_central.lsp.answers import DocumentSymbol, FileEvent
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.installers.underway import Underway, underway_of
from serena_central.lsp.locate import locate
from serena_central.lsp.roots import (
    Manifests,
    ProjectDependencies,
    ProjectPython,
    ServerRoot,
    server_root,
    users_elsewhere,
)
from serena_central.pool.key import ServerKey, WantedServer, digest_of
from serena_central.pool.pool import LanguageServerPool, Lease
from serena_central.pool.state import Cause
from serena_central.projects.languages.selection import LanguageSelection
from serena_central.projects.languages.syntax_access import SyntaxAccess
from serena_central.projects.languages.unmarked_builds import UnmarkedBuilds
from serena_central.symbols.flat import completed, is_flat
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.symbol_source import Outline
from serena_central.symbols.syntax.reader import SyntaxReader

logger = logging.getLogger(__name__)

T = TypeVar("T")

MISSING = "not-installed"
"""In place of a server's version."""

NOT_RUN = "not-trusted"
"""Likewise, where it would execute what a project brings that nobody trusts."""


class Installations(Protocol):
    """Who gets servers that are missing."""

    def want(self, spec: ServerSpec) -> str | None:
        """Starts installing it; returns the state of the installation, or None if there is none."""
        ...

    def standing(self, spec: ServerSpec) -> str | None:
        """How that stands at this moment; None where nothing is done. Begins nothing."""
        ...

    async def settled(self, spec: ServerSpec) -> bool:
        """Returns when it is not being got any more; whether that had to be waited for."""
        ...


class ProjectLanguages:
    """The language servers of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        pool: LanguageServerPool,
        places: Places,
        *,
        trusted: bool,
        languages: Sequence[str] = (),
        chosen: dict[str, Any] | None = None,
        users: dict[str, Any] | None = None,
        encoding: str | None = None,
        around: Path | None = None,
        access: Access = OPEN,
        python: str | None = None,
        side_percent: float = 0,
        syntax: SyntaxReader | None = None,
        installations: Installations | None = None,
    ) -> None:
        """`languages` limits what is served (empty: all); `chosen` maps language → server name, or its options.

        `trusted`: its user trusts the project. What it brings is not executed otherwise, and its own settings choose no
        server that has to be fetched; `users` is `chosen` without them.
        `around` is the super-repo of the root: servers of its other modules hear of changes, too.
        `python` names the environment of the project, if it has to be named; `side_percent` is `SideLanguages`' bound.
        Without `syntax` no file is read by syntax; without `installations` only a person gets what is missing.
        """
        self._root = root
        self._below = f"{root}/"
        self._access = access
        self._pool = pool
        self._places = places
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
        self.is_code = self.selection.is_code
        self.is_left_alone = self.selection.is_left_alone
        self.is_side = self.selection.is_side
        self.is_marker = self.selection.is_marker
        self.grammar = self.syntax.grammar
        self.instead = self.builds.instead
        self.read_by_syntax = self.syntax.read
        self.encoding = encoding
        self.changes = 0
        """How often something changed that answers of its servers depend on."""
        self._texts = RecentTexts()
        self._installations = installations
        self._around = around
        self._roots: set[Path] = {root}
        self._identities: dict[str, str] = {}
        self._missing: dict[str, ServerSpec] = {}
        """Servers that were not there when they were looked for, until it is told that they are."""
        self._wanted: dict[tuple[str, str], WantedServer] = {}
        """(server, folder of a file) → the pool's order; thrown away when a file that marks roots changes."""
        self.restricted: dict[str, str] = {}
        """Servers that were asked and run restricted because the project is not trusted → what answers lack for it."""
        self.python = ProjectPython(root, [around] if around and around != root else [], python)
        self._dependencies = ProjectDependencies(root)
        self._imports_with: set[ServerKey] = set()
        """Servers that were started with the Python environment as it is."""
        self._manifests = Manifests()
        """Thrown away likewise."""
        self._named_folders: set[Path] = set()
        """Folders that the manifests behind `_wanted` lead to; thrown away likewise."""
        self._users: dict[tuple[str, Path], list[str]] = {}
        """(server, its folder) → folders that use it and are not loaded with it; thrown away likewise."""

    def is_searched(self, path: str) -> bool:
        """Whether the symbols of a root-relative path are found by name in the whole project.

        Those of data and markup are read when their file is asked for, unless the settings name their language, as are
        those of side languages that no grammar reads; go.mod and its like hold none.
        """
        return self.selection.is_code_file(path) and (not self.is_left_alone(path) or self.grammar(path) is not None)

    def side_languages(self) -> dict[str, str]:
        """Titles of the side languages whose servers are left alone, or asked for in vain → what becomes of how many
        files."""
        return self.selection.side_languages(self._missing)

    def identity(self, path: str) -> str | None:
        """Server, version and settings digest that answer for a path: what a cached answer must agree with."""
        spec = self.spec_for(path)
        if spec is None:
            return None
        instead = self.instead(path)
        if instead is None:
            return self._identity_of(spec)
        return (
            instead if self.builds.reads_by_syntax(spec) else source_identity.united(self._identity_of(spec), instead)
        )

    def meaning(self, path: str) -> str | None:
        """As `identity`, for answers that depend on what is imported, as references do and a file's symbols don't."""
        spec = self.spec_for(path)
        if spec is None or not spec.environment:
            return self.identity(path)
        return f"{self._identity_of(spec)} {self._environment(spec)}"

    def environment_of(self, languages: Iterable[str]) -> str:
        """The state of the environment that servers of these languages resolve imports in; empty where none does."""
        specs = map(self._choices.server_for, languages)
        return next(filter(None, (self._environment(spec) for spec in specs if spec)), "")

    def _environment(self, spec: ServerSpec) -> str:
        if spec.environment and not self.python.state:
            self.python.look()
        return self.python.state if spec.environment else ""

    def _state(self, spec: ServerSpec) -> str:
        """What a process of a server was started with, and another one has to be started for."""
        builds = str(self.builds.changes) if spec.roots.unmarked is not None and self.builds.changes else ""
        return self._environment(spec) + builds

    def look_at_environment(self) -> None:
        """Sees whether the Python environment has changed, if it is in use: what was started with it before ends."""
        if self.python.state and self.python.look():
            self.changes += 1
            for key in self._imports_with:
                self._pool.replace(key, "the Python environment has changed")
            self._imports_with = set()
            self._wanted.clear()

    def _identity_of(self, spec: ServerSpec) -> str:
        if spec.name not in self._identities:
            try:
                version = locate(spec, self._root, self._places, untrusted=self._untrusted).version
            except ServerNotTrusted:
                version = NOT_RUN
            except ServerNotInstalled:
                version = MISSING
                self._missing[spec.name] = spec
            digest = digest_of(spec, self._choices.settings_of(spec.name))
            trust = " untrusted" if self._untrusted else ""
            self._identities[spec.name] = f"{spec.name} {version} {digest}{trust}"
        return self._identities[spec.name]

    def is_installed(self, path: str) -> bool:
        """Whether the server that answers for a root-relative path is there, and may be run."""
        identity = self.identity(path)
        return identity is not None and MISSING not in identity and NOT_RUN not in identity

    def not_run(self, languages: Iterable[str]) -> set[str]:
        """Names of these languages' servers that are not run, since the project is not trusted."""
        specs = [self._choices.server_for(language) for language in languages]
        return {spec.name for spec in specs if spec is not None and NOT_RUN in self._identity_of(spec)}

    def read(self, path: Path) -> FileText:
        """A file as the project's encoding says; may be called in any thread. Raises PathError.

        Libraries outside of the root, which servers point into, may lie behind symlinks; nothing of the root may.
        """
        if str(path).startswith(self._below):
            self._access.check_reading(str(path)[len(self._below) :])
        return self._read_any(path)

    def _read_any(self, path: Path) -> FileText:
        """Also what rules close: to count columns of places in it, which are not shown."""
        opener = open_file if str(path).startswith(self._below) else open_following
        return self._texts.read(path, encoding=self.encoding, opener=opener)

    def read_text(self, path: Path) -> Text:
        """As `read`, the text alone."""
        return self.read(path).text

    def wanted(self, spec: ServerSpec, path: str) -> WantedServer:
        """The pool's order for the server that answers for a root-relative path. Raises NoServerRoot."""
        place = spec.name, path.rpartition("/")[0]
        known = self._wanted.get(place)
        if known is None:
            found = server_root(spec, self._root, self._root / path, self._manifests)
            self._roots.add(found.root)
            self._named_folders |= found.reads
            state = self._state(spec)
            told = self.python.tell(spec, self._choices.settings_of(spec.name))
            known = self._wanted[place] = WantedServer(
                spec=spec,
                root=found.root,
                settings=told.settings,
                read_text=lambda file: self._read_any(file).text,
                untrusted=self._untrusted,
                folder=found.folder,
                env={**found.env, **told.env},
                state=state,
            )
            if spec.environment:
                self._imports_with.add(known.key)
        return known

    async def users_elsewhere(self, path: str, files: Collection[str]) -> list[str]:
        """Root-relative folders of modules that use the one of `path`, and that its server doesn't load with it.

        `files` are the project's. Raises LanguageServerError.
        """
        wanted = self._wanted_for(path)
        place = ServerRoot(wanted.root, wanted.folder or wanted.root, wanted.env)
        users = self._users
        known = users.get((wanted.spec.name, place.folder))
        if known is None:
            found = await anyio.to_thread.run_sync(users_elsewhere, wanted.spec, self._root, place, list(files))
            known = [folder.relative_to(self._root).as_posix() for folder in found]
            users[wanted.spec.name, place.folder] = known
        return known

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

        self._dependencies.asked(wanted.spec.name, wanted.spec.dependencies, path)

        async def inside(server: LanguageServer) -> T:
            await server.enter(wanted.folder or wanted.root)
            return await question(server)

        return await self._read(wanted, inside)

    def lacking(self) -> dict[tuple[str, Path], str]:
        """(server that was asked, folder) → which packages of others answers lack there, and how to get them."""
        return self._dependencies.notes(self._dependencies_arrived)

    def _dependencies_arrived(self, manifest: Path) -> None:
        """They lie where no tree looks: servers read the manifest again."""
        for root in self._roots:
            self._pool.files_changed(root, [FileEvent(manifest, "changed")])

    def _wanted_for(self, path: str) -> WantedServer:
        spec = self.spec_for(path)
        if spec is None:
            raise ServerNotInstalled("none", path, "no language server is known for this kind of file")
        return self.wanted(spec, path)

    async def _read(self, wanted: WantedServer, question: Callable[[LanguageServer], Awaitable[T]]) -> T:
        self._prepare(wanted)
        with self._noticing_removal(wanted.spec):
            return await self._pool.read(wanted, question)

    def _prepare(self, wanted: WantedServer) -> None:
        """Before a server is leased. Raises ServerBeingInstalled, ServerNotTrusted."""
        self._see_to(wanted.spec)
        if self._untrusted and wanted.spec.untrusted and wanted.spec.untrusted.lacks:
            self.restricted[wanted.spec.name] = wanted.spec.untrusted.lacks
        self.python.asked(wanted.spec)

    @contextmanager
    def _noticing_removal(self, spec: ServerSpec) -> Generator[None]:
        try:
            yield
        except ServerNotInstalled:
            self._identities.pop(spec.name, None)
            self._see_to(spec)
            raise

    def _see_to(self, spec: ServerSpec) -> None:
        """Starts the installation of a missing server instead of a start that must fail.

        Raises: ServerBeingInstalled, ServerNotTrusted.
        """
        if NOT_RUN in self._identity_of(spec):
            self._identities.pop(spec.name)  # what kept it from running may be gone
            locate(spec, self._root, self._places, untrusted=self._untrusted)
        being_done = self._being_done(spec)
        if being_done is not None:
            raise ServerBeingInstalled(spec.name, being_done)

    def _being_done(self, spec: ServerSpec) -> str | None:
        """The state of a missing server's installation; None if it is installed, or only a person can install it."""
        if MISSING not in self._identity_of(spec):
            return None
        self._identities.pop(spec.name)  # since then, perhaps
        if self._installations is None or MISSING not in self._identity_of(spec) or not self._may_install(spec):
            return None
        return self._installations.want(spec)

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
        missing = MISSING in self._identity_of(spec)
        if missing or NOT_RUN in self._identity_of(spec):
            try:
                locate(spec, self._root, self._places, untrusted=self._untrusted)
            except LanguageServerError as error:
                may = missing and self._installations is not None and self._may_install(spec)
                return (self._installations.standing(spec) if may and self._installations else None) or str(error)
        try:
            key = self.wanted(spec, path).key
        except LanguageServerError as error:
            return str(error)
        return f"its language server {spec.name} {self._pool.standing(key)}."

    def _may_install(self, spec: ServerSpec) -> bool:
        """Nothing is fetched that can't be run, nor what only a project that is not trusted has chosen."""
        return not spec.undriven and (self._untrusted is None or self._choices.is_users(spec))

    async def until_installed(self, path: str) -> bool:
        """Waits while the server for `path` is being installed; whether there was something to wait for."""
        spec = self.spec_for(path)
        if spec is None or self._installations is None or self._being_done(spec) is None:
            return False
        return await self._installations.settled(spec)

    def missing(self) -> list[ServerSpec]:
        """Servers that were looked for in vain, also those that some question has found since: the index of their
        files knows nothing of that yet."""
        return [spec for spec in self._missing.values() if not spec.undriven]

    def installing(self) -> list[Underway]:
        """Installations of servers that are missing here, by whatever process."""
        found = (underway_of(spec.name, self._places) for spec in self.missing())
        return [one for one in found if one is not None]

    @property
    def untrusted(self) -> Path | None:
        """The root if the project is not trusted, so that nothing of it is executed; else None."""
        return self._untrusted

    def installed(self, server: str) -> None:
        """A server is there now, or another version of it."""
        self.changes += 1
        self._identities.pop(server, None)
        self._missing.pop(server, None)
        for root in self._roots:
            self._pool.may_start(root, "it was reinstalled", server=server)

    def given_up(self) -> dict[str, str]:
        """Servers that failed too often and are not started for this project any more → why."""
        return self._pool.given_up(self._roots)

    async def retire(self, successor: "ProjectLanguages") -> None:
        """Ends the servers that were started for this, and that the same root's new settings would start otherwise."""
        for wanted in {wanted.key: wanted for wanted in self._wanted.values()}.values():
            if successor.key_now(wanted) != wanted.key:
                await self._pool.stop(wanted.key, "the project's settings changed", cause=Cause.SETTINGS_CHANGED)

    def key_now(self, wanted: WantedServer) -> ServerKey | None:
        """The key that an order would have by these settings; None where another server answers."""
        for language in wanted.spec.languages:
            spec = self._choices.server_for(language)
            if spec is not None and spec.name == wanted.spec.name:
                state = self._state(spec)
                told = self.python.tell(spec, self._choices.settings_of(spec.name))
                digest = digest_of(spec, told.settings, {**wanted.env, **told.env}, state)
                return ServerKey(wanted.root, spec.name, digest, self._untrusted)
        return None

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
        lease = self._pool.lease(wanted)
        with self._noticing_removal(wanted.spec):
            async with lease as server:
                yield LeasedServer(self, lease, server)

    async def compare_builds(self) -> bool:
        """Decides who knows files better of which nothing says how they are built; whether some are to be read by
        their server since."""
        return await self.builds.compare(
            lambda path: self._read(self._wanted_for(path), lambda server: server.document_symbols(self._root / path))
        )

    async def outline(self, server: LanguageServer, path: str) -> Outline:
        """The symbols of a file, as its server tells them and the syntax completes them."""
        outline = Outline(await self._whole(path, await server.document_symbols(self._root / path)))
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
        self.changes += 1
        if any(self.is_marker(change.path) for change in changes):
            if any(self.selection.marks_builds(change.path) for change in changes):
                self.builds.marked()
            self._forget_places()
            self.python.forget()
            self._dependencies.forget()
            for root in self._roots:
                self._pool.may_start(root, "the project's configuration has changed")
        moved = self.selection.changed(changes)
        told = [FileEvent(self._root / change.path, change.kind) for change in changes]
        for root in self._roots:
            self._pool.files_changed(root, told)
        if self._around is not None:
            self._pool.files_changed_near(self._around, self._roots, told)
        return moved

    def external_folders(self) -> set[Path]:
        """Folders that this project's servers read, as they or manifests say; also such as lie in the root."""
        return self._pool.watched_folders(self._roots) | self._named_folders

    async def external_folders_moved(self) -> None:
        """Returns when servers may read other folders than before."""
        await self._pool.watching_moved()

    def changed_outside(self, changes: Sequence[FileEvent]) -> None:
        """Tells every server of this project what happened to files that are not the project's."""
        self.changes += 1
        if any(self.is_marker(change.path.name) for change in changes):
            self._forget_places()
        for root in self._roots:
            self._pool.files_changed(root, changes)

    def written_outside(self, paths: Sequence[Path]) -> None:
        """Tells every server of this project of files of others that this server wrote."""
        if paths:
            self.changed_outside([FileEvent(path, "changed") for path in paths])

    def asked_since_ns(self) -> int | None:
        """Since when servers may have read files; None while none runs."""
        return self._pool.oldest_ns(self._roots)

    def _forget_places(self) -> None:
        self._wanted.clear()
        self.builds.forget()
        self._named_folders.clear()
        self._manifests = Manifests()
        self._users = {}

    @property
    def roots(self) -> frozenset[Path]:
        """Roots of the servers that were asked for this project."""
        return frozenset(self._roots)


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
