"""Large repositories of others, as they were published: fetched when a benchmark asks for them, kept in build/bench.

A repository is a line in `GIANTS` and a function that fetches it. ctags, which is asked what they define, is
Universal Ctags (`apt install universal-ctags`).
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.django import BUILD

Question = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


class Giant(NamedTuple):
    """`fetch` makes the folder and returns the version. `ctags`: arguments that limit ctags to functions, types and
    methods. `first`: the name that is asked for first. `symbol`: the file and name path of one that is used everywhere.
    `part`: what stands in many names. `file`: one with many symbols. `more`: further (tool, arguments) with long
    answers."""

    title: str
    fetch: Callable[[Path], str]
    ctags: Sequence[str]
    first: str
    symbol: tuple[str, str]
    part: str
    file: str
    folder: str
    """One that is asked for unused symbols, for its graph, and for broken references."""
    more: Sequence[Question] = ()

    @property
    def broad(self) -> Iterator[Question]:
        """Each tool that reads, with arguments to which it has much to say; those first that ask no server."""
        file, name = self.symbol
        symbol = {"name_path": name, "relative_path": file}
        yield "get_symbols_overview", {"relative_path": "."}
        yield "get_symbols_overview", {"relative_path": self.file}
        yield "get_symbols_overview", {"relative_path": self.folder}
        yield "find_all_symbols", {}
        yield "find_symbol", {"name_path_pattern": name}
        yield "find_symbol", {"name_path_pattern": name, "relative_path": file, "include_body": True}
        yield "find_symbol", {"name_path_pattern": self.part, "substring_matching": True}
        yield "list_dir", {"relative_path": ".", "recursive": True}
        yield "find_file", {"file_mask": "*", "relative_path": "."}
        yield "read_file", {"relative_path": self.file}
        yield "search_for_pattern", {"substring_pattern": "return"}
        yield "search_for_pattern", {"substring_pattern": f"{self.first}.*", "context_lines_after": 5}
        yield "list_memories", {}
        yield "check_onboarding_performed", {}
        yield "onboarding", {}
        yield from self.more
        yield "find_declaration", {"relative_path": file, "regex": rf"\b({name})\b"}
        yield "get_diagnostics_for_file", {"relative_path": self.file}
        yield "get_diagnostics_for_symbol", symbol
        yield "find_referencing_symbols", symbol
        yield "find_implementations", symbol
        yield "get_type_hierarchy", symbol
        yield "get_call_hierarchy", symbol
        yield "get_symbol_context", symbol
        for tool in ("find_unused_symbols", "dependency_graph", "check_references"):
            yield tool, {"relative_path": self.folder}


def material(name: str) -> tuple[Path, str]:
    """The root of a giant, a checkout of its own, and its version. Raises CalledProcessError when it can't be had."""
    root, version = BUILD / f"giant-{name}", BUILD / f"giant-{name}.version"
    if not version.exists():
        shutil.rmtree(root, ignore_errors=True)
        BUILD.mkdir(parents=True, exist_ok=True)
        fetched = GIANTS[name].fetch(root)
        # Else the ignore rules of this repository would apply to it.
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
        version.write_text(fetched, encoding="utf-8")
    return root.resolve(), version.read_text(encoding="utf-8")


def _kernel(root: Path) -> str:
    """The sources of Debian's kernel, without what Debian adds to .gitignore: it ignores all of it."""
    package = "linux-source-6.1"
    # As root apt downloads as another user, who may not write here: it says so, and downloads anyway.
    subprocess.run(["apt-get", "download", "--quiet", "--quiet", package], cwd=BUILD, check=True)
    (archive,) = BUILD.glob(f"{package}_*.deb")
    unpacked = BUILD / "unpacked-kernel"
    subprocess.run(["dpkg", "-x", str(archive), str(unpacked)], check=True)
    (sources,) = (unpacked / "usr" / "src").glob("*.tar.xz")
    subprocess.run(["tar", "xf", str(sources), "-C", str(unpacked)], check=True)
    (unpacked / package).rename(root)
    shutil.rmtree(unpacked)
    archive.unlink()
    rules = root / ".gitignore"
    lines = rules.read_text(encoding="utf-8").splitlines()
    rules.write_text("\n".join(line for line in lines if line != "/*"), encoding="utf-8")
    return f"Debian {package} {archive.name.split('_')[1]}"


