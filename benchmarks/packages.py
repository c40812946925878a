"""Real packages with their own test suites, in fixed versions from the registries of their languages, in build/bench.

Each is a git repository with one commit, so that what is changed in it can be told, and taken back. What its suite
needs is installed beside it and ignored by git. Their code and their suites run as whoever runs the benchmark.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.django import BUILD
from benchmarks.django import source as django_source

TYPESCRIPT = BUILD.parent / "servers-home" / "servers" / "typescript" / "7.0.2" / "node_modules" / ".bin" / "tsc"

_IGNORED = ".venv/\nnode_modules/\n__pycache__/\n.pytest_cache/\n"

_FAILED = re.compile(
    r"^(?:(\S+?)\(\d+,\d+\): error (TS\d+)|\s*(FAIL\s.*)|((?:FAILED|ERROR):? \S+)|\s*(--- FAIL: \S+)|"
    r"(\S+\.go:\d+:\d+: .*))",
    re.MULTILINE,
)
"""What TypeScript, vitest, pytest and go write of each thing that is wrong."""

_ZOD_BUILT = ("v3", "v4", "v4-mini", "index.cjs", "index.js", "index.d.ts", "index.d.cts")
"""What the published package holds besides its sources: without it they are what the tests import."""

_ZOD_FILES = {
    "tsconfig.json": """{
  "compilerOptions": {
    "target": "es2020",
    "module": "nodenext",
    "moduleResolution": "nodenext",
    "strict": true,
    "noEmit": true,
    "skipLibCheck": true,
    "rewriteRelativeImportExtensions": true,
    "customConditions": ["@zod/source"]
  },
  "include": ["src"]
}
""",
    "vitest.config.ts": """import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["@zod/source"] },
  ssr: { resolve: { conditions: ["@zod/source"] } },
  test: { watch: false, testTimeout: 120_000 },
});
""",
}


class Package(NamedTuple):
    """`needs`: what its code and suite import, pinned. `suite`: commands that write what is wrong.
    `code`: where the code lies that is changed; the rest are tests, docs and examples."""

    name: str
    version: str
    registry: str
    code: str
    needs: Sequence[str] = ()
    suite: Sequence[Sequence[str]] = ()
    environment: Mapping[str, str] = {}

    @property
    def title(self) -> str:
        return f"{self.name.rpartition('/')[2]} {self.version}"


_PYTEST = (".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
_PYTHON = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "src"}

_DJANGO = BUILD / "environments" / "django"
"""Not in its folder, which other rows measure without one."""

_RICH_SUITE = """
import contextlib, importlib, io, pkgutil, runpy, rich
for module in pkgutil.walk_packages(rich.__path__, "rich."):
    try:
        importlib.import_module(module.name)
    except BaseException:
        print("ERROR", module.name)
for name in ("rich.__main__", "rich.table", "rich.tree", "rich.pretty", "rich.markup", "rich.color", "rich.columns"):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_module(name, run_name="__main__")
    except Exception:
        print("ERROR", name)
