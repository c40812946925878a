"""The code beside a project that may use what it declares: of a sibling, or of what encloses the project.

What encloses a project contains its files, too; they are left out here. Where nobody has opened it, its files are taken
as they are on disk, ignored ones aside.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from serena_central.files.boundary import Access
from serena_central.projects.project import Project
from serena_central.projects.superrepo.discovery import files_of


def code_beside(home: Project, paths: Iterable[str], sibling: Project) -> list[str]:
    """Files of a sibling in the languages of some files of `home`. It may have chosen other servers for these."""
    if sibling is home:
        return _like(home, paths, sibling.tree.files, sibling)
    return _like(home, paths, filter(_apart(home, sibling.root), sibling.tree.files), sibling)


def code_around(home: Project, paths: Iterable[str], root: Path, access: Access, *, closed: bool = False) -> list[str]:
    """The same of a root that is not open, by the languages of `home`; what rules close there is left out, or, if
    `closed`, all there is. Reads the disk."""
    is_apart = _apart(home, root)
    files = _like(home, paths, (path for path in files_of(root) if is_apart(path)), home)
    return [path for path in files if access.hides(path) is closed]


def is_around(home: Project, root: Path) -> bool:
    """Whether a root encloses a project. Code there reaches the project by other ways than its package's name, too:
    path aliases, links, names that a manifest gives."""
    return home.root.is_relative_to(root)


def others_around(home: Project, paths: Iterable[str], root: Path, files: Iterable[str] | None) -> list[str]:
    """Files of an enclosing root in other languages, or in none; `files` are all there are, None if it is not open.
    Reads the disk then."""
    apart = list(filter(_apart(home, root), files_of(root) if files is None else files))
    others = set(apart).difference(_like(home, paths, apart, home))
    return sorted(path for path in others if not home.languages.selection.is_configuration(path))


def _like(home: Project, paths: Iterable[str], files: Iterable[str], reader: Project) -> list[str]:
    specs = (home.languages.spec_for(path) for path in paths)
    wanted = {language for spec in specs if spec for language in spec.languages}
    spec_for, is_configuration = reader.languages.spec_for, reader.languages.selection.is_configuration
    return [
        path
        for path in files
        if (own := spec_for(path)) and not wanted.isdisjoint(own.languages) and not is_configuration(path)
    ]


def _apart(home: Project, root: Path) -> Callable[[str], bool]:
    """Whether a file of a root, by its path there, is none of `home`."""
    if not is_around(home, root):
        return lambda _: True
    own = f"{home.root.relative_to(root).as_posix()}/"
    return lambda path: not path.startswith(own)
