"""Makes transcripts as Claude Code writes them, of any size: sessions, sub-agents, forks, streamed answers, results.

The same seed makes the same bytes. Texts are random words; what matters is the mixture of lines, which follows real
transcripts: two fifths of the lines are answers, and most bytes are results of tools.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

MODELS = ("claude-sonnet-4-5-20250929", "claude-opus-4-1-20250805", "claude-haiku-4-5-20251001")
TOOLS = ("Bash", "Read", "Edit", "Grep", "mcp__serena__find_symbol", "mcp__github__search")
START = datetime(2026, 9, 1, tzinfo=UTC)


class Native:
    """One user's `projects` folder."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        words = ["".join(self._random.choices("abcdefghijklmnopqrstuvwxyz_", k=7)) for _ in range(3000)]
        self._text = " ".join(self._random.choices(words, k=60_000))
        self._day = 0

    def write(self, size: int) -> int:
        """Writes sessions until there are `size` bytes; returns how many there are."""
        written = 0
        while written < size:
            written += self._session()
        return written

    def _session(self) -> int:
        chance = self._random
        project = f"/home/u/project-{chance.randrange(12)}"
        folder = self._folder / project.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        session = self._id()
        at = START + timedelta(days=self._day % 80, seconds=chance.randrange(60_000))
        self._day += 1
        lines = list(self._turns(session, project, at, chance.randrange(20, 400), None))
        written = _put(folder / f"{session}.jsonl", lines)
        if chance.random() < 0.3:
            agent = f"{chance.getrandbits(64):016x}"
            below = folder / session / "subagents"
            below.mkdir(parents=True, exist_ok=True)
            turns = list(self._turns(session, project, at + timedelta(minutes=3), 40, agent))
            # What it was started with stands in its own transcript, too.
            replayed = [dict(one, isSidechain=True, agentId=agent) for one in lines if one["type"] == "assistant"][:2]
            written += _put(below / f"agent-{agent}.jsonl", [*replayed, *turns])
        if chance.random() < 0.1:
            fork = self._id()
            copied = [dict(one, sessionId=fork) for one in lines[: len(lines) // 2]]
            more = list(self._turns(fork, project, at + timedelta(hours=7), 20, None))
            written += _put(folder / f"{fork}.jsonl", [*copied, *more])
        return written

    def _turns(
        self, session: str, project: str, at: datetime, count: int, agent: str | None
    ) -> Iterator[dict[str, Any]]:
        chance = self._random
        model = chance.choice(MODELS)
        common = {
            "isSidechain": agent is not None,
            "userType": "external",
            "cwd": project,
            "sessionId": session,
            "version": "2.1.330",
            "gitBranch": "main",
        }
        if agent:
            common["agentId"] = agent
        cached = 12_000
        yield self._line(common, at, "user", message={"role": "user", "content": self._words(200)})
        for _ in range(count):
            at += timedelta(seconds=chance.randrange(2, 60))
            head = {"id": f"msg_01{self._id().replace('-', '')[:22]}", "type": "message", "role": "assistant"}
            request = f"req_011{self._id().replace('-', '')[:21]}"
            written, output = chance.randrange(0, 6000), chance.randrange(20, 1500)
            usage = {
                "input_tokens": chance.randrange(1, 40),
                "cache_creation_input_tokens": written,
                "cache_read_input_tokens": cached,
                "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
                "service_tier": "standard",
            }
            cached = min(cached + written, 150_000)
            call = f"toolu_01{self._id().replace('-', '')[:22]}"
            tool = chance.choice(TOOLS)
            blocks = [
                {"type": "text", "text": self._words(chance.randrange(40, 900))},
                {"type": "tool_use", "id": call, "name": tool, "input": {"command": self._words(60)}},
            ]
            for number, block in enumerate(blocks):
                grown = usage | {"output_tokens": output if number else 1}
                message = head | {"model": model, "content": [block], "stop_reason": None, "usage": grown}
                yield self._line(common, at, "assistant", requestId=request, message=message)
                at += timedelta(milliseconds=chance.randrange(900))
            failed = chance.random() < 0.05
            result = self._words(chance.choice((300, 2_000, 9_000)))
            content = [{"tool_use_id": call, "type": "tool_result", "content": result, "is_error": failed}]
            shown = {"stdout": result, "stderr": "", "interrupted": False}
            yield self._line(common, at, "user", message={"role": "user", "content": content}, toolUseResult=shown)

    def _line(self, common: dict[str, Any], at: datetime, kind: str, **more: Any) -> dict[str, Any]:
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"parentUuid": None, **common, "type": kind, **more, "uuid": self._id(), "timestamp": stamp}

    def _words(self, length: int) -> str:
        start = self._random.randrange(len(self._text) - length)
        return self._text[start : start + length]

    def _id(self) -> str:
        number = f"{self._random.getrandbits(128):032x}"
        return "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:]))


def _put(path: Path, lines: list[dict[str, Any]]) -> int:
    content = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines).encode()
    path.write_bytes(content)
    return len(content)
