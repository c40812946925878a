"""Words of a component (Vue, Svelte, Astro) that name a property as well as a value: `{ name }` in an object, `{name}`
as an attribute, `:name` and `class:name` as directives. No grammar reads its parts together, so this is told by the
characters around a word."""

import re
from collections.abc import Iterator, Mapping

from serena_central.core.errors import EditRefused, listed
from serena_central.core.text import Text
from serena_central.editing.rename import Rename
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.symbols.index import Hit

LOOKED_BACK = 2_000
"""Characters before a word in which the brace around it is looked for."""

_IN_STATEMENT = re.compile(r"\b(?:import|export)\b[^;{}'\"`]*\Z")
_END_OF_TAG = re.compile(r"(?<!=)>")

_DIRECTIVE = re.compile(r"\s(?:bind:|class:|style:|:|v-bind:)\Z")
"""Of Svelte and Vue: the name of a property, class or style, and of a value where none is given."""

LONGEST = 8
"""Characters of a directive before its name."""

_BEFORE_OBJECT = re.compile(r"(?:[(\[{,:?]|\.{3}|\b(?:as|catch|const|then))\s*\Z")
"""What a value or a pattern may follow within an expression, or a block of Svelte (`{#each all as { name }}`)."""

_IN_QUOTES = re.compile(r"=\s*(?:\"[^\"]*|'[^']*)\Z")

_GIVEN = re.compile(r"(?:[|.]\w+)*\s*=")
"""Behind such a name, where a value is."""


def check_components(languages: ProjectLanguages, hit: Hit, rename: Rename, texts: Mapping[str, Text]) -> None:
    """Raises EditRefused where a rename changes such a word, and with it the property's name: their servers write both
    names in scripts, and not in templates."""
    places = [f"{path}:{line0}" for path, line0 in sorted({*_both(languages, hit.symbol.name, rename, texts)})]
    if places:
        name = hit.symbol.name
        raise EditRefused(
            f"Nothing was changed: at {listed(places)}, {name} may name a property, too, which would be renamed with "
            f"it. Write `{name}: {name}` there first (an attribute or directive: its value), or pass force=true."
        )


def _both(
    languages: ProjectLanguages, name: str, rename: Rename, texts: Mapping[str, Text]
) -> Iterator[tuple[str, int]]:
    for path, edits in rename.edits.items():
        spec = languages.spec_for(path)
        if spec is None or not (spec.reads or spec.leads_into):
            continue
        text = texts[path]
        for edit in edits:
            start, end = text.offset(edit.range.start), text.offset(edit.range.end)
            plain = text.content[start:end] == name and edit.new_text.isidentifier()
            if plain and may_name_both(text.content, start, end, is_vue=languages.language_of(path) == "vue"):
                yield path, edit.range.start.line0


def may_name_both(content: str, start: int, end: int, *, is_vue: bool) -> bool:
    """Whether the word from `start` to `end` stands alone in braces, or between commas in them, other than those of an
    import and of what a template shows (`{{ name }}`, `<p>{name}</p>`), or is a directive without a value."""
    first = max(0, start - LOOKED_BACK)
    if _DIRECTIVE.search(content, max(first, start - LONGEST), start) and _in_tag(content[first:start]):
        return _GIVEN.match(content, end) is None
    before, behind = content[first:start].removesuffix("$").rstrip(), content[end : end + LOOKED_BACK].lstrip()
    if not before.endswith(("{", ",")) or not behind.startswith(("}", ",")):
        return False
    at = _opening(before)
    if at is None:
        return True
    opened = before[:at]
    if before[at] != "{" or (is_vue and opened.endswith("{")) or _IN_STATEMENT.search(opened):
        return False
    if is_vue or at < len(before) - 1 or behind.startswith(","):
        return True
    if content.rfind("<script", 0, start) > content.rfind("</script", 0, start):
        return True
    if _BEFORE_OBJECT.search(opened) and _opening(opened) is not None:
        return True
    return _in_tag(opened) and opened[-1:].isspace() and _IN_QUOTES.search(opened, opened.rfind("<")) is None


def _in_tag(before: str) -> bool:
    tag = before.rfind("<")
    return tag >= 0 and _END_OF_TAG.search(before, tag) is None


def _opening(before: str) -> int | None:
    """Where the innermost bracket is that is still open at the end of a text."""
    closed = 0
    for at in range(len(before) - 1, -1, -1):
        if before[at] in ")]}":
            closed += 1
        elif before[at] in "([{":
            if not closed:
                return at
            closed -= 1
    return None
