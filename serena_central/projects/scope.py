"""Resolves which projects a tool call means, by rules in their order of precedence.

1. the `project` argument: a name, a path, several of them, or `*`; a super-repo's root means the super-repo;
2. a path among the call's arguments: the project that contains it, if it is absolute or leads into a module;
3. in a super-repo: the module that the call's free words are about;
4. the session's active project;
5. the session's working folder, up to the nearest marker of a project;
6. in a super-repo: its default module.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

import anyio
import msgspec

from serena_central.core.errors import (
    DeadlineExceeded,
    ProjectRefused,
    SerenaCentralError,
    ToolRefused,
    UnknownProject,
    listed,
)
from serena_central.core.paths import expanded, kept_path
from serena_central.core.project_names import listed_names
from serena_central.core.quoting import quoted
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry, opener_in
from serena_central.projects.root_paths import check_is_there, real_path
from serena_central.projects.root_settings import SuperRepos
from serena_central.projects.superrepo.configuration import Module, SuperRepo
from serena_central.projects.superrepo.path_policy import check_path
from serena_central.projects.superrepo.router import Score, is_certain

EVERYTHING = "*"

About = Literal["code", "files", "notes"]
"""What a tool is about. A super-repo's infrastructure is closed to what is about code, open to what is about files of
any kind; and notes (memories) are the super-repo's own where nothing names a module."""

OPENING_S = 20.0
"""How long one of several projects may take to open, before the others' answers are sent without it."""

RUNNERS_UP = 3
"""How many modules a note names that scored less."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a call says about the projects that it means. `paths` are its path arguments, as given.

    `edits`: it changes files. `spans`: of a super-repo's root it looks at all modules by itself. `together`: it asks
    several projects about one symbol, whose declaration a path identifies. `person`: a person typed or clicked it
    (root_policy.py).
    """

    project: str | list[str] | None = None
    paths: Sequence[str] = ()
    semantic_context: str | None = None
    active_root: str | None = None
    working_folder: str | None = None
    about: About = "code"
    edits: bool = False
    spans: bool = False
    together: bool = False
    person: bool = False


class Unopened(NamedTuple):
    """A project of several that could not be opened; `name` as the call used it."""

    name: str
    root: Path
    error: SerenaCentralError


class Scope(NamedTuple):
    """The projects of one call. `grouped`: the caller asked for several, so the answer is grouped by project.

    `failures` are those of several that could not be opened. `paths` maps path arguments, as given, to absolute ones,
    where they were not meant relative to the project. `note` tells the caller about a choice that it did not make
    itself.
    """

    projects: list[Project]
    reason: str
    grouped: bool = False
    failures: Sequence[Unopened] = ()
    paths: Mapping[str, str] = MappingProxyType({})
    note: str | None = None

    @property
    def named(self) -> list[tuple[str, Path]]:
        """Names and roots of all that the call means."""
        return [*((one.name, one.root) for one in self.projects), *((one.name, one.root) for one in self.failures)]


def labels_of(named: Iterable[tuple[str, Path]]) -> dict[Path, str]:
    """Root → label of its group in an answer: the name, or the root where two of them have one name."""
    names = {root: name for name, root in named}
    count = Counter(names.values())
    return {root: name if count[name] == 1 else str(root) for root, name in names.items()}


async def resolve_scope(registry: ProjectRegistry, repos: SuperRepos, ask: Ask) -> Scope:
    """Applies the rules; opens projects that are not open yet.

    Raises:
        UnknownProject: no rule applies; lists the known projects.
        ProjectRefused: the root found must not become a project.
        ToolRefused: the path is a super-repo's infrastructure, or its words are too uncertain for an edit.
        SerenaCentralError: the one project that is meant can't be opened.
    """
    try:
        for folder in filter(None, (ask.active_root, ask.working_folder)):
            check_is_there(Path(folder))
    except ProjectRefused:
        if not ask.project:
            raise
        ask = msgspec.structs.replace(ask, active_root=None, working_folder=None)
    return await _Rules(registry, repos, ask).apply()


