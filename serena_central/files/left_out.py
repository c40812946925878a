"""What language servers read of a root although it does not belong to it: ignored files, and what lies in ignored
folders, in nested repositories and where CMake builds; and symlinks, by which files have more than one name.

Decides which of that is followed, and how much at most. Not followed is what package managers, language servers and
compilers keep: it is large, nobody edits it, and a server that needs it registers for it or is started again. What a
file is read for is not known here.
"""

from collections.abc import Callable, Collection

from serena_central.files.ignore import ALWAYS, CACHE_TAG, OF_TOOLS, RUSTC_INFO, Patterns
from serena_central.files.stamp import Stamp

MOST_FOLDERS = 2_000
"""Of one root: each takes a watch, of which some systems have 8,192 for all that a user runs."""

MOST_FILES = 30_000
"""Of one root: 9 MB."""

MOST_LINKS = 100
"""Of one root: each is compared with the path of every change."""

MOST_ENTRIES = 200_000
"""Right in one folder, whether servers read them or not: of a folder of data it takes two seconds to see that they
don't."""

SHARE_UNWATCHED = 20
"""Of a root that can't be watched each call looks at all that is followed: no more than a twentieth of it is, which
takes some 50 ms."""

KEPT_MARKS = frozenset({CACHE_TAG, RUSTC_INFO, "pyvenv.cfg", "conda-meta"})
"""Names that show that a folder is filled by a tool for itself, or is a Python environment."""

_OF_TOOLS = Patterns(OF_TOOLS)

IsRead = Callable[[str], bool]
"""Whether a language server may read a file of this name. Called in any thread."""


class LeftOut:
    """Of one root: what is followed, and what was found since it was last taken (path → stamp, None for gone)."""

    def __init__(self, is_read: IsRead, *, watched: bool, mounted: Collection[str] = ()) -> None:
        """`mounted`: root-relative folders of other file systems. They are not followed: to look at one whose server is
        away would take for ever, and what other machines change there is not heard of."""
        self._mounted = mounted
        share = 1 if watched else SHARE_UNWATCHED
        self._most_folders, self._most_files = MOST_FOLDERS // share, MOST_FILES // share
        self.most_entries = MOST_ENTRIES // share
        self.is_read = is_read
        self.findings: dict[str, Stamp | None] = {}
        self.folders = self.files = 0
        """How many are followed."""
        self.links: dict[str, str] = {}
        """Symlinks among the followed files, root-relative → where each leads, absolute."""
        self.elsewhere: dict[str, str] = {}
        """Of these such as lead out of the root."""
        self.links_moved = False
        """Some lead elsewhere than before, came or went."""
        self.missing: dict[str, str] = {}
        """Folder → something right in it, perhaps the folder itself, that is not followed because of the bounds, or
        because it is a file system of its own."""
        self.has_ended = False
        """There are too few watches for folders that are left out."""

    def fits(self, path: str, name: str, *, is_folder: bool) -> bool:
        """Whether an entry that is left out is followed, as far as its path tells."""
        if not is_folder:
            return self.is_read(name)
        if name in ALWAYS or _OF_TOOLS.verdict(path, name, True) is True:
            return False
        if path in self._mounted:
            self.missing.setdefault(path[: path.rfind("/") + 1], path)
            return False
        return True

    def heeds(self, name: str) -> bool:
        """Whether what becomes of a file of this name matters in a folder that is left out. It may be a symlink to a
        folder, whose names seldom have an ending."""
        return "." not in name or self.is_read(name) or name in KEPT_MARKS

    @property
    def room(self) -> int:
        """How many more files may be followed."""
        return self._most_files - self.files

    def take_in(self, folder: str, before: set[str], files: dict[str, Stamp]) -> set[str]:
        """Takes over what lies right in a folder: the files of `before` that are gone, and those that are followed of
        `files`, which it returns."""
        room = self.room + len(before)
        if len(files) > room:
            self.missing[folder] = folder
            known = {path: stamp for path, stamp in files.items() if path in before}
            more = (path for path in files if path not in before)
            files = known | {path: files[path] for path, _ in zip(more, range(room - len(known)), strict=False)}
        for path in before.difference(files):
            self.findings[path] = None
            self.drop_link(path)
        self.findings.update(files)
        self.files += len(files) - len(before)
        return set(files)

    def add_link(self, path: str, target: str, *, elsewhere: bool) -> None:
        """Follows a symlink, again if it is known."""
        self.links_moved = self.links_moved or self.links.get(path) != target
        self.links[path] = target
        (self.elsewhere.__setitem__ if elsewhere else self.elsewhere.pop)(path, target)

    def has_room_for_link(self, path: str, parent: str) -> bool:
        """Whether a symlink may be followed; if not, it is among what is `missing`. Asked before anybody looks where it
        leads: of data there may be 100,000."""
        if path in self.links or len(self.links) < MOST_LINKS:
            return True
        self.missing.setdefault(parent, path)
        return False

    def drop_link(self, path: str) -> None:
        self.links_moved = self.links.pop(path, None) is not None or self.links_moved
        self.elsewhere.pop(path, None)

    def names(self, path: str) -> list[str]:
        """The other names of a file or folder: those by way of symlinks. `path` is absolute."""
        return [
            link + path[len(target) :]
            for link, target in self.links.items()
            if path == target or path.startswith(f"{target}/")
        ]

    def has_room(self, path: str, parent: str) -> bool:
        """Whether one more folder may be followed; if not, it is among what is `missing`."""
        if self.folders < self._most_folders and not self.has_ended:
            return True
        self.missing.setdefault(parent, path)
        return False


def is_kept(names: Collection[str]) -> bool:
    """Whether a folder with these names in it is a tool's own, or an environment."""
    return not KEPT_MARKS.isdisjoint(names)
