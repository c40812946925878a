"""What code of Go finds by names that it does not write: exported methods (`MethodByName(name)`, all methods of a value
by their numbers, those that `net/rpc` serves), and exported fields, which encoders and templates read and fill.

By the text: a language server lists what names a symbol. Of which types such code finds methods or fields is not known,
as it is not to Go's own linker. Names in strings and templates, and tags of fields, are known to others.
"""

import re
from collections.abc import Iterator, Sequence

from serena_central.core.errors import PathError
from serena_central.core.pacing import paced
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

_METHODS = re.compile(
    r"""^(?:[^/\n]|/(?!/))*?(?:
        \.MethodByName\(\s*(?!["`\s])
        | (?:<|\brange)\s*[\w.()]{1,100}?\.NumMethod\(\)
        | \brpc\.(?:NewServer|Register(?:Name)?)\(
    )""",
    re.MULTILINE | re.VERBOSE,
)
_WORDS_OF_METHODS = ("MethodByName", "NumMethod", "rpc")
"""Words of which one stands in each such lookup."""

_READING_FIELDS = re.compile(
    r"^(?:import)?[ \t]*(?:[\w.]+[ \t]+)?"
    r'"(encoding/(?:asn1|binary|gob|json|xml)(?:/\w+)?|(?:html|text)/template|reflect)"',
    re.MULTILINE,
)
_WORDS_OF_FIELDS = ("encoding", "template", "reflect")

_REQUIRED = re.compile(
    r"^[ \t]*(?:require[ \t]+)?([^\s/]\S{2,300})[ \t]+v[^\s/]++(?![ \t]*+//[ \t]*+indirect)", re.MULTILINE
)
_LIBRARY = re.compile(
    r"""\b(?:
        avro | bson | bun | cbor | copier | csvutil | deepcopy | echo | elasticsearch | envconfig | fiber | firestore
        | gin | go-arg | go-flags | gocsv | gorm | gqlgen | graphql | hjson | huma | json\w* | koanf | kong
        | mapstructure | mongo\w* | msgpack | pgx | render | scany | sonic | sqlx | structs | thrift | toml | validator
        | viper | xorm | yaml
    )\b""",
    re.VERBOSE,
)
"""In paths of modules that read or fill structures of any type."""


class GoLookups:
    """Knows such things of one project. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._by_kind: dict[SymbolKind, str | None] = {}

    async def reason(self, hit: Hit) -> str | None:
        """Why a method or field may be in use, as a clause."""
        kind = hit.symbol.kind
        if kind not in (SymbolKind.METHOD, SymbolKind.FIELD) or not hit.symbol.name[:1].isupper():
            return None
        if kind not in self._by_kind:
            known = self._calling_methods() if kind == SymbolKind.METHOD else self._reading_fields()
            self._by_kind[SymbolKind(kind)] = await known
        return self._by_kind[SymbolKind(kind)]

    async def _calling_methods(self) -> str | None:
        found = await self._first(_METHODS, _WORDS_OF_METHODS)
        return f"{found[0]} calls exported methods that it does not name" if found else None

    async def _reading_fields(self) -> str | None:
        if found := await self._first(_READING_FIELDS, _WORDS_OF_FIELDS):
            place, match = found
            return f"{place} imports {match[1]}, which reads exported fields by their names"
        for path in self._project.tree.files:
            if path.rpartition("/")[2] == "go.mod":
                for place, match in await self._in_file(_REQUIRED, path):
                    if _LIBRARY.search(match[1]):
                        return f"{place} requires {match[1]}, which reads exported fields by their names"
        return None

    async def _first(self, pattern: re.Pattern[str], words: Sequence[str]) -> tuple[str, re.Match[str]] | None:
        """The first match in code of Go, and where it ends, as `path:line`. `words`: each match holds one."""
        languages, files = self._project.languages, list(self._project.tree.files)
        of_go = [path async for path in paced(files) if languages.language_of(path) == "go"]
        holding = [path for word in words for path in await self._project.navigation.possible.holding(of_go, word)]
        for path in dict.fromkeys(holding):
            if found := next(await self._in_file(pattern, path), None):
                return found
        return None

    async def _in_file(self, pattern: re.Pattern[str], path: str) -> Iterator[tuple[str, re.Match[str]]]:
        try:
            text = (await self._project.read(path)).text
        except PathError:
            return iter(())
        return ((f"{path}:{text.position(one.end()).line0}", one) for one in pattern.finditer(text.content))
