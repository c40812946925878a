"""What a node reports of itself when it is asked: records of its hosts' logs, and what the doctor finds."""

import sys
from pathlib import Path

from serena_central.core.log_lines import Wanted, last_records
from serena_central.core.masking import masked
from serena_central.core.places import Places
from serena_central.processes.child import run
from serena_central.processes.output import Head, Tail

DOCTOR_S = 50.0

MOST_BYTES = 1_000_000
"""Of the doctor's report."""


def records_below(home: Path, session: str | None, count: int) -> list[tuple[str, str, str, str]]:
    """Host, time, level and text of the newest records of all hosts' logs, the oldest first. Blocks."""
    wanted, found = Wanted(None, session), list[tuple[str, str, str, str]]()
    for folder in sorted((home / "hosts").glob("*")):
        file = Places(folder, node_home=home).log_file
        found += [(folder.name, one.time, one.level, masked(one.lines)) for one in last_records(file, count, wanted)]
    return sorted(found, key=lambda record: record[1])[len(found) - min(count, len(found)) :]


async def doctor() -> bytes:
    """The doctor's JSON of this machine; empty where it did not end in time."""
    said = Head(MOST_BYTES)
    command = [sys.executable, "-m", "serena_central.cli", "doctor", "--node", "--json"]
    ended = await run(command, Path.home(), deadline_s=DOCTOR_S, stdout=said, stderr=Tail(2000))
    return b"" if ended.timed_out else bytes(said.kept)
