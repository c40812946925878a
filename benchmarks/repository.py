"""A repository of any size, as large ones are: languages mixed, names spread, much that is ignored, a second branch.

Four languages, files with 24 definitions each, 100 files to a folder; names are spread as in real code: a few that
thousands of files have, and many that one file has. File `n` holds `only_n_3`; on the branch `OTHER` every 21st
file holds `other_n_3` instead, and of those each tenth is gone and has a successor `Later<n>.py`.
"""

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

FILES_PER_FOLDER = 100
DEFINITIONS = 24

OTHER = "other"
CHANGED_EVERY = 21
GONE_EVERY = 210
"""Of those that the other branch changes."""

IGNORED = ("node_modules", "vendored", "build/out")
"""Ignored folders at the root; a tenth of all files lies in them, and a `node_modules` in each folder of the rest."""

_COMMON = [
    f"{verb}_{what}" for verb in ("get", "set", "make", "read", "load") for what in ("name", "size", "all", "one")
]


def _python(name: str, members: Sequence[str], filler: str) -> str:
    methods = "".join(f"    def {m}(self, value):\n        # {filler}\n        return value\n\n" for m in members)
    return f"class {name}:\n{methods}"


def _rust(name: str, members: Sequence[str], filler: str) -> str:
    methods = "".join(
        f"    fn {m}(value: i32) -> i32 {{\n        // {filler}\n        value\n    }}\n" for m in members
    )
    return f"struct {name};\nimpl {name} {{\n{methods}}}\n"


def _go(name: str, members: Sequence[str], filler: str) -> str:
    methods = (f"func (v *{name}) {m}(value int) int {{\n\t// {filler}\n\treturn value\n}}\n" for m in members)
    return f"package p\n\ntype {name} struct{{}}\n\n" + "\n".join(methods)


def _java(name: str, members: Sequence[str], filler: str) -> str:
    methods = "".join(
        f"    int {m}(int value) {{\n        // {filler}\n        return value;\n    }}\n" for m in members
    )
    return f"public class {name} {{\n{methods}}}\n"


LANGUAGES: Sequence[tuple[str, Callable[[str, Sequence[str], str], str]]] = (
    ("py", _python),
    ("rs", _rust),
    ("go", _go),
    ("java", _java),
)


def path_of(number: int) -> str:
    """Where a file lies, relative to the root."""
    folder = number // FILES_PER_FOLDER
    return f"part{folder // 50}/unit{folder}/Unit{number}.{LANGUAGES[number % len(LANGUAGES)][0]}"


def changed_by_other(files: int) -> range:
    """Numbers of the files that the other branch changes."""
    return range(0, files, CHANGED_EVERY)


def is_gone(number: int) -> bool:
    """Whether the other branch has no such file, of those that it changes."""
    return number % GONE_EVERY == 0


def successor_of(number: int) -> str:
    """Where the other branch has what it took from a file that is gone."""
    return path_of(number).replace("Unit", "Later").rpartition(".")[0] + ".py"


def generate(root: Path, files: int, bytes_per_file: int) -> Path:
    """Writes the repository to `root`, which must not exist, and commits its two branches; the first is checked out.

    Raises CalledProcessError when git fails.
    """
    dice = random.Random(files)
    partial = root.with_name(root.name + ".partial")
    filler = "x" * max(bytes_per_file // DEFINITIONS - 60, 8)
    common = {number: dice.sample(_COMMON, 8) for number in range(files)}

    def write(number: int, prefix: str) -> None:
        own = [f"{prefix}_{number}_{member}" for member in range(DEFINITIONS - 9)]
        _, text = LANGUAGES[number % len(LANGUAGES)]
        (partial / path_of(number)).write_text(text(f"Unit{number}", own + common[number], filler), encoding="utf-8")

    for number in range(files):
        if number % FILES_PER_FOLDER == 0:
            _folder(partial / path_of(number))
        write(number, "only")
    (partial / "go.mod").write_text("module giant\n", encoding="utf-8")
    (partial / ".gitignore").write_text("node_modules/\n/vendored/\n/build/\n", encoding="utf-8")
    _write_ignored(partial, files)
    _git(partial, "init", "--quiet", "--initial-branch=main")
    _commit(partial, "main")
    _git(partial, "checkout", "--quiet", "-b", OTHER)
    for number in changed_by_other(files):
        if not is_gone(number):
            write(number, "other")
        else:
            (partial / path_of(number)).unlink()
            later = _python(f"Later{number}", [f"other_{number}_3"], filler)
            (partial / successor_of(number)).write_text(later, encoding="utf-8")
    _commit(partial, OTHER)
    _git(partial, "checkout", "--quiet", "main")
    partial.rename(root)
    return root


def _folder(file: Path) -> None:
    own = file.parent / "node_modules" / "inner"
    own.mkdir(parents=True)
    (own / "index.py").write_text("class Ignored: pass\n", encoding="utf-8")


def _write_ignored(root: Path, files: int) -> None:
    for number in range(files // 10):
        folder = root / IGNORED[number % len(IGNORED)] / f"package{number // FILES_PER_FOLDER}" / "src"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"Ignored{number}.py").write_text("class Ignored: pass\n", encoding="utf-8")


def _commit(root: Path, message: str) -> None:
    _git(root, "-c", "core.looseCompression=1", "add", "--all")
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    _git(root, *identity, "commit", "--quiet", "--message", message)


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


def checkout(root: Path, branch: str) -> None:
    """Raises CalledProcessError when git refuses."""
    _git(root, "checkout", "--quiet", branch)
