"""When there is time to ask about files that are built on another platform.

For the first of a platform a server may load the project once more, and answers nothing meanwhile, whether or not
anybody waits for it any more. So these files come last and one after the other, and none is begun that would leave the
server loading when a call has ended: a further call begins with it.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import PurePosixPath

from serena_central.lsp.go_platforms import LOADS_S

QUICK_S = 5.0
"""Whoever answers sooner has loaded what it needs; the next file is probably for the same platform."""


class OtherPlatforms:
    """Of one call, and the files of one project."""

    def __init__(self) -> None:
        self._is_quick = False

    def in_time(self, left_s: float, *, is_first: bool) -> bool:
        """Whether a file may be asked about with so many seconds left; what `is_first` of a call always may."""
        return is_first or self._is_quick or left_s >= LOADS_S

    @contextmanager
    def asking(self) -> Generator[None]:
        """Around the questions about one file."""
        began = time.monotonic()
        self._is_quick = False
        yield
        self._is_quick = time.monotonic() - began < QUICK_S


def platform_of(path: str) -> str:
    """What a file's name says of its platform, to have those of one stand together: `windows`, `unsupported`."""
    return PurePosixPath(path).stem.removesuffix("_test").rpartition("_")[2]
