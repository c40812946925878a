"""An applier on a real folder, and a disk that fails where a test says so."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from serena_central.editing.change import FileChange, Operation
from serena_central.editing.disk import Disk, HeldName
from serena_central.editing.journal import Journal
from serena_central.editing.transaction import Applier
from serena_central.files.text import read_text


class FailingDisk(Disk):
    """Calls `fault(method, path)` before everything that changes the disk; what that raises happens."""

    def __init__(self, fault: Callable[[str, Path], None]) -> None:
        self._fault = fault

    def write(self, place: HeldName, data: bytes, like: HeldName | None) -> None:
        self._fault("write", Path(place.path))
        super().write(place, data, like)

    def replace(self, source: HeldName, target: HeldName) -> None:
        self._fault("replace", Path(target.path))
        super().replace(source, target)

    def link(self, source: HeldName, target: HeldName) -> None:
        self._fault("link", Path(target.path))
        super().link(source, target)

    def remove(self, place: HeldName) -> None:
        self._fault("remove", Path(place.path))
        super().remove(place)


@contextmanager
def applier_in(home: Path, disk: Disk | None = None) -> Generator[Applier]:
    home.mkdir(exist_ok=True)
    applier = Applier(Journal(home / "edits.journal"), disk=disk)
    applier.open()
    try:
        yield applier
    finally:
        applier.close()


def replacing(path: Path, after: str | None, *, moved_to: Path | None = None) -> FileChange:
    """A change planned on the file as it is now."""
    return FileChange(path, read_text(path), after, moved_to)


def operation(*changes: FileChange, name: str = "e-1") -> Operation:
    return Operation(name, changes)


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder, temporary ones too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8", "surrogateescape")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
