"""Components that JSX names as tags: one whose name begins with a small letter is taken for an element of HTML."""

from serena_central.core.errors import EditRefused, LanguageServerError, PathError
from serena_central.editing.rename import Rename
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.symbols.index import Hit

_SCRIPTS = frozenset({"javascript", "typescript"})
PLACES_LISTED = 20

_WITH_JSX = (".jsx", ".tsx", ".js", ".mjs", ".cjs")


async def check_tags(languages: ProjectLanguages, hit: Hit, new_name: str, rename: Rename) -> None:
    """Raises EditRefused for a new name that would no longer name the component in tags. Compilers report that only
    where types say which elements there are."""
    old = hit.symbol.name
    if languages.language_of(hit.path) not in _SCRIPTS or old[:1].islower() or not new_name[:1].islower():
        return
    tags: list[str] = []
    for path, edits in rename.edits.items():
        if not path.endswith(_WITH_JSX):
            continue
        try:
            found = await languages.syntax.occurrences(path, old)
        except (LanguageServerError, PathError):
            continue
        starts = {edit.range.start for edit in edits if edit.new_text == new_name}
        tags += [f"{path}:{one.range.start.line0}" for one in found if one.is_tag and one.range.start in starts]
    if tags:
        places = ", ".join(dict.fromkeys(tags[:PLACES_LISTED]))
        raise EditRefused(
            f"Nothing was changed: {old} is a tag in {places}, and JSX takes a tag that begins "
            f"with a small letter for an element of HTML, not for {new_name}. Choose a name with a capital, or pass "
            "force=true."
        )
