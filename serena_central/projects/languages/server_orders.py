"""The pool's orders of one project: where the server for a file runs, and with which settings and environment.

They hold until a file that marks roots, or the Python environment, changes.
"""

from collections.abc import Callable, Collection
from pathlib import Path

import anyio.to_thread

from serena_central.core.text import Text
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.permitted import Permitted
from serena_central.lsp.roots import Manifests, ProjectPython, ServerRoot, server_root, users_elsewhere
from serena_central.pool.key import ServerKey, WantedServer, digest_of


class ServerOrders:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        choices: Permitted,
        python: ProjectPython,
        *,
        untrusted: Path | None,
        read_text: Callable[[Path], Text],
        builds_changes: Callable[[], int],
    ) -> None:
        """`untrusted` is the root if the project is not trusted. `read_text` is called in any thread; `builds_changes`
        counts how often it became known, or unknown, how files are built."""
        self._root = root
        self._choices = choices
        self._python = python
        self._untrusted = untrusted
        self._read_text = read_text
        self._builds_changes = builds_changes
        self.roots: set[Path] = {root}
        """Roots of the servers that were ordered."""
        self.named_folders: set[Path] = set()
        """Folders that the manifests behind the orders lead to."""
        self._orders: dict[tuple[str, str], WantedServer] = {}
        """(server, folder of a file) → the order."""
        self._manifests = Manifests()
        self._users: dict[tuple[str, Path], list[str]] = {}
        """(server, its folder) → folders that use it and are not loaded with it."""
        self._resolving: set[ServerKey] = set()
        """Servers that were started with the Python environment as it is."""

    def order(self, spec: ServerSpec, path: str) -> WantedServer:
        """The order for the server that answers for a root-relative path.

        Raises:
            NoServerRoot
        """
        place = spec.name, path.rpartition("/")[0]
        known = self._orders.get(place)
        if known is None:
            found = server_root(spec, self._root, self._root / path, self._manifests)
            self.roots.add(found.root)
            self.named_folders |= found.reads
            state = self._state(spec)
            python = self._python.tell(spec, self._choices.settings_of(spec.name))
            known = self._orders[place] = WantedServer(
                spec=spec,
                root=found.root,
                settings=python.settings,
                read_text=self._read_text,
                untrusted=self._untrusted,
                folder=found.folder,
                env={**found.env, **python.env},
                state=state,
            )
            if spec.environment:
                self._resolving.add(known.key)
        return known

    def current(self) -> Collection[WantedServer]:
        """One order for each server."""
        return {order.key: order for order in self._orders.values()}.values()

    def key_now(self, order: WantedServer) -> ServerKey | None:
        """The key that an order would have by these settings; None where another server answers."""
        for language in order.spec.languages:
            spec = self._choices.server_for(language)
            if spec is not None and spec.name == order.spec.name:
                state = self._state(spec)
                python = self._python.tell(spec, self._choices.settings_of(spec.name))
                digest = digest_of(spec, python.settings, {**order.env, **python.env}, state)
                return ServerKey(order.root, spec.name, digest, self._untrusted)
        return None

    def environment(self, spec: ServerSpec) -> str:
        """The state of the environment that a server resolves imports in; empty where it does not."""
        if spec.environment and not self._python.state:
            self._python.look()
        return self._python.state if spec.environment else ""

    def _state(self, spec: ServerSpec) -> str:
        """What a process of a server was started with, and another one has to be started for."""
        builds = str(self._builds_changes()) if spec.roots.unmarked is not None and self._builds_changes() else ""
        return self.environment(spec) + builds

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
        """Forgets the orders; returns the servers that were started with the Python environment as it was."""
        outdated, self._resolving = self._resolving, set()
        self._orders.clear()
        return outdated

    def forget(self) -> None:
        """A file that marks roots has changed."""
        self._orders.clear()
        self.named_folders.clear()
        self._manifests = Manifests()
        self._users = {}
