"""The path policy: keeps symbol and edit tools out of a super-repo's own infrastructure.

Such a path is nearly always meant for a module, and the answer says how to name it. Pure; modules always pass.
"""

import posixpath

from serena_central.core.errors import ToolRefused, listed
from serena_central.core.quoting import quoted
from serena_central.projects.superrepo.configuration import SuperRepo

ALWAYS_OPEN = ".claude/"


def check_path(repo: SuperRepo, relative: str) -> None:
    """Passes a path relative to the super-repo's root, or refuses it with the way out.

    Raises:
        ToolRefused: it lies in the super-repo's infrastructure, or is a file at its root.
    """
    normal = posixpath.normpath(relative.replace("\\", "/").lstrip("/"))
    if normal == "." or f"{normal}/".startswith(ALWAYS_OPEN) or repo.module_of(normal) is not None:
        return
    prefix = next((one for one in repo.infrastructure if f"{normal}/".startswith(one.rstrip("/") + "/")), None)
    at_root = "/" not in normal and not (repo.root / normal).is_dir()
    if prefix is None and not at_root:
        return
    what = f"below {quoted(prefix)}" if prefix else "a file at its root"
    modules = listed(repo.modules)
    raise ToolRefused(
        f"{relative!r} is infrastructure of the super-repo {quoted(repo.name)} ({what}): symbol and edit tools only "
        f"work on its modules. Name one in project= (modules: {modules}), or pass a path inside one. read_file, "
        "list_dir, find_file and search_for_pattern work here."
    )