class _Rules:
    """The rules for one call. `_repo` is the super-repo that the session works in, if any."""

    def __init__(self, registry: ProjectRegistry, repos: SuperRepos, ask: Ask) -> None:
        self._registry = registry
        self._repos = repos
        self._ask = ask
        self._repo = repos.worked_in(ask.active_root, ask.working_folder)

    async def apply(self) -> Scope:
        if self._ask.project:
            scope = await self._named(listed_names(self._ask.project))
            return scope._replace(paths={**self._from_the_super_repo(scope.projects), **scope.paths})
        return (
            await self._by_path()
            or await self._by_words()
            or await self._by_active_project()
            or await self._by_working_folder()
            or await self._by_default()
        )

    # --- 1 -------------------------------------------------------------------------------------------------------

    async def _named(self, asked: str | list[str]) -> Scope:
        if asked == EVERYTHING:
            return await self._everything({})
        if isinstance(asked, str):
            root = self._find(asked)
            repo = self._repos.at(root)
            named = await self._super_repo(repo) if repo and repo.modules and not self._ask.spans else None
            return named or Scope([await self._registry.open(root)], "named by the call")
        named = [name for name in asked if name != EVERYTHING]
        roots = {root: label for name in named for root, label in self._roots_of(name).items()}
        if len(named) < len(asked):
            return await self._everything(roots)
        return await self._several(roots, "named by the call")

    def _roots_of(self, name: str) -> dict[Path, str]:
        """What one name of several means, with labels: of a super-repo its modules, too, where a call only reads."""
        root = self._find(name)
        repo = None if self._ask.edits or self._ask.spans or self._ask.about == "notes" else self._repos.at(root)
        modules = {module.root: one for one, module in repo.modules.items()} if repo else {}
        return {**modules, root: name}

    async def _super_repo(self, repo: SuperRepo) -> Scope | None:
        """What a call means that names a super-repo's root: the module that its path leads into; of a reading one
        without a path, all modules and what lies beside them. None for the root's own notes and files."""
        path = next((path for path in self._ask.paths if path), "")
        place = _from(repo.root, path)
        module = repo.module_at(place)
        below = {one.root: name for name, one in repo.modules.items() if one.root.is_relative_to(place)}
        in_one = module is not None or not below
        if in_one and self._ask.together and not self._ask.edits and _is_at(place, ""):
            return (await self._all_of(repo))._replace(paths={path: str(place)})
        if module is not None:
            opened = await self._registry.open(module.root)
            return Scope([opened], f"{path} is in the module {module.name}", paths={path: str(place)})
        if self._ask.about == "notes" or not below:
            return None
        if self._ask.edits:
            return await self._edited(repo)
        scope = await self._several(below | {repo.root: repo.name}, f"all of {repo.name}")
        scope = scope._replace(paths={path: "."} if path else {}, note=_left_out(repo))
        own = next((one for one in scope.projects if one.root == repo.root), None)
        if own is not None and (place != repo.root or not await self._has_own(own)):
            scope.projects.remove(own)
            if await self._has_own(own, f"{place.relative_to(repo.root)}/"):
                note = (
                    f"Only modules were searched; {quoted(path)} also contains other files, which must be named "
                    "individually."
                )
                return scope._replace(note=" ".join(filter(None, (note, scope.note))))
        return scope

    async def _all_of(self, repo: SuperRepo) -> Scope:
        """All modules, and the root where it has files of its own: a path of the call tells only a declaration."""
        modules = {module.root: name for name, module in repo.modules.items()}
        scope = await self._several(modules | {repo.root: repo.name}, f"all of {repo.name}")
        own = next((one for one in scope.projects if one.root == repo.root), None)
        if own is not None and not await self._has_own(own):
            scope.projects.remove(own)
        return scope._replace(note=_left_out(repo))

    async def _edited(self, repo: SuperRepo) -> Scope:
        """Raises ToolRefused where words don't tell the module that is to be changed."""
        self._repo = repo
        scope = await self._by_words()
        if scope is None:
            raise ToolRefused(
                f"{quoted(repo.root)} is a super-repo, and the call does not identify a module. Nothing was "
                f"changed; pass project= with one of {listed(repo.modules)}, or a path inside one."
            )
        return scope

    async def _has_own(self, root: Project, folder: str = "") -> bool:
        """Whether a super-repo's root has files of its own, beside its modules, that the call is about."""
        await root.fresh()
        wanted = root.languages.is_searched if self._ask.about == "code" else bool
        return any(wanted(path) for path in root.tree.files if path.startswith(folder))

    async def _everything(self, others: Mapping[Path, str]) -> Scope:
        """All modules or open projects, and others that the call names beside them (root → label)."""
        if self._repo is not None and self._repo.modules:
            roots = {module.root: name for name, module in self._repo.modules.items()}
            scope = await self._several({**others, **roots}, f"all modules of {self._repo.name}")
            return scope._replace(note=_left_out(self._repo))
        projects = self._registry.open_projects()
        if others:
            roots = {project.root: str(project.root) for project in projects}  # names need not differ
            return await self._several({**roots, **others}, "all open projects and those named by the call")
        if not projects:
            raise UnknownProject(EVERYTHING, self._registry.known_names())
        return Scope(projects, "all open projects", grouped=True)

    def _from_the_super_repo(self, projects: Sequence[Project]) -> Mapping[str, str]:
        """Relative paths that are meant from the super-repo's root, because nothing is there in the named projects."""
        repo = self._repo
        if repo is None:
            return {}
        return {
            path: str(repo.root / path)
            for path in self._ask.paths
            if _is_at(repo.root, path) and repo.module_of(path) and not any(_is_at(one.root, path) for one in projects)
        }

    def _find(self, asked: str) -> Path:
        """A module of the session's own super-repo goes before projects of the same name elsewhere."""
        module = self._repo.modules.get(asked) if self._repo else None
        if module:
            return module.root
        return self._registry.find(asked, opener_in(self._ask.working_folder, person=self._ask.person))

    async def _several(self, asked: Mapping[Path, str], reason: str) -> Scope:
        """Opens all of them at the same time. `asked` maps root → the name that the call used."""
        opened: dict[Path, Project] = {}
        failures: dict[Path, SerenaCentralError] = {}

        async def open_one(root: Path, name: str) -> None:
            # The registry goes on opening it when this wait ends.
            failures[root] = DeadlineExceeded(f"Opening {quoted(name)}", OPENING_S)
            with anyio.move_on_after(OPENING_S):
                try:
                    opened[root] = await self._registry.open(root)
                    del failures[root]
                except SerenaCentralError as error:
                    failures[root] = error

        async with anyio.create_task_group() as tasks:
            for root, name in asked.items():
                tasks.start_soon(open_one, root, name)
        projects = [opened[root] for root in asked if root in opened]
        unopened = [Unopened(asked[root], root, error) for root, error in failures.items()]
        return Scope(projects, reason, grouped=True, failures=unopened)

    # --- 2 -------------------------------------------------------------------------------------------------------

    async def _by_path(self) -> Scope | None:
        for path in self._ask.paths:
            scope = await (self._by_absolute(path) if path.startswith(("/", "~")) else self._by_relative(path))
            if scope is not None:
                return scope
        return None

    async def _by_absolute(self, path: str) -> Scope | None:
        root = self._registry.root_of(Path(path))
        if root is None:
            return None
        root = self._worked_in(real_path(Path(path)), root)
        repo = self._repos.around(root)
        if repo is not None:
            place = real_path(Path(path))
            module = repo.module_at(place)
            root = max(root, module.root, key=lambda one: len(one.parts)) if module else root
            if root == repo.root:
                self._check(repo, place.relative_to(root).as_posix())
        return Scope([await self._registry.open(root)], f"it contains {path}")

    def _worked_in(self, place: Path, root: Path) -> Path:
        """The root of what the caller works in, if that lies within `root` and contains the place: a folder that is
        ignored in `root`."""
        folder = self._ask.working_folder
        if folder is None or not place.is_relative_to(real_path(Path(folder))):
            return root
        own = self._registry.working_root(Path(folder))
        return own if own is not None and own.is_relative_to(root) else root

    async def _by_relative(self, path: str) -> Scope | None:
        module = self._repo.module_of(path) if self._repo else None
        if self._repo is None or module is None:
            return None
        absolute = str(self._repo.root / path)
        opened = await self._registry.open(module.root)
        return Scope([opened], f"{path} is in the module {module.name}", paths={path: absolute})

    def _check(self, repo: SuperRepo, relative: str) -> None:
        if self._ask.about == "code":
            check_path(repo, relative)

    # --- 3 -------------------------------------------------------------------------------------------------------

    async def _by_words(self) -> Scope | None:
        repo, words = self._repo, self._ask.semantic_context
        scores = repo.scores(words) if repo and words else []
        if repo is None or not scores:
            return None
        if self._ask.edits and not is_certain(scores):
            raise ToolRefused(
                f"The words match several modules about equally ({_scores(scores)}). "
                "Nothing was changed; name the module in project=."
            )
        best = scores[0]
        routed = repo.modules[best.module].root
        for path in self._ask.paths:
            if _is_at(repo.root, path) and not _is_at(routed, path):
                self._check(repo, path)
        others = f"; next: {_scores(scores[1 : RUNNERS_UP + 1])}" if len(scores) > 1 else ""
        return Scope(
            [await self._registry.open(routed)],
            f"routed to {best.module} by semantic_context",
            note=f"Routed to {quoted(best.module)}, {best.points} points ({listed(best.reasons)}){others}.",
        )

    # --- 4 to 6 --------------------------------------------------------------------------------------------------

    async def _by_active_project(self) -> Scope | None:
        active = self._ask.active_root
        # A super-repo's own root has no code of its own: the rules for its modules go on.
        if active is None or (self._repo is not None and kept_path(active) == self._repo.root):
            return None
        return Scope([await self._registry.open(kept_path(active))], "the session's active project")

    async def _by_working_folder(self) -> Scope | None:
        folder = self._ask.working_folder
        root = self._registry.working_root(Path(folder)) if folder else None
        if folder is None or root is None or self._ask.active_root is not None:
            return None
        module = self._repo.module_at(real_path(Path(folder))) if self._repo else None
        root = max(root, module.root, key=lambda one: len(one.parts)) if module else root
        if self._repo is not None and root == self._repo.root:
            return None
        return Scope([await self._registry.open(root)], "the session's working folder")

    async def _by_default(self) -> Scope:
        repo = self._repo
        if repo is None:
            raise UnknownProject(None, self._registry.known_names())
        own = [path for path in self._ask.paths if path not in ("", ".")]
        for path in own:
            self._check(repo, path)
        about = self._ask.about
        at_root = about == "notes" or (about == "files" and any(_is_at(repo.root, path) for path in own))
        if repo.default_module is None or at_root:
            return Scope([await self._registry.open(repo.root)], "the super-repo's own root")
        return await self._default(repo, repo.default_module)

    async def _default(self, repo: SuperRepo, module: Module) -> Scope:
        return Scope(
            [await self._registry.open(module.root)],
            f"the default module of {repo.name}",
            note=f"The call does not identify a module of {quoted(repo.name)}, so its default_module "
            f"{quoted(module.name)} was "
            "used. To use another, pass project=, a path inside it, or semantic_context.",
        )


def _from(root: Path, path: str) -> Path:
    """Resolves a path of a call that is relative to a root."""
    return real_path(root / expanded(path))


def _left_out(repo: SuperRepo) -> str | None:
    """What is said of modules that a call for all of them can't mean."""
    if repo.closed:
        return f"Not searched: {repo.closed_folders}."
    if not repo.left_out:
        return None
    modules = "; ".join(f"{quoted(name)}: {why}" for name, why in repo.left_out.items())
    return f"Not all modules of {quoted(repo.name)} were searched. {modules}."


def _is_at(root: Path, path: str) -> bool:
    try:
        return (root / path).exists()
    except (OSError, ValueError):
        return False


def _scores(scores: Sequence[Score]) -> str:
    return ", ".join(f"{quoted(score.module)} {score.points}" for score in scores)
