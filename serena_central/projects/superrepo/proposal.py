"""Proposes a project.yml for a super-repo, for a person to edit: modules, languages, concerns, hints, default.

Every part has a plain rule, so that the person can see why it says what it says. What it is made of comes from
`discovery`; how it counts is the router's business.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec
import yaml

from serena_central.core.quoting import escaped
from serena_central.files.text import read_quickly
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.detection import Detection
from serena_central.projects.superrepo.discovery import SkippedFolder, discover, files_of

PROJECT_FILE = ".serena/project.yml"

LANGUAGE_PART = 0.05
"""A language with less than this part of a module's source files is left out."""

MOST_CONCERNS = 8
README_CHARS = 20_000

_FRAMEWORKS = (
    *("angular", "axum", "celery", "django", "echo", "electron", "express", "fastapi", "flask", "gin", "graphql"),
    *("grpc", "kafka", "nestjs", "next", "nuxt", "numpy", "pandas", "react", "redis", "solid-js", "sqlalchemy"),
    *("svelte", "tauri", "terraform", "tokio", "torch", "vue", "wasm"),
)
"""Names that people say when they mean the module that depends on them."""

_MANIFESTS = ("package.json", "pyproject.toml", "requirements.txt", "go.mod", "Cargo.toml")

_TELLS_NOTHING = frozenset(
    {
        *("app", "apps", "assets", "bin", "build", "cmd", "code", "common", "config", "configs", "core", "data"),
        *("dist", "doc", "docs", "example", "examples", "internal", "lib", "libs", "main", "misc", "modules"),
        *("package", "packages", "pkg", "project", "public", "resources", "scripts", "source", "sources", "src"),
        *("static", "target", "test", "testdata", "testing", "tests", "tools", "utils", "vendor"),
        *("about", "after", "also", "based", "built", "documentation", "find", "from", "getting", "have", "helps"),
        *("into", "library", "many", "module", "more", "most", "other", "provides", "readme", "repository"),
        *("service", "simple", "started", "system", "than", "that", "their", "them", "these", "they", "this", "tool"),
        *("used", "uses", "using", "welcome", "what", "when", "where", "which", "will", "with", "your"),
    }
)
"""Folders and words that nearly every project has."""


class ProposedModule(msgspec.Struct, frozen=True):
    """`files` counts what the module would be served with."""

    name: str
    path: str
    found_by: str
    files: int
    languages: list[str]
    concerns: list[str]


class Proposal(msgspec.Struct, frozen=True):
    name: str
    modules: list[ProposedModule]
    routing_hints: dict[str, list[str]]
    default_module: str | None
    left_out: list[SkippedFolder]

    def as_yaml(self) -> str:
        """The file, with a comment on where each module was found."""
        shown = {
            "name": self.name,
            "type": "super-repo",
            **({"default_module": self.default_module} if self.default_module else {}),
            "modules": {
                module.name: {"path": module.path, "languages": module.languages, "concerns": module.concerns}
                for module in self.modules
            },
            "routing_hints": self.routing_hints,
        }
        found = "".join(
            f"#   {escaped(module.name)}: {module.files} files, found by {module.found_by}\n" for module in self.modules
        )
        if self.left_out:
            found += f"# Not included:\n{self.why_left_out('#   ')}"
        body = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
        return f"{_HEAD}{found}\n{body}"

    def why_left_out(self, indent: str) -> str:
        """A line for each folder that is not a module."""
        return "".join(f"{indent}{escaped(one.path)}: {escaped(one.reason)}\n" for one in self.left_out)


_HEAD = """\
# A proposal: please edit it. The module with the most files is the default. Concerns come from folder names
# and READMEs, hints from frameworks in manifests and from the parts of module names.
# The words of a call score 20 points for a module's name, 10 per hint, 5 per concern, 3 per language.
"""