"""
"""It is published without its tests: its modules are imported, and those that show themselves are run."""

PACKAGES = {
    "django": Package(
        "django",
        "5.2",
        "pypi",
        "django/utils",
        ("asgiref==3.8.1", "sqlparse==0.5.3"),
        ((str(_DJANGO / "bin/python"), "tests/runtests.py", "--parallel=1", "utils_tests", "template_tests"),),
        {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "."},
    ),
    "rich": Package(
        "rich",
        "14.0.0",
        "pypi",
        "rich",
        ("markdown-it-py==3.0.0", "pygments==2.19.1"),
        ((".venv/bin/python", "-c", _RICH_SUITE),),
        {"PYTHONDONTWRITEBYTECODE": "1"},
    ),
    "flask": Package(
        "flask",
        "3.1.0",
        "pypi",
        "src",
        (
            *("werkzeug==3.1.3", "jinja2==3.1.5", "itsdangerous==2.2.0", "click==8.1.8", "blinker==1.9.0"),
            *("asgiref==3.8.1", "python-dotenv==1.0.1", "pytest==8.3.4"),
        ),
        # It asks for the version of an installed package.
        ((*_PYTEST, "tests", "--deselect", "tests/test_cli.py::test_get_version"),),
        _PYTHON,
    ),
    "cobra": Package(
        "github.com/spf13/cobra",
        "1.9.1",
        "go",
        "",
        # TestFailGen looks at a file that may not be written: root may write any. TestDeadcodeElimination finds
        # reflection in the binary, which planted symbols bring with them.
        suite=(("go", "test", "-skip", "TestFailGen|TestDeadcodeElimination", "./..."),),
    ),
    "zod": Package(
        "zod",
        "3.25.76",
        "npm",
        "src",
        (
            *("vitest@3.2.4", "@types/node@22.15.0", "benchmark@2.1.4", "@types/benchmark@2.1.5"),
            *("recheck@4.5.0", "typescript@5.8.3"),
        ),
        ((str(TYPESCRIPT), "--noEmit"), ("node_modules/.bin/vitest", "run", "src/v4/classic")),
    ),
}


def source(package: Package) -> Path:
    """The root of a package, as it was published. Raises CalledProcessError when it can't be fetched."""
    root = BUILD / f"{package.name.rpartition('/')[2]}-{package.version}"
    if package.name == "django" and not _DJANGO.exists():
        django_source()
        _make_environment(_DJANGO, package)
    if not root.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        if package.name != "django":
            {"pypi": _from_pypi, "go": _from_go, "npm": _from_npm}[package.registry](package, root)
    if not (root / ".git" / "refs" / "heads").is_dir() or not any((root / ".git" / "refs" / "heads").iterdir()):
        with (root / ".gitignore").open("a") as file:
            file.write(_IGNORED)
        git(root, "init", "--quiet")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "as published")
    return root


def git(root: Path, *arguments: str) -> str:
    """What git says about a package."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def failures(package: Package, root: Path) -> frozenset[str]:
    """What the package's own suite says against it as it is now, as it stays the same when lines move."""
    found: set[str] = set()
    for command in package.suite:
        done = subprocess.run(
            command,
            cwd=root,
            env={**os.environ, **package.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=1800,
            check=False,
        )
        lines = [re.sub(r"\d+", "0", "".join(match.groups(""))) for match in _FAILED.finditer(done.stdout)]
        found.update(lines or ([f"{command[0]} ended with {done.returncode}"] if done.returncode else []))
    return frozenset(found)


def _from_pypi(package: Package, root: Path) -> None:
    # A source distribution of pure Python: nothing of it is run but the metadata of its build.
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
    subprocess.run([*pip, "--dest", str(BUILD), f"{package.name}=={package.version}"], check=True)
    with tarfile.open(BUILD / f"{package.name}-{package.version}.tar.gz") as archive:
        archive.extractall(BUILD, filter="data")
    _make_environment(root / ".venv", package)


def _make_environment(folder: Path, package: Package) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", "--quiet", *package.needs], check=True)


def _from_go(package: Package, root: Path) -> None:
    download = ["go", "mod", "download", f"{package.name}@v{package.version}"]
    subprocess.run(download, check=True, cwd=BUILD)
    cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    shutil.copytree(Path(cache) / f"{package.name}@v{package.version}", root)
    for path in (root, *root.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def _from_npm(package: Package, root: Path) -> None:
    packed = ["npm", "pack", "--silent", f"{package.name}@{package.version}", "--pack-destination", str(BUILD)]
    subprocess.run(packed, check=True)
    with tarfile.open(BUILD / f"{package.name}-{package.version}.tgz") as archive:
        archive.extractall(BUILD / "unpacked-npm", filter="data")
    shutil.move(BUILD / "unpacked-npm" / "package", root)
    for built in _ZOD_BUILT:
        shutil.rmtree(root / built, ignore_errors=True)
        (root / built).unlink(missing_ok=True)
    for name, text in _ZOD_FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    subprocess.run(
        ["npm", "install", "--no-save", "--ignore-scripts", "--silent", *package.needs], cwd=root, check=True
    )
