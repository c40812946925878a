"""Which language servers can run for a project: installed, trusted, being installed, or missing; and its orders to the
pool: where the server for a file runs, and with which settings and environment.

Orders hold until a file that marks roots, or the Python environment, changes. It starts no server.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread

from serena_central.core.errors import LanguageServerError, ServerBeingInstalled, ServerNotInstalled, ServerNotTrusted
from serena_central.core.places import Places
from serena_central.files.path_watch import PathWatch
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.permitted import Permitted
from serena_central.lsp.handshake import merged
from serena_central.lsp.installers.underway import Underway, underway_of
from serena_central.lsp.locate import Launch, locate
from serena_central.lsp.roots import (
    Manifests,
    ProjectPython,
    Reach,
    ServerRoot,
    deciding,
    reach,
    server_root,
    users_elsewhere,
)
from serena_central.pool.key import ServerKey, WantedServer, digest_of
from serena_central.projects.languages.root_texts import RootTexts

MISSING = "not-installed"
"""In place of a server's version."""

NOT_RUN = "not-trusted"
"""Likewise, where it would execute what a project brings that nobody trusts."""

ALONE = Reach({})
"""Of servers that take no folder above their root for their project."""

LOOK_AGAIN_S = 1.0
"""How old a note may be that says why a server cannot run. To look for its program takes 0.3 ms, longer on a slow
disk."""


class Installations(Protocol):
    """Installs servers that are missing."""

    def want(self, spec: ServerSpec) -> str | None:
        """Starts installing it; returns the state of the installation, or None if there is none."""
        ...

    def standing(self, spec: ServerSpec) -> str | None:
        """The state of an installation at this moment; None where there is none. Starts nothing."""
        ...

    def expected(self, spec: ServerSpec) -> bool:
        """Whether it is being installed, or will be as soon as it is needed."""
        ...

    async def settled(self, spec: ServerSpec) -> bool:
        """Returns when it is not being installed any more; whether that had to be waited for."""
        ...


class ServerAvailability:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        places: Places,
        choices: Permitted,
        *,
        untrusted: Path | None,
        installations: Installations | None,
        above: Path | None = None,
    ) -> None:
        """`untrusted` is the root if the project is not trusted, or for what another user has put `above` it. Without
        `installations` only a person installs what is missing."""
        self._root = root
        self._places = places
        self._choices = choices
        self._untrusted = untrusted
        self._above = above
        self._installations = installations
        self._identities: dict[str, str] = {}
        self._failures: dict[str, tuple[float, str | None]] = {}
        """Server → when it was looked for, and why it cannot run; None if it can."""
        self.not_found: dict[str, ServerSpec] = {}
        """Servers that were missing when they were looked for, until `installed` is called for them."""

    def identity_of(self, spec: ServerSpec) -> str:
        """Server, version (`MISSING` and `NOT_RUN` are such) and settings digest."""
        known = self._identities.get(spec.name)
        if known is None:
            try:
                version = self._locate(spec).version
            except ServerNotTrusted:
                version = NOT_RUN
            except ServerNotInstalled:
                version = MISSING
                self.not_found[spec.name] = spec
            digest = digest_of(spec, self._choices.settings_of(spec.name))
            trust = " untrusted" if self._untrusted else ""
            known = self._identities[spec.name] = f"{spec.name} {version} {digest}{trust}"
        return known

    def _locate(self, spec: ServerSpec) -> Launch:
        """Raises ServerNotInstalled, ServerNotTrusted."""
        try:
            return locate(spec, self._root, self._places, untrusted=self._untrusted)
        except ServerNotTrusted as error:
            raise error if self._above is None else error.for_what_lies(self._above) from None

    def not_run(self, languages: Iterable[str]) -> set[str]:
        """Names of these languages' servers that are not run, since the project is not trusted."""
        specs = [self._choices.server_for(language) for language in languages]
        return {spec.name for spec in specs if spec is not None and NOT_RUN in self.identity_of(spec)}

    def missing(self) -> list[ServerSpec]:
        """Servers that were looked for in vain, also those that some question has found since: the index of their
        files knows nothing of that yet."""
        return [spec for spec in self.not_found.values() if not spec.undriven]

    def missing_for_good(self) -> list[ServerSpec]:
        """Those of `missing` that only a person can install."""
        comes = self._installations.expected if self._installations is not None else _never
        return [spec for spec in self.missing() if not (self._may_install(spec) and comes(spec))]

    def installing(self) -> list[Underway]:
        """Installations of servers that are missing here, by whatever process."""
        found = (underway_of(spec.name, self._places) for spec in self.missing())
        return [one for one in found if one is not None]

    def installed(self, server: str) -> None:
        """A server is there now, or another version of it."""
        self._identities.pop(server, None)
        self._failures.pop(server, None)
        self.not_found.pop(server, None)

    def check(self, spec: ServerSpec) -> None:
        """Starts the installation of a missing server instead of a start that must fail.

        Raises:
            ServerBeingInstalled, ServerNotTrusted
        """
        if NOT_RUN in self.identity_of(spec):
            self._identities.pop(spec.name)  # what kept it from running may be gone
            self._locate(spec)
        state = self._installation_of(spec)
        if state is not None:
            raise ServerBeingInstalled(spec.name, state)

    @contextmanager
    def noticing_removal(self, spec: ServerSpec) -> Generator[None]:
        """A server that turns out to be gone is installed again.

        Raises:
            ServerBeingInstalled
        """
        try:
            yield
        except ServerNotInstalled:
            self._identities.pop(spec.name, None)
            self.check(spec)
            raise

    def reason_against(self, spec: ServerSpec) -> str | None:
        """Why it cannot run, as a sentence for a note; None if it can. Nothing else depends on it: it may be
        `LOOK_AGAIN_S` old."""
        if can_run(self.identity_of(spec)):
            return None
        error = self._failure(spec)
        if error is None:
            return None
        if self._installations is None or MISSING not in self.identity_of(spec) or not self._may_install(spec):
            return error
        state = self._installations.standing(spec)
        if state is None and self._installations.expected(spec):
            return f"The language server {spec.name} is not installed yet; the background installs it."
        return state or error

    def _failure(self, spec: ServerSpec) -> str | None:
        """Why it cannot run, at most `LOOK_AGAIN_S` old: each find in a project with files of its languages asks."""
        looked, error = self._failures.get(spec.name, (-LOOK_AGAIN_S, None))
        if time.monotonic() - looked >= LOOK_AGAIN_S:
            try:
                self._locate(spec)
                error = None
            except LanguageServerError as failure:
                error = str(failure)
            self._failures[spec.name] = time.monotonic(), error
        return error

    async def until_installed(self, spec: ServerSpec) -> bool:
        """Waits while a server is being installed; whether there was something to wait for."""
        if self._installations is None or self._installation_of(spec) is None:
            return False
        return await self._installations.settled(spec)

    def _installation_of(self, spec: ServerSpec) -> str | None:
        """The state of a missing server's installation; None if it is installed, or only a person can install it."""
        if MISSING not in self.identity_of(spec):
            return None
        self._identities.pop(spec.name)  # since then, perhaps
        if self._installations is None or MISSING not in self.identity_of(spec) or not self._may_install(spec):
            return None
        return self._installations.want(spec)

    def _may_install(self, spec: ServerSpec) -> bool:
        """Nothing is fetched that can't be run, nor what only a project that is not trusted has chosen."""
        return not spec.undriven and (self._untrusted is None or self._choices.is_users(spec))


