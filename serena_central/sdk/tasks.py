"""Tasks: sub-agents that the running server carries out, to be awaited.

    results = await asyncio.gather(Task("Analyze module A"), Task("Analyze module B"))

A task starts when it is first awaited, and is cancelled with whoever awaits it. Works with asyncio and its threads.
"""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from serena_central.cli.remote import Remote
from serena_central.core.errors import SerenaCentralError

__all__ = ["Task", "TaskFailed"]

TASKS = "/api/v1/tasks"

WAIT_S = 50
"""Of one request; another one follows."""


class TaskFailed(SerenaCentralError):
    """A task failed, was cancelled, or is over its budget. `task` is what the server knows of it."""

    def __init__(self, task: dict[str, Any]) -> None:
        super().__init__(f"Task {task['id']}: {task['state']}: {task['error']}")
        self.task = task


class Task:
    """One task. `await` gives its final text.

    Raises, when it is awaited:
        TaskFailed, NoServer, Refused
    """

    def __init__(
        self,
        instruction: str,
        *,
        agent: str = "",
        project: str | Path | None = None,
        runner: str = "",
        model: str = "",
        isolation: str = "",
        timeout_s: float | None = None,
        max_tokens: int | None = None,
        max_usd: float | None = None,
    ) -> None:
        """`project` is a name or a root; without it, the current folder."""
        self.asked: dict[str, Any] = {
            "instruction": instruction,
            "agent": agent,
            "project": str(project) if project is not None else None,
            "runner": runner,
            "model": model,
            "isolation": isolation,
            "timeout_s": timeout_s,
            "max_tokens": max_tokens,
            "max_usd": max_usd,
        }
        self.result: dict[str, Any] | None = None
        """All that the server knows of it, once it is over: usage, cost, what it saw of its work."""

    def __await__(self) -> Generator[Any, None, str]:
        return self.run().__await__()

    async def run(self) -> str:
        """See the class."""
        remote = await asyncio.to_thread(Remote)
        body = {name: value for name, value in self.asked.items() if value is not None}
        # Shielded: a task that the server has accepted must be known here, to be cancelled.
        starting = asyncio.ensure_future(asyncio.to_thread(remote.post, TASKS, body))
        try:
            found: dict[str, Any] = await asyncio.shield(starting)
            path = f"{TASKS}/{quote(found['id'], safe='')}"
            while found["state"] in ("queued", "running"):
                found = await asyncio.to_thread(remote.get, path, wait_s=WAIT_S)
        except asyncio.CancelledError:
            accepted = await starting
            await asyncio.to_thread(remote.post, f"{TASKS}/{quote(accepted['id'], safe='')}/cancel")
            raise
        self.result = found
        if found["state"] != "done":
            raise TaskFailed(found)
        return found["text"]
