"""Sources of C and C++ without what their conditions leave out: what a compiler, and so clangd, sees of them."""

import re
import subprocess
from pathlib import Path


def is_complete(path: Path, root: Path) -> bool:
    """Whether a file compiles by itself: some headers are made to be included after others, and clangd guesses."""
    command = ["gcc", "-fsyntax-only", "-w", *_flags(path, root), str(path)]
    return subprocess.run(command, check=False, capture_output=True, cwd=root).returncode == 0


_MARKER = re.compile(rb'# (\d+) "([^"]*)"')


def compiled(path: Path, root: Path) -> bytes:
    """The text of a file, with blanks in the lines that its conditions (`#ifdef`) leave out under the flags of the
    root's compile_flags.txt. Needs gcc; raises CalledProcessError for what it can't read."""
    command = ["gcc", "-E", "-fdirectives-only", *_flags(path, root), str(path)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=root)
    seen, line, is_own = set[int](), 0, False
    for text in done.stdout.split(b"\n"):
        if marker := _MARKER.match(text):
            line, is_own = int(marker[1]), marker[2] == str(path).encode()
            continue
        if is_own and text.strip():
            seen.add(line)
        line += 1
    kept: list[bytes] = []
    is_directive = False
    for number, text in enumerate(path.read_bytes().split(b"\n"), 1):
        is_directive = is_directive or text.lstrip().startswith(b"#")
        kept.append(text if number in seen or is_directive else b"")
        is_directive = is_directive and text.endswith(b"\\")
    return b"\n".join(kept)


def _flags(path: Path, root: Path) -> list[str]:
    flags = (root / "compile_flags.txt").read_text().split()
    return [*flags, "-x", "c++" if path.suffix == ".cc" or "-xc++" in flags else "c"]