def _never(_spec: ServerSpec) -> bool:
    return False


def can_run(identity: str) -> bool:
    """Whether what an identity names is installed, and may be run."""
    return MISSING not in identity and NOT_RUN not in identity


def _nothing() -> None:
    """What there is to do where nobody follows."""


class ServerOrders:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        choices: Permitted,
        python: ProjectPython,
        *,
        untrusted: Path | None,
        texts: RootTexts,
        builds_changes: Callable[[], int],
    ) -> None:
        """`untrusted` is the root if the project is not trusted. `builds_changes` counts how often it became known, or
        unknown, how files are built."""
        self._root = root
        self._choices = choices
        self._python = python
        self._untrusted = untrusted
        self._texts = texts
        self._builds_changes = builds_changes
        self.roots: set[Path] = {root}
        """Roots of the servers that were ordered."""
        self.named_folders: set[Path] = set()
        """Folders that the manifests behind the orders lead to."""
        self.on_reached: Callable[[], None] = _nothing
        """Called when one comes to either."""
        self._orders: defaultdict[str, dict[str, WantedServer]] = defaultdict(dict)
        """Folder of files → server → the order."""
        self._made: dict[tuple[ServerKey, Path | None], WantedServer] = {}
        """(server, its first folder) → the order, which most folders share."""
        self._manifests = Manifests()
        self._users: dict[tuple[str, Path], list[str]] = {}
        """(server, its folder) → folders that use it and are not loaded with it."""
        self._resolving: set[ServerKey] = set()
        """Servers that were started with the Python environment as it is."""
        self._reach: dict[tuple[str, Path], tuple[ServerSpec, Reach]] = {}
        """(server, its root) → what it takes for its project there, of those that may take a folder above it."""

    def order(self, spec: ServerSpec, path: str) -> WantedServer:
        """The order for the server that answers for a root-relative path.

        Raises:
            NoServerRoot
        """
        orders = self._orders[path.rpartition("/")[0]]
        known = orders.get(spec.name)
        if known is None:
            found = server_root(spec, self._root, self._root / path, self._manifests)
            if found.root not in self.roots or not found.reads <= self.named_folders:
                self.roots.add(found.root)
                self.named_folders |= found.reads
                self.on_reached()
            state = self._state(spec, found.root)
            python = self._python.tell(spec, self._settings(spec, found.root))
            made = WantedServer(
                spec=spec,
                root=found.root,
                settings=python.settings,
                read_text=self._texts.text,
                are_at_hand=self._texts.are_at_hand,
                untrusted=self._untrusted,
                folder=found.folder,
                env={**found.env, **python.env},
                state=state,
            )
            known = orders[spec.name] = self._made.setdefault((made.key, made.folder), made)
            if spec.environment:
                self._resolving.add(known.key)
        return known

    def current(self) -> Collection[WantedServer]:
        """One order for each server."""
        return {order.key: order for order in self._made.values()}.values()

    def key_now(self, order: WantedServer) -> ServerKey | None:
        """The key that an order would have by these settings; None where another server answers."""
        for language in order.spec.languages:
            spec = self._choices.server_for(language)
            if spec is not None and spec.name == order.spec.name:
                state = self._state(spec, order.root)
                python = self._python.tell(spec, self._settings(spec, order.root))
                digest = digest_of(spec, python.settings, {**order.env, **python.env}, state)
                return ServerKey(order.root, spec.name, digest, self._untrusted)
        return None

    def environment(self, spec: ServerSpec) -> str:
        """The state of the environment that a server resolves imports in; empty where it does not."""
        if spec.environment and not self._python.state:
            self._python.look()
        return self._python.state if spec.environment else ""

    def meaning(self, spec: ServerSpec) -> str:
        """What answers about the project's files depend on beside the server and its settings: the environment, and
        which folder the server takes for its project."""
        reached = self._reach_of(spec, self._root)
        return self.environment(spec) + (" kept to its root" if reached.settings else f" of {reached.outer}")

    def _settings(self, spec: ServerSpec, root: Path) -> dict[str, Any]:
        """The user's, laid over those that keep the server to its root."""
        return merged(self._reach_of(spec, root).settings, self._choices.settings_of(spec.name))

    def is_of_outer_project(self, spec: ServerSpec) -> bool:
        """Whether a server at the project's root takes a folder above it for its project, and so reads more files."""
        return self._reach_of(spec, self._root).outer is not None

    def _reach_of(self, spec: ServerSpec, root: Path) -> Reach:
        if spec.outer_project is None:
            return ALONE  # not kept: there may be thousands of roots, and what is kept is looked up at each call
        known = self._reach.get((spec.name, root))
        if known is None:
            known = self._reach[spec.name, root] = spec, reach(spec, root)
        return known[1]

    def reach_changed(self, watch: PathWatch) -> bool:
        """Whether a server takes another folder for its project than at the last look. Files above its root decide it,
        of which it hears nothing, or which it heeds no more once it has found its project."""
        for (name, root), (spec, known) in self._reach.items():
            key = "outer project", name, root
            now = watch.get(key, partial(deciding, spec, root), partial(reach, spec, root))
            if now != known:
                self._reach[name, root] = spec, now
                return True
        return False

    def _state(self, spec: ServerSpec, root: Path) -> str:
        """What a process of a server was started with, and another one has to be started for."""
        builds = str(self._builds_changes()) if spec.roots.unmarked is not None and self._builds_changes() else ""
        outer = self._reach_of(spec, root).outer
        return self.environment(spec) + builds + (self._texts.encoding or "") + (str(outer) if outer else "")

    async def users_elsewhere(self, order: WantedServer, files: Collection[str]) -> list[str]:
        """Root-relative folders of modules that use an order's, and that its server doesn't load with it.

        `files` are the project's.
        """
        place = ServerRoot(order.root, order.folder or order.root, order.env)
        users = self._users
        known = users.get((order.spec.name, place.folder))
        if known is None:
            found = await anyio.to_thread.run_sync(users_elsewhere, order.spec, self._root, place, list(files))
            known = [folder.relative_to(self._root).as_posix() for folder in found]
            users[order.spec.name, place.folder] = known
        return known

    def environment_changed(self) -> set[ServerKey]:
        """Forgets the orders; returns the servers that were started with the Python environment as it was, or with
        other projects above their roots."""
        outdated, self._resolving = self._resolving, set()
        self._forget_orders()
        return outdated

    def _forget_orders(self) -> None:
        self._orders.clear()
        self._made.clear()

    def deleted(self, paths: Iterable[str]) -> None:
        """Files are gone, and perhaps their folders with them."""
        for path in paths:
            self._orders.pop(path.rpartition("/")[0], None)

    def forget(self) -> None:
        """A file that marks roots has changed."""
        self._forget_orders()
        self.named_folders.clear()
        self._manifests = Manifests()
        self._users = {}
