"""What was said in a client's session, read from records as Claude Code 2.1.330 writes them around a compaction."""

from pathlib import Path
from typing import Any

from serena_central.transcripts.blame import author_of
from serena_central.transcripts.messages import messages
from serena_central.transcripts.roots import roots_of, transcripts_in
from tests.support.transcripts import claude, written


def user(text: str, **more: Any) -> dict[str, Any]:
    content = {"role": "user", "content": text}
    return {"type": "user", "timestamp": "2026-11-01T10:00:00.000Z", "sessionId": "s-1", "message": content} | more


BOUNDARY = {
    "type": "system",
    "subtype": "compact_boundary",
    "content": "Conversation compacted",
    "timestamp": "2026-11-01T10:01:00.000Z",
    "compactMetadata": {"trigger": "auto", "preTokens": 167_000, "postTokens": 2522},
    "sessionId": "s-1",
}
SUMMARY = user(
    "This session is being continued from a previous conversation.",
    isCompactSummary=True,
    isVisibleInTranscriptOnly=True,
)
COMMAND = """<command-name>/compact</command-name>
            <command-message>compact</command-message>
            <command-args>keep the cart</command-args>"""
COMPACTED = [
    BOUNDARY,
    SUMMARY,
    user("<local-command-caveat>The command below was run directly.</local-command-caveat>", isMeta=True),
    user(COMMAND),
    user("<local-command-stdout>Compacted (ctrl+o to see full summary)</local-command-stdout>"),
    {"type": "summary", "summary": "The cart", "leafUuid": "u"},
]


def test_a_compaction_is_its_summary_and_the_command(tmp_path: Path) -> None:
    """compact_boundary, isCompactSummary, summary records"""
    file = tmp_path / ".claude" / "projects" / "p" / "s-1.jsonl"
    written(file, user("Where is the cart?"), *COMPACTED, user("And the till?"))
    [found] = transcripts_in(roots_of(tmp_path, {}))
    assert [(one.role, one.text) for one in messages(found)] == [
        ("user", "Where is the cart?"),
        ("summary", "This session is being continued from a previous conversation."),
        ("user", "/compact keep the cart"),
        ("summary", "The cart"),
        ("user", "And the till?"),
    ]


def test_after_a_compaction_the_prompt_of_an_edit_is_what_the_person_asked(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "projects" / "p" / "s-1.jsonl"
    edit = claude("m", tools={"toolu_1": "Write"})
    edit["message"]["content"][0]["input"] = {"file_path": "/home/u/shop/cart.py", "content": "total = 0\n"}
    written(file, user("Write the cart."), BOUNDARY, SUMMARY, edit)
    author = author_of(roots_of(tmp_path, {}), Path("/home/u/shop/cart.py"), "total = 0")
    assert author
    assert author.prompt == "Write the cart."
