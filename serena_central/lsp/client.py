"""One language server in use: its life from spawn to reaped tree, and the requests that callers make of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from serena_central.core.text import Position, Text
from serena_central.lsp.answers import (
    Diagnostic,
    DocumentSymbol,
    FileChange,
    HierarchyCall,
    HierarchyItem,
    Location,
    Signature,
)
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.locate import Launch


class LanguageServer:
    """A language server for one root. `run` owns the process; every other method may be called from any task.

    Requests raise: ServerCrashed when the process ends meanwhile, RequestFailed for an error or an unreadable answer,
    ServerBusy when it kept cancelling, Unsupported when it does not offer the request.
    """

    def __init__(
        self,
        spec: ServerSpec,
        root: Path,
        *,
        launch: Launch,
        settings: dict[str, Any],
        read_text: Callable[[Path], Text],
    ) -> None:
        """`read_text` is called from worker threads too; it raises PathError or OSError."""
        self.spec = spec
        self.root = root
        raise NotImplementedError

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Spawns, initializes, calls started(), serves until `stop` or the end of the process; then the tree is reaped.

        Raises: ServerStartFailed when the handshake fails.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Begins the stop ladder; `run` ends within a few seconds."""
        raise NotImplementedError

    @property
    def alive(self) -> bool:
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        raise NotImplementedError

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal; None while it runs."""
        raise NotImplementedError

    @property
    def stderr_tail(self) -> str:
        raise NotImplementedError

    @property
    def capabilities(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def server_version(self) -> str:
        raise NotImplementedError

    def memory_bytes(self) -> int:
        """Of the whole process tree: proportional set size where the platform tells it, else resident. 0 when gone."""
        raise NotImplementedError

    async def ready(self) -> str | None:
        """Waits until its answers can be believed; a remark when the wait was cut short, else None."""
        raise NotImplementedError

    def files_changed(self, changes: Sequence[FileChange]) -> None:
        """Takes note of changes on disk; the server hears of them before any later request."""
        raise NotImplementedError

    async def ping(self) -> None:
        """Returns when the server has answered something: proof that it is not hung. The caller bounds the wait."""
        raise NotImplementedError

    async def document_symbols(self, path: Path) -> list[DocumentSymbol]:
        raise NotImplementedError

    async def references(
        self,
        path: Path,
        position: Position,
        *,
        include_declaration: bool = False,
        candidates: Sequence[Path] = (),
    ) -> list[Location]:
        """`candidates` are files that hold the name as a word; they are opened first where the server needs that."""
        raise NotImplementedError

    async def definition(self, path: Path, position: Position) -> list[Location]:
        raise NotImplementedError

    async def declaration(self, path: Path, position: Position) -> list[Location]:
        raise NotImplementedError

    async def implementation(self, path: Path, position: Position) -> list[Location]:
        raise NotImplementedError

    async def hover(self, path: Path, position: Position) -> str | None:
        """Markdown or plain text, or None."""
        raise NotImplementedError

    async def signature(self, path: Path, position: Position) -> list[Signature]:
        raise NotImplementedError

    async def diagnostics(self, path: Path) -> list[Diagnostic]:
        raise NotImplementedError

    async def prepare_call_hierarchy(self, path: Path, position: Position) -> list[HierarchyItem]:
        raise NotImplementedError

    async def incoming_calls(self, item: HierarchyItem) -> list[HierarchyCall]:
        raise NotImplementedError

    async def outgoing_calls(self, item: HierarchyItem) -> list[HierarchyCall]:
        raise NotImplementedError

    async def prepare_type_hierarchy(self, path: Path, position: Position) -> list[HierarchyItem]:
        raise NotImplementedError

    async def supertypes(self, item: HierarchyItem) -> list[HierarchyItem]:
        raise NotImplementedError

    async def subtypes(self, item: HierarchyItem) -> list[HierarchyItem]:
        raise NotImplementedError
