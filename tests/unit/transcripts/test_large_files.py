"""A gigabyte of transcripts, damaged as files are damaged, read in little memory: each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from serena_central.transcripts.records import UserMessage, project_hash
from tests.support.transcripts import claude

pytestmark = pytest.mark.slow

SESSION = UUID("01234567-89ab-4def-8123-456789abcdef")
LINES = 900_000

OWN = """
import resource, sys
from pathlib import Path
from serena_central.transcripts.reader import records
def rss(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before, skipped = rss(), []
count = sum(1 for _ in records(Path(sys.argv[1]), sys.argv[2], lambda one: skipped.append(one)))
print(count, rss() - before, *(f"{one.line}:{one.reason}".replace(" ", "_") for one in skipped))
"""

NATIVE = """
import resource, sys
from pathlib import Path
from serena_central.transcripts.reading import read_transcript
from serena_central.transcripts.roots import roots_of, transcripts_in
def rss(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = rss()
[found] = transcripts_in(roots_of(Path(sys.argv[1]), {}))
reading = read_transcript(found, None)
print(len(reading.requests), rss() - before, reading.dropped)
"""


def damaged(good: bytes, needle: bytes) -> list[bytes]:
    """Lines that no reader can use, each with what readers look for."""
    return [
        b'{"a":"' + needle + b"x" * 100_000_000 + b'"}',
        b"\x00" * 1_000_000 + needle,
        good[: len(good) // 2] + needle,
        good.decode().encode("utf-16-le").replace(b"\n", b"") + needle,
        b'{"latin":"' + needle + "Größe".encode("latin-1") + b'"}',
    ]


def put(file: Path, good: bytes, bad: list[bytes]) -> None:
    """A gigabyte of good lines with the bad ones after the first thousand, and a last one that is cut off."""
    file.parent.mkdir(parents=True)
    many = (good + b"\n") * 1000
    with file.open("wb") as out:
        out.write(many)
        for line in bad:
            out.write(line + b"\n")
        for _ in range(LINES // 1000 - 1):
            out.write(many)
        out.write(good[:200])


def run(program: str, *given: str) -> list[str]:
    command = [sys.executable, "-c", program, *given]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()


def test_a_gigabyte_of_our_own_form_is_read_within_50_mb(tmp_path: Path) -> None:
    """REQ-JSONL-006, REL-002: streamed, and whatever is damaged is skipped and named."""
    line: dict[str, Any] = json.loads(
        msgspec.json.encode(UserMessage(session_id=SESSION, timestamp="2026-11-16T10:00:00Z", content="x"))  # type: ignore[arg-type]
    )
    good = json.dumps(line | {"content": "x" * 1000}).encode()
    file = tmp_path / project_hash("/home/u/proj") / "2026-11-16.jsonl"
    put(file, good, damaged(good, str(SESSION).encode()))
    assert file.stat().st_size > 1_000_000_000
    count, grown_mb, *skipped = run(OWN, str(file.parent), str(SESSION))
    assert int(count) == LINES
    assert [int(one.partition(":")[0]) for one in skipped] == [*range(1001, 1006), LINES + 6]
    assert int(grown_mb) < 50


def test_a_gigabyte_of_a_clients_transcript_is_read_within_50_mb(tmp_path: Path) -> None:
    prompt = {"type": "user", "timestamp": "2026-11-01T09:00:00Z", "message": {"content": "y" * 1000}}
    usage = json.dumps(claude("m"), separators=(",", ":")).encode()
    good = json.dumps(prompt, separators=(",", ":")).encode() + b"\n" + usage
    file = tmp_path / ".claude" / "projects" / "p" / "s-1.jsonl"
    put(file, good, damaged(usage, b'"usage":'))
    assert file.stat().st_size > 1_000_000_000
    count, grown_mb, dropped = run(NATIVE, str(tmp_path))
    assert (int(count), int(dropped)) == (1, 5)
    assert int(grown_mb) < 50
