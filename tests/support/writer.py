"""Another program that changes files: a real process, told over its standard input what to do.

Each method returns when the change is made. It blocks this process meanwhile, on purpose: a server in the test's own
event loop gets no chance to notice the change before the test's next call.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class OtherProgram:
    """The handle of the other process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def write(self, path: Path, text: str) -> None:
        """Overwrites the file in place, or makes it."""
        self._do("write", path, text)

    def replace(self, path: Path, text: str) -> None:
        """Writes beside the file and renames over it, as editors do."""
        self._do("replace", path, text)

    def disguise(self, path: Path, text: str) -> None:
        """Overwrites the file and sets its old time of modification again."""
        self._do("disguise", path, text)

    def rename(self, path: Path, to: Path) -> None:
        self._do("rename", path, str(to))

    def delete(self, path: Path) -> None:
        self._do("delete", path, "")

    def _do(self, what: str, path: Path, argument: str) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([what, str(path), argument]) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


@contextmanager
def other_program() -> Generator[OtherProgram]:
    with subprocess.Popen(
        [sys.executable, "-I", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield OtherProgram(process)
        assert process.stdin
        process.stdin.close()


def _change(what: str, path: Path, argument: str) -> None:
    match what:
        case "write":
            path.write_text(argument)
        case "replace":
            beside = path.with_name(path.name + ".new")
            beside.write_text(argument)
            beside.replace(path)
        case "disguise":
            before = path.stat()
            path.write_text(argument)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        case "rename":
            path.rename(argument)
        case _:
            path.unlink()


if __name__ == "__main__":
    for line in sys.stdin:
        what, path, argument = json.loads(line)
        _change(what, Path(path), argument)
        sys.stdout.write("done\n")
        sys.stdout.flush()
