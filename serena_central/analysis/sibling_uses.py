"""References from other projects, which a project's own language server cannot see: from the siblings in its
super-repo, and from what encloses it, as the repository of which its root is a folder.

Asked about symbols that nothing else speaks for. Where a sibling contains such a name and cannot resolve it, the symbol
counts as possibly used; so it does where the name stands in an enclosing folder that is not open, whose files are
compared as words.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from serena_central.analysis.collection import Definition
from serena_central.core.errors import LanguageServerError, SerenaCentralError
from serena_central.core.progress import report
from serena_central.core.quoting import quoted
from serena_central.files.boundary import Access
from serena_central.projects.project import Project
from serena_central.projects.registry import Enclosing, ProjectRegistry
from serena_central.projects.root_settings import SuperRepos
from serena_central.projects.superrepo.collected_sibling_references import (
    Candidates,
    candidates,
    candidates_around,
    crossing,
)
from serena_central.projects.superrepo.configuration import SuperRepo

OUT_OF_BOUNDS = "the repository around this project, outside of your folders"
"""Stands for its path, which is not told."""

AROUND_S = 30.0
"""How long the files of what encloses a project, and is not open, may be searched."""

FILE_S = 180.0
"""How long a sibling's server may take for one file: it may have to start, and to load the sibling."""


class Around(NamedTuple):
    """What of a root that encloses a project may use its symbols, but is not seen by servers: all there is if it is not
    open, and always what rules close. `error`: why that is not known."""

    root: Path | None = None
    candidates: Sequence[Candidates] = ()
    closed: Sequence[Candidates] = ()
    error: str | None = None


class Siblings:
    """Finds the other projects of a project's super-repo: its modules, and its root with the files of its own; and what
    encloses it, which is asked like a sibling if it is open."""

    def __init__(self, super_repos: SuperRepos, projects: ProjectRegistry, access: Callable[[Path], Access]) -> None:
        self._super_repos = super_repos
        self._projects = projects
        self.access = access
        """What rules close in a root, open or not."""

    async def of(self, project: Project, *, besides: Collection[Path] = ()) -> tuple[list[Project], dict[str, str]]:
        """Opens them, but for those of the roots `besides`. Those that can't be opened: root → why."""
        found: list[Project] = []
        missing: dict[str, str] = {}
        repo = self.super_repo(project)
        enclosing = self.enclosing(project)
        around = self.opened_at([enclosing.root] if enclosing else [])
        for root in dict.fromkeys([*(self._roots(repo) if repo else ()), *(one.root for one in around)]):
            if root != project.root and root not in besides:
                try:
                    found.append(await self._projects.open(self._projects.check(root)))
                except SerenaCentralError as error:
                    missing[str(root)] = str(error)
        if repo is not None and repo.closed:
            missing[repo.closed_folders] = "only an administrator can do that."
        if enclosing is not None and not enclosing.may_open:
            missing[OUT_OF_BOUNDS] = "only an administrator can do that."
        return found, missing

    def super_repo(self, project: Project) -> SuperRepo | None:
        """The super-repo that a project is, is a module of, or is a folder of."""
        root = project.root
        repo = self._super_repos.around(root)
        if repo is None or root == repo.root or repo.says_of(root):
            return repo
        # A module may be a repository of its own.
        modules = [module.root for module in repo.modules.values() if root.is_relative_to(module.root)]
        return None if project.tree.is_apart(max(modules, default=repo.root)) else repo

    def enclosing(self, project: Project) -> Enclosing | None:
        """What encloses a project, if that is more than its super-repo."""
        repo, enclosing = self.super_repo(project), self._projects.enclosing(project)
        return None if repo and enclosing and enclosing.root.is_relative_to(repo.root) else enclosing

    async def candidates_around(self, project: Project, names: Mapping[str, Collection[str]]) -> Around:
        """What of the root that encloses a project holds any of `names`: file of the project → its symbols' names."""
        enclosing = self.enclosing(project)
        if enclosing is None or not enclosing.may_open or not any(names.values()):
            return Around()
        root = enclosing.root
        opened, access = self.opened_at([root]), self.access(root)
        report(f"searching {root} for references")
        try:
            with anyio.fail_after(AROUND_S):
                found = [] if opened else await candidates_around(project, root, access, names)
                some_closed = opened[0].tree.hidden() if opened else access.reading
                closed = await candidates_around(project, root, access, names, closed=True) if some_closed else []
                return Around(root, found, closed)
        except TimeoutError:
            return Around(root, error=f"searching its files took longer than {AROUND_S:g} s")

    @staticmethod
    def _roots(repo: SuperRepo) -> list[Path]:
        """Of a super-repo that is not open as a whole the modules alone; what lies beside them is counted as closed."""
        return [*([] if repo.closed else [repo.root]), *(module.root for module in repo.modules.values())]

    def super_repo_root(self, project: Project) -> Path | None:
        """The root of the super-repo that a project belongs to, or is."""
        repo = self.super_repo(project)
        return repo.root if repo else None

    def left_out(self, project: Project) -> list[str]:
        """Sentences about modules that can't be asked, because they are not there."""
        repo = self.super_repo(project)
        said = repo.left_out.items() if repo else ()
        return [f"The module {quoted(name)} was not searched: {why}." for name, why in said]

    def opened_at(self, roots: Collection[Path]) -> list[Project]:
        """The open projects of some roots."""
        return [one for root in roots if (one := self._projects.opened(str(root))) is not None]

    def opened(self, project: Project) -> tuple[list[Project], list[str]]:
        """Those that are open, and the names of the modules that are not, or what else."""
        enclosing = self.enclosing(project)
        found = self.opened_at([enclosing.root] if enclosing else [])
        unopened = [] if found or enclosing is None else [str(enclosing.root) if enclosing.may_open else OUT_OF_BOUNDS]
        repo = self.super_repo(project)
        modules = {module.root: name for name, module in repo.modules.items()} if repo else {}
        for root, name in {**modules, **({repo.root: repo.name} if repo and not repo.closed else {})}.items():
            other = self._projects.opened(str(root))
            if other is not None and other is not project:
                found.append(other)
            elif other is None and root in modules:
                unopened.append(name)
        return found, unopened