KUBERNETES = "1.34.2"


def _kubernetes(root: Path) -> str:
    """Kubernetes as it is checked out: the Go proxy leaves out the staging modules and what is vendored."""
    main = _go_module("k8s.io/kubernetes", f"v{KUBERNETES}")
    shutil.copytree(main, root)
    _make_writable(root)
    manifest = (root / "go.mod").read_text(encoding="utf-8")
    staged = re.findall(r"^\s*(k8s\.io/[a-z-]+) => \./staging/", manifest, re.MULTILINE)
    for module in staged:
        folder = root / "staging" / "src" / module
        shutil.copytree(_go_module(module, f"v0{KUBERNETES[1:]}"), folder, dirs_exist_ok=True)
        _make_writable(folder)
    subprocess.run(["go", "work", "vendor"], cwd=root, check=True)
    return f"Kubernetes {KUBERNETES} with {len(staged)} staging modules and vendor"


def _go_module(path: str, version: str) -> Path:
    """A module in Go's cache, got from its proxy if need be. Raises CalledProcessError."""
    asking = ["go", "mod", "download", "-json", f"{path}@{version}"]
    done = subprocess.run(asking, cwd=BUILD, stdout=subprocess.PIPE, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def _make_writable(root: Path) -> None:
    """Go's cache is read-only."""
    for folder, _, files in os.walk(root):
        for path in (folder, *(os.path.join(folder, file) for file in files)):  # noqa: PTH118 - 20,000 times
            os.chmod(path, os.stat(path).st_mode | stat.S_IWUSR)  # noqa: PTH101, PTH116


_POLARS = "0.46.0"

_FEATURES = "lazy parquet json sql streaming temporal strings ipc avro"


def _polars(root: Path) -> str:
    """polars' crates as crates.io has them, in one workspace in which they are used by path."""
    unpacked = BUILD / "unpacked-polars"
    (unpacked / "src").mkdir(parents=True, exist_ok=True)
    (unpacked / "src" / "lib.rs").touch()
    features = ", ".join(f'"{name}"' for name in _FEATURES.split())
    (unpacked / "Cargo.toml").write_text(
        '[package]\nname = "fetching"\nversion = "0.0.0"\nedition = "2021"\n'
        f'[dependencies]\npolars = {{ version = "={_POLARS}", features = [{features}] }}\n',
        encoding="utf-8",
    )
    home = unpacked / "cargo"
    environment = {**os.environ, "CARGO_HOME": str(home)}
    subprocess.run(["cargo", "fetch", "--quiet"], cwd=unpacked, env=environment, check=True)
    crates = sorted((home / "registry" / "src").glob("*/polars*"))
    root.mkdir(parents=True)
    for crate in crates:
        shutil.copytree(crate, root / "crates" / crate.name.rpartition("-")[0])
    names = [folder.name for folder in sorted((root / "crates").iterdir())]
    paths = "".join(f'{name} = {{ path = "crates/{name}" }}\n' for name in names)
    workspace = f'[workspace]\nresolver = "2"\nmembers = ["crates/*"]\n\n[patch.crates-io]\n{paths}'
    (root / "Cargo.toml").write_text(workspace, encoding="utf-8")
    shutil.rmtree(unpacked)
    return f"polars {_POLARS}, {len(crates)} crates of crates.io"


_TYPESCRIPT = {
    "effect": "3.22.4",
    "rxjs": "7.8.2",
    "viem": "2.57.20",
    "ethers": "6.17.0",
    "zod": "4.6.7",
    "tldraw": "3.15.6",
    "@tldraw/editor": "3.15.6",
    "@tldraw/store": "3.15.6",
    "@tldraw/tlschema": "3.15.6",
    "@reduxjs/toolkit": "2.14.0",
    "@effect/platform": "0.97.2",
}
"""Packages of npm that ship their sources, which one project of more than 3,000 files is made of."""


def _typescript(root: Path) -> str:
    """The TypeScript sources of these packages, side by side, with one tsconfig.json."""
    unpacked = BUILD / "unpacked-typescript"
    unpacked.mkdir(parents=True, exist_ok=True)
    (unpacked / "package.json").write_text('{"private": true}', encoding="utf-8")
    wanted = [f"{name}@{version}" for name, version in _TYPESCRIPT.items()]
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--silent"]
    subprocess.run(["npm", "install", *options, *wanted], cwd=unpacked, check=True)
    for name in _TYPESCRIPT:
        package = unpacked / "node_modules" / name
        for file in [*package.rglob("*.ts"), *package.rglob("*.tsx")]:
            inside = file.relative_to(package)
            if file.is_file() and not file.name.endswith(".d.ts") and "node_modules" not in inside.parts:
                target = root / "packages" / name / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
    settings = '{"compilerOptions": {"target": "es2022", "module": "preserve", "jsx": "preserve", "noEmit": true}}'
    (root / "tsconfig.json").write_text(settings, encoding="utf-8")
    shutil.rmtree(unpacked)
    return "npm " + ", ".join(wanted)


_HOME_ASSISTANT = "2025.4.4"


def _home_assistant(root: Path) -> str:
    """What PyPI has of Home Assistant: all of it but its tests."""
    unpacked = BUILD / "unpacked-home-assistant"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    wanted = ["--python-version", "3.13", "--dest", str(unpacked), f"homeassistant=={_HOME_ASSISTANT}"]
    subprocess.run([*pip, *wanted], check=True)
    (wheel,) = unpacked.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root)
    shutil.rmtree(unpacked)
    return f"homeassistant {_HOME_ASSISTANT} from PyPI, without its tests"


