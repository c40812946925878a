"""Files of JavaScript and TypeScript that a framework or a tool loads by their paths, and uses what they export by its
name: pages, routes, hooks, stories, configurations. Pure.

No code imports them, and a package that is private publishes nothing: without this, what they export passes for unused.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from serena_central.analysis.keep_rules import outermost
from serena_central.core.text import Text
from serena_central.symbols.index import Hit

ENDING = re.compile(r"\.(?:[cm]?[jt]sx?|mdx)\Z")

_NEXT_APP = """
    page layout template loading error global-error not-found forbidden unauthorized default route sitemap robots
    manifest icon apple-icon opengraph-image twitter-image
"""

_FILES: Mapping[str, str] = {
    "next": rf"(?:src/)?(?:app/(?:.+/)?(?:{'|'.join(_NEXT_APP.split())})|pages/.+|middleware|proxy"
    r"|instrumentation(?:-client)?|mdx-components)",
    "@remix-run/": r"app/(?:root|entry\.(?:client|server)|routes|routes/.+)",
    "@react-router/dev": r"app/(?:root|entry\.(?:client|server)|routes|routes/.+)",
    "@sveltejs/kit": r"src/(?:routes/(?:.+/)?\+(?:page|layout|server|error).*|params/.+"
    r"|hooks(?:\.(?:client|server))?|service-worker(?:/index)?|instrumentation\.server)",
    "nuxt": r"(?:app/|src/)?(?:(?:pages|layouts|middleware|plugins)/.+|app\.config)"
    r"|server/(?:api|routes|middleware|plugins|tasks)/.+",
    "nitropack": r"(?:api|routes|middleware|plugins|tasks)/.+",
    "astro": r"src/(?:pages/.+|middleware(?:/index)?|content(?:/config|\.config)|actions/index)",
    "gatsby": r"gatsby-(?:node|config|browser|ssr)|src/(?:pages|templates|api)/.+",
    "expo-router": r"(?:src/)?app/.+",
    "@solidjs/start": r"src/(?:routes/.+|middleware(?:/index)?|entry-(?:client|server))",
    "@tanstack/react-start": r"(?:src|app)/(?:routes/.+|router|client|server)",
    "@builder.io/qwik-city": r"src/routes/.+",
    "@redwoodjs/": r"(?:api/src/(?:functions|services|graphql|directives)|web/src/pages)/.+",
    "@netlify/functions": r"netlify/(?:edge-)?functions/.+",
    "@vercel/node": r"api/.+",
    "wrangler": r"functions/.+",
    "knex": r"(?:.+/)?(?:migrations|seeds)/.+",
    "sequelize": r"(?:.+/)?(?:migrations|seeders)/.+",
    "@feathersjs/feathers": r"migrations/.+",
    "@fastify/autoload": r"(?:.+/)?(?:routes|plugins)/.+",
}
"""A dependency, or with a `/` at its end the beginning of such names → paths below the package, without endings."""

_ANYWHERE = re.compile(
    r"(?:.+/)?(?:[\w.-]+\.(?:stories|story|config)|__mocks__/.+|\.(?:eslintrc|prettierrc|mocharc|babelrc|puppeteerrc))"
)
"""Such files of Storybook, of tests, and configurations of whatever tool."""

_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


LISTS_KEPT = 8
"""Texts of which is remembered what they export: many symbols of one file are asked about in turn."""

_LIST = re.compile(r"export(?<![\w$.]export)\s*\{([^{}]*)\}(?!\s*from\b)")
_DEFAULT = re.compile(r"export(?<![\w$.]export)(?:\s+default\s+|\s*=\s*)([\w$]+)(?=\s*(?:;|\n|\Z))")


class Exported(NamedTuple):
    """Under what name others may have a symbol."""

    is_default: bool


def exported(hit: Hit, text: Text) -> Exported | None:
    """Whether a symbol, or what it is part of, is exported from its file."""
    top = hit.file.symbols[outermost(hit)]
    line = text.line(top.name_line).lstrip()
    if line.startswith("export"):
        return Exported(line.startswith("export default"))
    listed, default = _listed(text.content)
    return Exported(is_default=top.name in default) if top.name in listed | default else None


@lru_cache(maxsize=LISTS_KEPT)
def _listed(content: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a text exports apart from what defines them, and those of the default export."""
    lists = (one.partition(" as ")[0].strip() for found in _LIST.finditer(content) for one in found[1].split(","))
    return frozenset(lists), frozenset(one[1] for one in _DEFAULT.finditer(content))


class FrameworkFiles:
    """Knows the manifests of one project. `read` gives the text of a root-relative file, "" if it can't be read."""

    def __init__(self, files: Collection[str], read: Callable[[str], str]) -> None:
        self._files = files
        self._read = read
        self._known: dict[str, Collection[str]] = {}

    def reason(self, path: str) -> str | None:
        """Who loads a file, as a clause about what it exports."""
        loader = self._loader(path)
        return f"{loader} loads its file by the path, and may use what it exports" if loader else None

    def _loader(self, path: str) -> str | None:
        bare = ENDING.sub("", path)
        if bare == path:
            return None
        if _ANYWHERE.fullmatch(bare):
            return "a tool"
        for folder in map(str, PurePosixPath(path).parents):
            below = bare if folder == "." else bare[len(folder) + 1 :]
            for dependency in self._dependencies("" if folder == "." else f"{folder}/"):
                if _pattern_of(dependency).fullmatch(below):
                    return dependency
        return None

    def _dependencies(self, folder: str) -> Collection[str]:
        """Those of the package in a folder that load files."""
        if folder not in self._known:
            manifest = f"{folder}package.json"
            self._known[folder] = _loading(self._read(manifest)) if manifest in self._files else ()
        return self._known[folder]


_NONE = re.compile(r"(?!)")
_PATTERNS = {name: re.compile(pattern) for name, pattern in _FILES.items()}
_FAMILIES = tuple(name for name in _FILES if name.endswith("/"))


def _pattern_of(dependency: str) -> re.Pattern[str]:
    family = next((one for one in _FAMILIES if dependency.startswith(one)), dependency)
    return _PATTERNS.get(family, _NONE)


def _loading(manifest: str) -> list[str]:
    """The dependencies of a package that load files by their paths."""
    try:
        told: object = json.loads(manifest)
    except ValueError:
        return []
    tables = [cast("dict[str, Any]", told).get(key) for key in _DEPENDENCIES] if isinstance(told, dict) else []
    names = [name for table in tables if isinstance(table, dict) for name in cast("dict[str, Any]", table)]
    return [name for name in names if name in _FILES or name.startswith(_FAMILIES)]
