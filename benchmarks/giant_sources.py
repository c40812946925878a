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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.django import BUILD


class Giant(NamedTuple):
    """`fetch` makes the folder and returns the version. `ctags`: arguments that limit ctags to functions, types and
    methods. `first`: the name that is asked for first. `broad`: (tool, arguments) of questions with long answers."""

    title: str
    fetch: Callable[[Path], str]
    ctags: Sequence[str]
    first: str
    substring: str
    broad: Sequence[tuple[str, Mapping[str, Any]]]
    folder: str = ""
    """One that is asked for unused symbols and for its graph."""


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
    return root, version.read_text(encoding="utf-8")


def _kernel(root: Path) -> str:
    """The sources of Debian's kernel, without what Debian adds to .gitignore: it ignores all of it."""
    package = "linux-source-6.1"
    # As root apt downloads as another user, who may not write here: it says so, and downloads all the same.
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


_BROAD = (
    ("get_symbols_overview", {"relative_path": "."}),
    ("list_dir", {"relative_path": ".", "recursive": True}),
    ("search_for_pattern", {"substring_pattern": "return"}),
)
"""Asked of every giant."""

GIANTS = {
    "kernel": Giant(
        "Linux kernel",
        _kernel,
        ("--languages=C", "--langmap=C:.c.h", "--kinds-C=fsugt"),
        "schedule_timeout",
        "schedule_time",
        (
            *_BROAD,
            ("find_symbol", {"name_path_pattern": "init", "substring_matching": True}),
            ("find_symbol", {"name_path_pattern": "kmalloc"}),
            ("find_file", {"file_mask": "*.c", "relative_path": "."}),
            ("get_symbols_overview", {"relative_path": "kernel/sched/core.c"}),
            ("get_symbols_overview", {"relative_path": "drivers/gpu"}),
            ("find_referencing_symbols", {"name_path": "ext4_file_open", "relative_path": "fs/ext4/file.c"}),
        ),
    ),
    "kubernetes": Giant(
        "Kubernetes",
        _kubernetes,
        ("--languages=Go", "--kinds-Go=fst"),
        "NewContainerManager",
        "ContainerManag",
        (
            *_BROAD,
            ("find_symbol", {"name_path_pattern": "New", "substring_matching": True}),
            ("find_symbol", {"name_path_pattern": "Marshal"}),
            ("find_file", {"file_mask": "*.go", "relative_path": "."}),
            ("get_symbols_overview", {"relative_path": "staging/src/k8s.io/api/core/v1/types.go"}),
            ("get_symbols_overview", {"relative_path": "pkg/kubelet"}),
            (
                "find_referencing_symbols",
                {
                    "name_path": "ObjectMeta",
                    "relative_path": "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go",
                },
            ),
        ),
        "pkg/kubelet/cm",
    ),
}
