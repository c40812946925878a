"""The texts of one root's files, and of libraries that its language servers point into, in the project's encoding.

A language server reads by these as long as it runs, which may be longer than the project is open: so they keep nothing
else of the project alive. They know no rules that close files.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from weakref import ref

from serena_central.core.nofollow import Opener, open_file, open_following
from serena_central.core.text import Text
from serena_central.files.text import FileText, RecentTexts
from serena_central.files.tree import FileTree


def _no_tree() -> None:
    """Of a root that no project follows."""


class RootTexts:
    """Reading may be done in any thread."""

    def __init__(self, root: Path, encoding: str | None) -> None:
        """`encoding` is that of files without a byte-order mark, None for UTF-8."""
        self.below = f"{root}/"
        self.encoding = encoding
        self._tree: Callable[[], FileTree | None] = _no_tree
        self._recent = RecentTexts()

    def follow(self, tree: FileTree) -> None:
        """While the root is watched its file system is one of this machine: a file that is remembered is looked at
        without a thread then."""
        self._tree = ref(tree)

    @property
    def is_watched(self) -> bool:
        tree = self._tree()
        return tree is not None and tree.is_watched

    def read(self, path: Path) -> FileText:
        """A file, whatever rules close it. Libraries outside of the root may lie behind symlinks; nothing of the root
        may.

        Raises:
            PathError
        """
        return self._recent.read(path, encoding=self.encoding, opener=self._opener(path))

    def text(self, path: Path) -> Text:
        """As `read`, the text alone."""
        return self.read(path).text

    def known(self, path: Path) -> FileText | None:
        """What `read` returns, if it is remembered and the file has not changed since, and a look at it takes less
        than a turn of a thread."""
        if not self.is_watched:
            return None
        return self._recent.known(path, encoding=self.encoding, opener=self._opener(path))

    def are_at_hand(self, paths: Collection[Path]) -> bool:
        """Whether reading these files takes less than a thread takes to begin with it. A library outside of the root
        may lie on a file system that hangs."""
        are_here = self.is_watched and all(str(path).startswith(self.below) for path in paths)
        return are_here and self._recent.are_at_hand(paths, encoding=self.encoding)

    def holds(self, path: Path) -> bool:
        """Whether reading a file may be as cheap as looking whether it has changed."""
        return self._recent.holds(path, encoding=self.encoding)

    def holding(self) -> AbstractContextManager[None]:
        """While the block runs, more of the files that are read are remembered: for an answer that meets each of many
        files several times."""
        return self._recent.holding()

    def forget(self) -> None:
        """Frees the texts that are remembered, unless an answer is being made of them."""
        self._recent.forget()

    def _opener(self, path: Path) -> Opener:
        return open_file if str(path).startswith(self.below) else open_following