GIANTS = {
    "kernel": Giant(
        "Linux kernel",
        _kernel,
        ("--languages=C", "--langmap=C:.c.h", "--kinds-C=fsugt"),
        first="schedule_timeout",
        symbol=("include/linux/slab.h", "kmalloc"),
        part="init",
        file="kernel/sched/core.c",
        folder="ipc",
        more=(
            ("get_symbols_overview", {"relative_path": "drivers/gpu"}),
            ("find_file", {"file_mask": "*.c", "relative_path": "."}),
            ("find_referencing_symbols", {"name_path": "ext4_file_open", "relative_path": "fs/ext4/file.c"}),
        ),
    ),
    "kubernetes": Giant(
        "Kubernetes",
        _kubernetes,
        ("--languages=Go", "--kinds-Go=fst"),
        first="NewContainerManager",
        symbol=("staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go", "ObjectMeta"),
        part="New",
        file="staging/src/k8s.io/api/core/v1/types.go",
        folder="pkg/kubelet/cm",
        more=(("find_symbol", {"name_path_pattern": "Marshal"}),),
    ),
    "polars": Giant(
        "polars",
        _polars,
        ("--languages=Rust", "--kinds-Rust=fsgitP"),
        first="DataFrame",
        symbol=("crates/polars-core/src/frame/mod.rs", "DataFrame"),
        part="get",
        file="crates/polars-core/src/frame/mod.rs",
        folder="crates/polars-core/src/frame",
        more=(
            ("find_symbol", {"name_path_pattern": "new"}),
            ("find_symbol", {"name_path_pattern": "LazyFrame/collect"}),
        ),
    ),
    "typescript": Giant(
        "TypeScript sources",
        _typescript,
        ("--languages=TypeScript", "--langmap=TypeScript:.ts.tsx", "--kinds-TypeScript=fcige"),
        first="Observable",
        symbol=("packages/rxjs/src/internal/Observable.ts", "Observable"),
        part="get",
        file="packages/effect/src/Effect.ts",
        folder="packages/rxjs/src/internal/observable",
        more=(("find_symbol", {"name_path_pattern": "make"}),),
    ),
    "home-assistant": Giant(
        "Home Assistant",
        _home_assistant,
        ("--languages=Python", "--kinds-Python=cfm"),
        first="async_setup_entry",
        symbol=("homeassistant/core.py", "HomeAssistant"),
        part="async",
        file="homeassistant/core.py",
        folder="homeassistant/components/mqtt",
    ),
}
