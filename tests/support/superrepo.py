"""A super-repo for tests: in each of four languages one module that declares something, and one that uses it.

`core/total` of every pair is declared in the first and used in the second, through what its language has for that:
`replace` in go.mod, a workspace's link, a path of the environment, a path dependency. The Go modules' go.mod lies one
folder deeper than the module, and a go.work above that knows neither must not count.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

CONFIGURATION = """\
name: platform
type: super-repo
default_module: chariot
modules:
  assets: {path: modules/assets, languages: [go], concerns: [inventory]}
  chariot: {path: modules/chariot, languages: [go], concerns: [backend]}
  ui: {path: modules/ui, languages: [typescript], concerns: [components]}
  web: {path: modules/web, languages: [typescript], concerns: [pages]}
  scoring: {path: modules/scoring, languages: [python], concerns: [risk]}
  scan: {path: modules/scan, languages: [python], concerns: [jobs]}
  engine: {path: modules/engine, languages: [rust], concerns: [matching]}
  nose: {path: modules/nose, languages: [rust], concerns: [secrets]}
routing_hints:
  react: [web]
"""

_TSCONFIG = '{"compilerOptions": {"module": "nodenext", "strict": true, "noEmit": true}, "include": ["src"]}'

FILES = {
    ".serena/project.yml": CONFIGURATION,
    "README.md": "# Platform\n",
    "docs/guide.md": "# Guide\n",
    "scripts/deploy.py": "def deploy() -> None: ...\n",
    ".github/workflows/ci.yml": "on: push\n",
    "go.work": "go 1.21\n\nuse ./elsewhere\n",
    "modules/assets/backend/go.mod": "module example.com/assets\n\ngo 1.21\n",
    "modules/assets/backend/store/store.go": (
        "package store\n\nfunc GoTotal() int { return 1 }\n\nfunc Twice() int { return 2 * GoTotal() }\n"
    ),
    "modules/assets/backend/store/broken.go": 'package store\n\nvar broken int = "text"\n',
    "modules/chariot/backend/go.mod": (
        "module example.com/chariot\n\ngo 1.21\n\nrequire example.com/assets v0.0.0\n\n"
        "replace example.com/assets => ../../assets/backend\n"
    ),
    "modules/chariot/backend/cmd/main.go": (
        'package main\n\nimport "example.com/assets/store"\n\n'
        "func Serve() int { return store.GoTotal() }\n\nfunc main() { Serve() }\n"
    ),
    "modules/chariot/backend/cmd/other.go": (
        'package main\n\nfunc Other() int {\n\tGoTotal := 2\n\treturn GoTotal\n}\n\nvar broken int = "text"\n'
    ),
    "modules/ui/package.json": '{"name": "@platform/ui", "type": "module", "exports": "./src/total.ts"}',
    "modules/ui/tsconfig.json": _TSCONFIG,
    "modules/ui/src/total.ts": (
        "export function tsTotal(): number {\n  return 1;\n}\n\nexport const twice = 2 * tsTotal();\n"
    ),
    "modules/ui/src/broken.ts": 'export const broken: number = "text";\n',
    "modules/web/package.json": '{"name": "@platform/web", "type": "module"}',
    "modules/web/tsconfig.json": _TSCONFIG,
    "modules/web/src/page.ts": (
        'import { tsTotal } from "@platform/ui";\n\nexport function render(): number {\n  return tsTotal();\n}\n'
    ),
    "modules/web/src/broken.ts": "export const tsTotal = 1;\nexport const broken: number = 'text';\n",
    "modules/scoring/pyproject.toml": '[project]\nname = "scoring"\nversion = "1"\n',
    "modules/scoring/scoring/__init__.py": "",
    "modules/scoring/scoring/risk.py": "def py_total() -> int:\n    return 1\n\n\nTWICE = 2 * py_total()\n",
    "modules/scoring/scoring/broken.py": 'broken: int = "text"\n',
    "modules/scan/pyproject.toml": (
        '[project]\nname = "scan"\nversion = "1"\n\n[tool.ty.environment]\nextra-paths = ["../scoring"]\n'
    ),
    "modules/scan/scan/__init__.py": "",
    "modules/scan/scan/jobs.py": (
        "from scoring.risk import py_total\n\n\ndef run() -> int:\n    return py_total()\n\n\n"
        "class Job:\n    def py_total(self) -> int:\n        return 2\n"
    ),
    "modules/scan/scan/broken.py": 'broken: int = "text"\n',
    "modules/engine/Cargo.toml": '[package]\nname = "match-engine"\nversion = "1.0.0"\nedition = "2021"\n',
    "modules/engine/src/lib.rs": (
        "pub fn rs_total() -> i32 {\n    1\n}\n\npub fn twice() -> i32 {\n    2 * rs_total()\n}\n\n"
        "fn broken() -> i32 {\n    true\n}\n"
    ),
    "modules/nose/Cargo.toml": (
        '[package]\nname = "nose"\nversion = "1.0.0"\nedition = "2021"\n\n'
        '[dependencies]\nmatch-engine = { path = "../engine" }\n'
    ),
    "modules/nose/src/lib.rs": (
        "use match_engine::rs_total;\n\npub fn detect() -> i32 {\n    rs_total()\n}\n\n"
        "fn broken() -> i32 {\n    true\n}\n"
    ),
}


class Pair(NamedTuple):
    """A declaring module and its user. `uses` are `path: name path of the holder` in each."""

    language: str
    name: str
    declaring: str
    file: str
    own: tuple[str, ...]
    sibling: str
    uses: tuple[str, ...]
    broken: tuple[str, str]
    """A file with an error in each of them."""


PAIRS = (
    Pair(
        *("go", "GoTotal", "assets", "backend/store/store.go", ("backend/store/store.go: Twice",)),
        *("chariot", ("backend/cmd/main.go: Serve",), ("backend/store/broken.go", "backend/cmd/other.go")),
    ),
    Pair(
        *("typescript", "tsTotal", "ui", "src/total.ts", ("src/total.ts: twice",)),
        *("web", ("src/page.ts: <file>", "src/page.ts: render"), ("src/broken.ts", "src/broken.ts")),
    ),
    Pair(
        *("python", "py_total", "scoring", "scoring/risk.py", ("scoring/risk.py: TWICE",)),
        *("scan", ("scan/jobs.py: <file>", "scan/jobs.py: run"), ("scoring/broken.py", "scan/broken.py")),
    ),
    Pair(
        *("rust", "rs_total", "engine", "src/lib.rs", ("src/lib.rs: twice",)),
        *("nose", ("src/lib.rs: <file>", "src/lib.rs: detect"), ("src/lib.rs", "src/lib.rs")),
    ),
)


def of_pairs(*quick: str) -> pytest.MarkDecorator:
    """Runs a test with each pair, which is slow where its language is not named here. In how siblings are asked and
    edited, languages differ by the names alone under which code mentions a package (tests/unit/projects/superrepo)."""
    slow = pytest.mark.slow
    params = [pytest.param(one, id=one.language, marks=() if one.language in quick else slow) for one in PAIRS]
    return pytest.mark.parametrize("pair", params)


def platform(folder: Path) -> Path:
    """Writes it below `folder`; its real root."""
    root = (folder / "platform").resolve()
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    links = root / "node_modules/@platform"
    links.mkdir(parents=True)
    (links / "ui").symlink_to("../../modules/ui")
    (root / ".git").mkdir()
    return root
