"""`serena-central blame` as it is run."""

import os
from pathlib import Path

import pytest

from tests.support.child import run_command
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio


async def test_the_conversation_that_wrote_a_line_is_named_with_its_cost(tmp_path: Path) -> None:
    source = written(tmp_path / "shop" / "cart.py", b"class Cart:\n    total = 0\n\n")
    prompt = {"type": "user", "timestamp": "2026-11-01T09:00:00Z", "sessionId": "s-1", "message": {"content": "A cart"}}
    line = claude("m", output=100_000)
    given = {"file_path": str(source), "content": "class Cart:\n    total = 0\n"}
    line["message"]["content"] = [{"type": "tool_use", "id": "toolu_1", "name": "Write", "input": given}]
    written(tmp_path / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", prompt, line)
    shown = await run_command(tmp_path, "blame", f"{source}:2", "--json")
    assert shown.code == 0, shown
    assert (shown.json["session"], shown.json["prompt"], round(shown.json["session_cost"], 4)) == ("s-1", "A cart", 1.5)
    for place, code in ((f"{source}:3", 2), (f"{source}:9", 2), ("nothing", 2)):
        assert (await run_command(tmp_path, "blame", place)).code == code
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):  # what has no lines, or no end
        refused = await run_command(tmp_path, "blame", f"{place}:1")
        assert (refused.code, "not a file" in refused.err) == (2, True), refused
    source.write_text("by hand = 1\n")
    by_hand = await run_command(tmp_path, "blame", f"{source}:1")
    assert (by_hand.code, by_hand.out) == (1, "")
    assert "A person" in by_hand.err
