"""Clients that edit while their server is killed: each knows what it asked for, what was answered, and asks again."""

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx

from tests.support.mcp import RawClient, messages_in, text_of

ALREADY = "already made"


@dataclass
class Asked:
    """One request as it was sent, and its answers."""

    body: bytes
    headers: dict[str, str]
    marker: str
    tool: str
    answers: list[str] = field(default_factory=list[str])


class Forgotten(Exception):
    """The server does not know the conversation."""


class Editor:
    """One session of the handshake era that inserts functions of its own and replaces them, which nobody else does."""

    def __init__(self, name: str, files: list[Path], chance: random.Random) -> None:
        self.name = name
        self.files = files
        self.asked: list[Asked] = []
        self.pending: Asked | None = None
        self.mine: list[tuple[Path, str]] = []
        """Functions that were inserted, and answered."""
        self.bodies: dict[tuple[Path, str], str] = {}
        """What its answered replacements made of them."""
        self.outcomes: Counter[str] = Counter()
        self.refused: list[str] = []
        self._chance = chance
        self._headers: dict[str, str] = {}
        self._next_id = 100

    async def open(self, http: httpx.AsyncClient) -> None:
        client = RawClient(http, "handshake", name=self.name)
        await client.open()
        self._headers = client.headers("tools/call", {})

    async def work(self, http: httpx.AsyncClient) -> None:
        """Asks again what was not answered, and some of what was; then edits until the connection breaks."""
        try:
            try:
                await self.ask_again(http)
            except Forgotten:
                await self.begin_anew(http)
            for asked in self._chance.sample(self.asked, min(2, len(self.asked))):
                await self._ask(http, asked, "repeat of what was answered")
            while True:
                asked = self.pending = self._next()
                await self._ask(http, asked, asked.tool)
                self.asked.append(asked)
        except httpx.TransportError:
            return

    async def begin_anew(self, http: httpx.AsyncClient) -> None:
        """A server that was killed right after the handshake may forget it: before the first edit of the session."""
        pending = self.pending
        assert pending is not None
        assert not self.mine
        assert pending.marker not in "".join(file.read_text() for file in self.files)
        self.outcomes["handshake made again"] += 1
        await self.open(http)
        pending.headers = self._headers
        await self.ask_again(http)

    async def ask_again(self, http: httpx.AsyncClient) -> None:
        if self.pending is not None:
            await self._ask(http, self.pending, "repeat of what was not answered")

    def _next(self) -> Asked:
        self._next_id += 1
        file, marker = self._chance.choice(self.files), f"f_{self.name}_{self._next_id}"
        if self.mine and self._chance.random() < 0.5:
            tool, (file, name) = "replace_symbol_body", self._chance.choice(self.mine[-5:])
            arguments = {"name_path": name, "body": f"def {name}():\n    return '{marker}'"}
        else:
            tool, arguments = "insert_after_symbol", {"name_path": "first", "body": f"def {marker}():\n    return 0"}
        arguments |= {"relative_path": file.name, "project": str(file.parent)}
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": self._next_id, "method": "tools/call", "params": params}
        return Asked(json.dumps(body).encode(), self._headers, marker, tool)

    async def _ask(self, http: httpx.AsyncClient, asked: Asked, what: str) -> None:
        headers = {**asked.headers, "content-type": "application/json"}
        response = await http.post("/mcp", content=asked.body, headers=headers)
        if response.status_code == 404:
            raise Forgotten
        assert response.status_code == 200, (response.status_code, response.text)
        messages = messages_in(response.text)
        if not messages:
            raise httpx.ReadError("the answer was cut off")
        result: dict[str, Any] = messages[-1]["result"]
        answer = text_of(result)
        asked.answers.append(answer)
        if self.pending is asked:
            self.pending = None
        if result["isError"]:
            self.outcomes[f"{what}: refused"] += 1
            self.refused.append(f"{asked.marker} {what}: {answer}")
            return
        self.outcomes[f"{what}: {'already' if ALREADY in answer else 'answered'}"] += 1
        arguments = json.loads(asked.body)["params"]["arguments"]
        file = Path(arguments["project"], arguments["relative_path"])
        if asked.tool == "replace_symbol_body" and len(asked.answers) == 1:
            self.bodies[file, arguments["name_path"]] = asked.marker
        elif asked.tool == "insert_after_symbol" and (file, asked.marker) not in self.mine:
            self.mine.append((file, asked.marker))


def twice(files: list[Path]) -> list[str]:
    """Functions that stand in the files more than once."""
    text = "".join(file.read_text() for file in files)
    counts = Counter(line[4:].partition("(")[0] for line in text.splitlines() if line.startswith("def f_"))
    return [name for name, count in counts.items() if count > 1]


def lost(editors: list[Editor], files: list[Path]) -> list[str]:
    """Functions whose insertion was answered and that are not there, or that are not what was answered last."""
    texts = {file: file.read_text() for file in files}
    missing = [name for editor in editors for file, name in editor.mine if f"def {name}(" not in texts[file]]
    missing += [
        f"{name}: {marker}"
        for editor in editors
        for (file, name), marker in editor.bodies.items()
        if f"def {name}():\n    return '{marker}'" not in texts[file] and editor.pending is None
    ]
    return missing


async def load(editors: list[Editor], http: httpx.AsyncClient) -> None:
    """All of them work until the connection breaks."""
    async with anyio.create_task_group() as tasks:
        for editor in editors:
            tasks.start_soon(editor.work, http)


async def settle(editors: list[Editor], http: httpx.AsyncClient) -> None:
    """All ask once more what was not answered."""
    for editor in editors:
        try:
            await editor.ask_again(http)
        except Forgotten:
            await editor.begin_anew(http)
