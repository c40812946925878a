"""Describes to a session the super-repo that it works in: its modules, and how a call names one."""

from typing import Any

from serena_central.core.quoting import quoted
from serena_central.projects.superrepo.configuration import Module, SuperRepo

HOW = (
    'Each call goes to one module: name it in project= ("*": all), pass a path inside it, or describe the '
    "task in semantic_context. Nothing needs to be activated."
)


def introduction(repo: SuperRepo, most_chars: int = 5000) -> str:
    """Its modules and how to reach them, as fully as `most_chars` characters allow."""
    head = f"{quoted(repo.name)} is a super-repo of {len(repo.modules)} modules. {HOW}"
    default = f" The default module is {quoted(repo.default_module.name)}." if repo.default_module else ""
    modules = list(repo.modules.values())
    full = ", ".join(_described(module) for module in modules)
    names = ", ".join(quoted(module.name) for module in modules)
    for listed in (full, names):
        text = f"{head}{default} Modules: {listed or 'none'}."
        if len(text) <= most_chars:
            return text
    return f"{head}{default} list_projects lists them."


def _described(module: Module) -> str:
    said = "; ".join(filter(None, [" ".join(module.languages), ", ".join(map(quoted, module.concerns))]))
    return f"{quoted(module.name)} ({said})" if said else quoted(module.name)


def as_json(repo: SuperRepo) -> dict[str, Any]:
    return {
        "name": repo.name,
        "root": str(repo.root),
        "default_module": repo.default_module.name if repo.default_module else None,
        "modules": {module.name: module.path for module in repo.modules.values()},
    }
