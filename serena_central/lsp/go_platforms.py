"""Files of Go that are not built on this platform, and for what. Pure.

gopls answers about such a file, too, but loads the whole project once more for its platform first: in Kubernetes for
10 to 30 s, in which it answers nothing else. Then it reads all that the project depends on, for 100 s of CPU time.
Both end when the file is closed.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

LOADS_S = 20.0
"""How long that takes on most machines: whoever has less time left does not begin it."""

BUILD_LINES = re.compile(rb"^//go:build[ \t]+([^\r\n]*)", re.MULTILINE)
"""Finds the build constraints of a file."""

_HERE = {"win32": "windows"}.get(sys.platform, sys.platform)

_SYSTEMS = """
    aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris wasip1 windows
"""
_PROCESSORS = """
    386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm
"""
_IN_NAMES = frozenset({*_SYSTEMS.split(), *_PROCESSORS.split()})

_OTHERS = frozenset(_SYSTEMS.split()) - {_HERE}
"""Other operating systems, as Go names them: at the ends of file names, and in build constraints."""

_FOR_OTHERS = frozenset({f"!{_HERE}", *_OTHERS})
"""Parts of a constraint that don't hold here."""


def other_platform_of_text(path: str, text: str) -> str | None:
    """As `other_platform`, of a file with this text."""
    return other_platform(path, BUILD_LINES.findall(text.encode("utf-8", "replace")))


def build_condition(path: str, source: bytes) -> tuple[str, ...]:
    """What decides whether a file of Go is built: the endings of its name, and its build constraints."""
    endings = (one for one in _endings(path) if one in _IN_NAMES)
    return *endings, *(one.decode("utf-8", "replace").strip() for one in BUILD_LINES.findall(source))


def other_platform(path: str, constraints: Iterable[bytes]) -> str | None:
    """What a file of Go is built for, if that is other operating systems alone, as far as it is plain: a system, or a
    build constraint. `constraints`: what `BUILD_LINES` finds in it."""
    for ending in _endings(path):
        if ending in _OTHERS:
            return ending
    for one in constraints:
        constraint = one.decode("utf-8", "replace").strip()
        if any(part.strip() in _FOR_OTHERS for part in constraint.split("&&")):
            return constraint
    return None


def _endings(path: str) -> list[str]:
    """Of a file's name: a system, or a system and a CPU, in those that are not for all."""
    return PurePosixPath(path).stem.removesuffix("_test").split("_")[1:][-2:]