class SiblingAnswer(NamedTuple):
    """What siblings say of symbols. `used`: path and name path; `users`: who uses any.

    `held`: names that stand in any of them.
    `unresolved_names`: name → siblings that may refer to it, which is unknown.
    """

    used: set[tuple[str, str]]
    held: set[str]
    unresolved_names: dict[str, list[str]]
    notes: list[str]
    users: set[str]


async def ask_siblings(project: Project, siblings: Siblings, definitions: Sequence[Definition]) -> SiblingAnswer:
    """What siblings say of definitions of a project; opens them if there is something to ask."""
    told = SiblingAnswer(set(), set(), {}, [], set())
    if not definitions:
        return told
    names: dict[str, set[str]] = {}
    for one in definitions:
        names.setdefault(one.path, set()).add(one.name)
    others, missing = await siblings.of(project)
    told.notes.extend(siblings.left_out(project))
    for root, error in missing.items():
        told.notes.append(f"References in {root} can't be searched: {error}")
        _note(told, root, set[str]().union(*names.values()))
    for other in others:
        for group in await candidates(project, other, names):
            told.held.update(*group.files.values(), *group.left_out.values())
            _note(told, other.name, await _unresolved_in(project, other, group, told))
    around = await siblings.candidates_around(project, names)
    if around.error:
        told.notes.append(f"References in {around.root} can't be searched: {around.error}.")
        _note(told, str(around.root), set[str]().union(*names.values()))
    for group in (*around.candidates, *around.closed):
        holding = frozenset[str]().union(*group.files.values(), *group.left_out.values())
        told.held.update(holding)
        _note(told, str(around.root), holding)
    if around.candidates:
        told.notes.append(f"{around.root} is not open, so its files were compared as words.")
    return told


def _note(told: SiblingAnswer, sibling: str, names: Iterable[str]) -> None:
    for name in names:
        told.unresolved_names.setdefault(name, []).append(sibling)


async def _unresolved_in(project: Project, sibling: Project, group: Candidates, told: SiblingAnswer) -> set[str]:
    """Asks a sibling; names of which it can't tell everywhere what it means by them."""
    unresolved_names = set[str]().union(*group.left_out.values())
    for done, path in enumerate(group.files, 1):
        try:
            with anyio.fail_after(FILE_S):
                found = await crossing(project, sibling, path, group.declared)
        except (LanguageServerError, TimeoutError) as error:
            why = str(error) or f"{quoted(path)} took longer than {FILE_S:g} s"
            told.notes.append(f"{quoted(sibling.name)}: {why}")
            return unresolved_names.union(*group.files.values())
        told.used.update((file, name_path) for file, name_path, _ in found.uses)
        if found.uses:
            told.users.add(sibling.name)
        unresolved_names.update(found.unresolved_names)
        report(f"searching {sibling.name} for references: {done} of {len(group.files)} files")
    return unresolved_names
