"""What nothing is read from is counted by kind, whatever the record holds."""

import json
from pathlib import Path

import pytest

from serena_central.transcripts.kinds import NO_KIND, other_kinds


@pytest.mark.parametrize(
    ("client", "records", "counted"),
    [
        (
            "claude-code",
            [{"type": "user"}, {"type": "progress"}, {"type": "progress"}, {"type": "of-2031"}, {"type": 5}, {}],
            {"progress": 2, "of-2031": 1, NO_KIND: 2},
        ),
        (
            "codex",
            [
                {"type": "response_item", "payload": {"type": "message"}},
                {"type": "event_msg", "payload": {"type": "token_count"}},
                {"type": "event_msg", "payload": {"type": "of_2031"}},
                {"type": "event_msg", "payload": 5},
            ],
            {"event_msg/of_2031": 1, "event_msg": 1},
        ),
        ("gemini", [{"sessionId": "s"}, {"type": "user"}, {"$set": {}}, {"type": "info"}], {"info": 1}),
    ],
)
def test_kinds_that_are_not_read_are_counted(
    tmp_path: Path, client: str, records: list[object], counted: dict[str, int]
) -> None:
    file = tmp_path / "one.jsonl"
    lines = [json.dumps(one).encode() for one in records]
    file.write_bytes(b"\n".join([*lines, b"[]", b"\0\xff{", b'{"type": "cut']))
    assert other_kinds(client, file) == counted


def test_a_document_of_messages_is_counted_as_lines_are(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"messages": [{"type": "gemini"}, {"type": "of-2031"}]}))
    assert other_kinds("gemini", file) == {"of-2031": 1}
    file.write_text('{"messages": [')
    assert other_kinds("gemini", file) == {}