def propose(root: Path) -> Proposal:
    """The proposal for a real folder; without modules where nothing in it says that there are any."""
    found, left_out = discover(root)
    names = _names([candidate.path for candidate in found])
    analysis_runs = [(root / candidate.path, files_of(root / candidate.path)) for candidate in found]
    concerns = _telling(
        [_concerns(place, files, name) for (place, files), name in zip(analysis_runs, names, strict=True)]
    )
    modules = [
        ProposedModule(name, candidate.path, candidate.found_by, len(files), _languages(place, files), said)
        for candidate, name, (place, files), said in zip(found, names, analysis_runs, concerns, strict=True)
    ]
    largest = max(modules, key=lambda module: module.files, default=None)
    manifests = [_manifests(place, files) for place, files in analysis_runs]
    return Proposal(root.name, modules, _hints(names, manifests), largest.name if largest else None, left_out)


def _names(paths: Sequence[str]) -> list[str]:
    """The last part of each path; the whole path, with dashes, where several would have the same name."""
    last = [path.rpartition("/")[2].lstrip(".") for path in paths]
    return [name if last.count(name) == 1 else path.replace("/", "-") for name, path in zip(last, paths, strict=True)]


def _languages(place: Path, files: Sequence[str]) -> list[str]:
    detection = Detection(place, catalogue())
    counts = Counter(
        language for file in files if (language := detection.language_of(file)) and detection.is_searched(language)
    )
    return [language for language, count in counts.most_common() if count >= LANGUAGE_PART * counts.total()]


def _concerns(place: Path, files: Sequence[str], name: str) -> list[str]:
    """Names of its folders, two levels deep, then words of its README's heading and first paragraph."""
    folders = [part for file in files for part in PurePosixPath(file).parts[:-1][:2]]
    common = [folder.casefold() for folder, _ in Counter(folders).most_common()]
    said = [word.casefold() for word in re.findall(r"[A-Za-z][A-Za-z-]{3,}", _opening(place, files))]
    own = set(_parts(name))
    telling = (
        word for word in (*common, *said) if word not in _TELLS_NOTHING | own and re.fullmatch(r"[a-z][\w-]{2,}", word)
    )
    return list(islice(dict.fromkeys(telling), MOST_CONCERNS))


def _opening(place: Path, files: Sequence[str]) -> str:
    """The first heading and the first paragraph of text in the README."""
    readme = next(
        (file for file in files if file.casefold() in ("readme.md", "readme.rst", "readme.txt", "readme")), None
    )
    if readme is None:
        return ""
    text = _start_of(place / readme)
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n|\n(?==|#)", text) if part.strip()]
    heading = [part.splitlines()[0] for part in paragraphs if part.startswith("#")][:1]
    prose = [part for part in paragraphs if part[0].isalnum()][:1]
    return "\n".join(heading + prose)


def _telling(concerns: list[list[str]]) -> list[list[str]]:
    """Without words that more than half of several modules have."""
    count = Counter(word for words in concerns for word in words)
    most = max(1, len(concerns) // 2)
    return [[word for word in words if count[word] <= most] for words in concerns]


def _hints(names: Sequence[str], manifests: Sequence[str]) -> dict[str, list[str]]:
    """Frameworks that a module's manifests name, then parts of names that no other module has."""
    hints: dict[str, list[str]] = {}
    for name, text in zip(names, manifests, strict=True):
        for framework in _FRAMEWORKS:
            if re.search(rf"(?<![\w-]){re.escape(framework)}(?![\w-])", text):
                hints.setdefault(framework, []).append(name)
    count = Counter(part for name in names for part in set(_parts(name)))
    for name in names:
        for part in parts if len(parts := _parts(name)) > 1 else ():
            if count[part] == 1 and len(part) > 2 and part not in _TELLS_NOTHING:
                hints.setdefault(part, []).append(name)
    return hints


def _manifests(place: Path, files: Sequence[str]) -> str:
    """The texts of the manifests at most one folder deep: a module's own, not those of its examples."""
    near = (file for file in files if file.count("/") <= 1 and file.rpartition("/")[2] in _MANIFESTS)
    return "\n".join(_start_of(place / file) for file in near)


def _parts(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.casefold())


def _start_of(file: Path) -> str:
    return (read_quickly(str(file)) or b"")[: 4 * README_CHARS].decode("utf-8", "replace")[:README_CHARS]
