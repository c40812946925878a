"""The API as a program outside of the package uses it: in a process of its own, checked by a type checker's rules."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.child import environment
from tests.support.transcripts import claude, written

PROGRAM = """
import json
from serena_central import sdk

[session] = sdk.sessions()
report = sdk.usage("model")
said = [(one.role, one.text or one.tool) for one in sdk.messages(session)]
print(json.dumps([session.client, session.project, round(session.cost, 4), report.rows[0].key, said]))
"""


def test_sessions_messages_and_usage(tmp_path: Path) -> None:
    prompt = {"type": "user", "timestamp": "2026-11-01T09:00:00Z", "sessionId": "s-1", "message": {"content": "Where?"}}
    folder = tmp_path / "user" / ".claude" / "projects" / "p"
    written(folder / "s-1.jsonl", prompt, claude("m", output=100_000, tools={"toolu_1": "Bash"}))
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path / "elsewhere",
        env=environment(tmp_path),
        capture_output=True,
        check=True,
    )
    said = [["user", "Where?"], ["tool_call", "Bash"]]
    assert json.loads(done.stdout) == ["claude-code", "/home/u/shop", 1.5, "claude-sonnet-4-5-20250929", said]
