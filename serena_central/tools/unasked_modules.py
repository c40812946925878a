"""What a call did not search, though it may refer to its symbol: other modules of a super-repo, and the files of the
repository around a project."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from serena_central.core.errors import listed
from serena_central.core.quoting import quoted
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_references import Declaration, Declarations, holding, is_named_in
from serena_central.symbols.index import Hit
from serena_central.tools.context import ToolCall


async def note_unasked(call: ToolCall, target: Project, hit: Hit) -> None:
    """Names the modules that were not asked, but hold the symbol's name and mention its package."""
    await _note(call, Declaration(target, hit.name_path, hit.path), {target.root})


async def note_others(call: ToolCall, target: Project, declared: Declarations) -> None:
    """The same of a call on several projects, in the part of the project that declares the symbol."""
    for one in declared.found:
        if one.project is target:
            await _note(call, one, {project.root for project in declared.asked})


def note_alone(call: ToolCall, target: Project) -> None:
    """Says that an answer about one module is not about its siblings."""
    _note_enclosing(call, target, ())
    repo = call.services.validation.siblings.super_repo(target)
    if repo is not None and any(module.root != target.root for module in repo.modules.values()):
        call.note(
            f'Only {quoted(target.name)} was searched. project="*" also searches the other modules of the super-repo.'
        )


async def _note(call: ToolCall, declared: Declaration, asked: Collection[Path]) -> None:
    home = declared.project
    _note_enclosing(call, home, asked)
    repo = call.services.validation.siblings.super_repo(home)
    named: list[str] = []
    for name, module in repo.modules.items() if repo else ():
        if module.root in asked:
            continue
        opened = call.services.projects.opened(str(module.root))
        if opened is not None:
            await opened.fresh()
            ask = partial(holding, opened, declared, declared.name)
        else:
            ask = partial(is_named_in, module.root, declared)
        if await anyio.to_thread.run_sync(ask, abandon_on_cancel=True):
            named.append(name)
    if named:
        call.note(
            f"Not searched: {listed(named)}, where {declared.name} occurs in code that mentions the package of "
            f'{quoted(home.name)}. project="*" searches all modules of the super-repo.'
        )


def _note_enclosing(call: ToolCall, target: Project, asked: Collection[Path]) -> None:
    enclosing = call.services.validation.siblings.enclosing(target)
    if enclosing is None or enclosing.root in asked:
        return
    if enclosing.may_open:
        call.note(
            f"Only {quoted(target.name)} was searched, which is a part of {quoted(enclosing.root)}. "
            f'project="{enclosing.root}" also searches the rest.'
        )
    else:
        call.note(
            f"Only {quoted(target.name)} was searched, which is a part of a repository. The rest of that is outside "
            "of your folders."
        )
