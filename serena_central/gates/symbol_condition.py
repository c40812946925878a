"""The condition `symbol(public, references > N)`: what is known of the symbol that an edit is about.

An edit that names no symbol meets it, and one whose symbol or references can't be found in time, or may not be all of
them: in doubt it holds.
"""

import re

from serena_central.core.errors import SerenaCentralError
from serena_central.gates.engine import Asked
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

_REFERENCES = re.compile(r"references\s*(>=|>)\s*(\d{1,9})")


async def symbol_holds(project: Project, asked: Asked, condition: str) -> bool:
    """Whether the edited symbol is as a condition says."""
    use = asked.event.use
    if use is None or use.effect != "edit":
        return False
    name_path = use.arguments.get("name_path") or use.arguments.get("name_path_pattern")
    within = use.arguments.get("relative_path") or ""
    if not isinstance(name_path, str) or not isinstance(within, str):
        return True
    try:
        hit = await project.find_one(name_path, within)
        for part in condition.removeprefix("symbol(").removesuffix(")").split(","):
            if not await _is(project, hit, part.strip()):
                return False
    except SerenaCentralError:
        return True
    return True


async def _is(project: Project, hit: Hit, part: str) -> bool:
    if part == "public":
        return is_public(hit, project.languages.language_of(hit.path) or "")
    wanted = _REFERENCES.fullmatch(part)
    if wanted is None:
        return True
    used = await project.navigation.references.of(hit)
    least = int(wanted[2]) + (wanted[1] == ">")
    possible = used.possible.total + used.possible.unexamined if used.possible is not None else 0
    if len(used.references) + used.outside + possible >= least:
        return True
    return used.note is not None or used.caveat is not None  # there may be more


def is_public(hit: Hit, language: str) -> bool:
    """Whether a symbol's names say that others may use it: in Go by capitals, elsewhere without an underscore or #."""
    names = hit.name_path.split("/")
    if language == "go":
        return all(name.strip("(*)")[:1].isupper() for name in names)
    return not any(name.startswith(("_", "#")) and not name.endswith("__") for name in names)
