"""Follows the folders outside the project that its language servers read, and notifies them of changes there.

Sibling modules that a manifest, a search path or a workspace leads to. Which folders those are, the servers say
themselves by what they register for, or their manifests do. Folders that package managers install are not followed:
they are large, and not edited.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from serena_central.files.shared_trees import Following, SharedTrees
from serena_central.files.tree import Change, FileTree, Kind, Seen
from serena_central.lsp.answers import FileEvent
from serena_central.projects.languages.project_languages import ProjectLanguages

MOST = 64
"""Folders that are followed for one project: each is read as a whole."""

_INSTALLED = frozenset({"node_modules", "site-packages", "dist-packages"})

_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")


class ExternalFolders:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, root: Path, tree: FileTree, languages: ProjectLanguages, trees: SharedTrees) -> None:
        self._root = root
        self._tree = tree
        self._languages = languages
        self._trees = trees
        self._named: set[Path] = set()
        """As the servers last said, of which some are not followed."""
        self._missing: set[Path] = set()
        """Of these, what should be followed and is not there."""
        self._followed: dict[Path, Following] = {}
        self._lock = anyio.Lock()
        self._moves = self._moves_followed = 0
        """How often servers may have come to read other folders, and how many of these were seen to."""
        self._moved = anyio.Event()
        self.behind = False
        """Whether the barrier has to `catch_up`."""
        self.trees: list[FileTree] = []
        """Of the folders that are followed: the barrier passes theirs, too."""
        self.seen: Mapping[Path, Seen] = {}
        """What the servers were told of each folder, once `run` has ended."""
        self._resumed: dict[Path, Seen] = {}
        """Folders that are to be followed again → what the servers know of each."""

    def resume(self, seen: Mapping[Path, Seen]) -> None:
        """Has the folders followed that were when the project was open before; servers are told of changes since."""
        self.seen, self._resumed = seen, dict(seen)
        if seen:
            self._move()

    async def run(self) -> None:
        """Follows what servers come to read, before anybody asks them again. Until cancelled."""
        end = self._languages.on_external_folders(self._move)
        try:
            while True:
                await self._moved.wait()
                self._moved = anyio.Event()
                await self.catch_up()
        finally:
            end()
            trees = {folder: one.tree for folder, one in self._followed.items() if one.tree is not None}
            self.seen = self._resumed | {folder: tree.seen() for folder, tree in trees.items()}
            for following in self._followed.values():
                following.end()
            self._followed.clear()
            self.trees = []

    def _move(self) -> None:
        self._moves += 1
        self.behind = True
        self._moved.set()

    async def catch_up(self) -> None:
        """Follows the folders that the servers read now. Those that they did read may come back, and stay."""
        if self._moves_followed == self._moves and not any(map(Path.is_dir, self._missing)):
            return
        async with self._lock:
            for folder in list(self._resumed):
                await self._resume(folder)
            moves, named = self._moves, self._languages.external_folders()
            if named != self._named or any(map(Path.is_dir, self._missing)):
                wanted, missing = await anyio.to_thread.run_sync(partial(self._to_follow, named))
                for folder in self._followed.keys() - wanted:
                    self._followed.pop(folder).end()
                for folder in wanted - self._followed.keys():
                    await self._follow(folder)
                self._named, self._missing = named, missing
            self._moves_followed = moves
            self.trees = [one.tree for one in self._followed.values() if one.tree is not None]
            self.behind = moves != self._moves or bool(self._missing)

    async def _resume(self, folder: Path) -> None:
        """Follows a folder again; changes since it was followed are reported at once."""
        is_there = await anyio.to_thread.run_sync(folder.is_dir)
        following = await self._trees.follow(folder, partial(self._changed, folder)) if is_there else None
        seen = self._resumed.pop(folder)
        if following is None:
            self._changed(folder, [Change(path, "deleted") for path in seen])
            return
        self._followed[folder] = following
        if following.tree is not None:
            await following.tree.tell_since(seen, partial(self._changed, folder))

    async def _follow(self, folder: Path) -> None:
        """Starts following; changes since the servers were started are reported at once."""
        following = self._followed[folder] = await self._trees.follow(folder, partial(self._changed, folder))
        since = self._languages.asked_since_ns()
        if following.tree is not None and since is not None:
            files = [*following.tree.files.items(), *following.tree.left_out.items()]
            kind: Kind = "created" if folder in self._missing else "changed"
            self._changed(
                folder, [Change(path, kind) for path, stamp in files if max(stamp.mtime_ns, stamp.ctime_ns) >= since]
            )

    def _changed(self, folder: Path, changes: Sequence[Change]) -> None:
        told = [FileEvent(folder / change.path, change.kind) for change in changes]
        self._languages.changed_outside([change for change in told if not self._is_own(change.path)])

    def _to_follow(self, named: set[Path]) -> tuple[set[Path], set[Path]]:
        """Folders to follow, without such as lie in others; and those that are not there. Looks at the disk."""
        external = {folder for folder in named if not self._is_own(folder) and _is_source(folder)}
        missing = {folder for folder in external if not folder.is_dir()}
        wanted = external - missing | self._followed.keys()
        outermost = [folder for folder in wanted if wanted.isdisjoint(folder.parents)]
        outermost.sort(key=lambda folder: (folder not in named, folder))
        return set(outermost[:MOST]), missing

    def _is_own(self, path: Path) -> bool:
        """Whether the project's own tree follows it, be it a file or a folder."""
        if not path.is_relative_to(self._root):
            return False
        inside = path.relative_to(self._root).as_posix()
        return inside == "." or not self._tree.is_ignored(inside) or self._tree.follows(inside)


def _is_source(folder: Path) -> bool:
    """Whether people write what lies in a folder, and it is no more than some projects."""
    if not _INSTALLED.isdisjoint(folder.parts) or Path.home().is_relative_to(folder) or len(folder.parts) <= 2:
        return False
    return not any((folder / marker).exists() for marker in _ENVIRONMENT)
