"""The API as a program outside of the package uses it: in a process of its own, checked by a type checker's rules."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.child import environment
from tests.support.transcripts import claude, failed, written

PROGRAM = """
import json
from serena_central import sdk

[session] = sdk.sessions()
report = sdk.usage("model")
said = [(one.role, one.text or one.tool) for one in sdk.messages(session)]
print(json.dumps([session.client, session.project, round(session.cost, 4), report.rows[0].key, said]))
"""


def test_sessions_messages_and_usage(tmp_path: Path) -> None:
    """REQ-JSONL-008"""
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


METRICS = """
import json
from serena_central import sdk

one = next(session for session in sdk.sessions() if session.session == "s-1")
tools = {row.key: [row.calls, row.failed] for row in sdk.usage("tool", session=one.session).rows}
total = sdk.usage(session=one.session).total
took = [one.input, one.output, round(one.cost, 4), one.tokens_per_request, one.duration_s]
print(json.dumps([*took, tools, total.requests]))
"""


def test_the_metrics_of_one_session(tmp_path: Path) -> None:
    """REQ-JSONL-008: tokens, cost, tools by name, tokens per message, duration, successes and failures."""
    folder = tmp_path / "user" / ".claude" / "projects" / "p"
    written(
        folder / "s-1.jsonl",
        claude("m", input=100, output=300, tools={"toolu_1": "Bash", "toolu_2": "Read"}),
        failed("toolu_1"),
        claude("n", request="req_2", at="2026-11-01T10:01:30.000Z", input=0, output=200, tools={"toolu_3": "Bash"}),
    )
    written(folder / "s-2.jsonl", claude("o", request="req_3", session="s-2", output=9999, tools={"toolu_4": "Bash"}))
    done = subprocess.run(
        [sys.executable, "-c", METRICS], cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True
    )
    tools = {"Bash": [2, 1], "Read": [1, 0]}
    assert json.loads(done.stdout) == [100, 500, 0.0078, 300.0, 90.0, tools, 2]


INCOMPLETE = """
import json, warnings
from serena_central import sdk

report = sdk.usage("model")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = sdk.sessions()
said = [[str(one.message), one.filename] for one in caught]
print(json.dumps([report.lines_not_read, report.not_read, [one.session for one in found], said]))
"""


def test_what_could_not_be_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "user" / ".claude" / "projects" / "p"
    written(folder / "s-1.jsonl", claude("m"), b'{torn "usage":\n')
    written(folder / os.fsdecode(b"s-\xff.jsonl"), claude("n", request="req_2"))
    done = subprocess.run(
        [sys.executable, "-c", INCOMPLETE], cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True
    )
    named = f"{folder}/s-\ufffd.jsonl: its name is not UTF-8"
    warned = f"1 line could not be read; `serena-central usage --audit` lists them. Not read: {named}"
    assert json.loads(done.stdout) == [1, [named], ["s-1"], [[warned, "<string>"]]]
