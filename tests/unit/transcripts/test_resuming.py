"""A session of our own transcripts as the messages API takes it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from serena_central.transcripts.reader import InvalidTranscript
from serena_central.transcripts.records import (
    CONTINUES,
    SUMMARY,
    AnyRecord,
    AssistantMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from serena_central.transcripts.resuming import INTERRUPTED, Conversation, resume
from serena_central.transcripts.writer import TranscriptWriter

AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
SESSION = uuid4()


def user(content: str) -> UserMessage:
    return UserMessage(session_id=SESSION, timestamp=AT, content=content, model="claude-sonnet-4-5")


def answer(content: str, *calls: str, cost: float = 0.25) -> AssistantMessage:
    listed = [{"type": "tool_use", "id": one, "name": "find_symbol", "input": {"name": one}} for one in calls]
    return AssistantMessage(
        session_id=SESSION,
        timestamp=AT,
        content=content,
        tool_calls=listed,
        input_tokens=10,
        output_tokens=5,
        cost=cost,
    )


def call(number: str) -> ToolCall:
    return ToolCall(
        session_id=SESSION, timestamp=AT, tool_call_id=number, tool_name="find_symbol", tool_input={"name": number}
    )


def result(number: str, output: Any = "found", status: str = "ok") -> ToolResult:
    return ToolResult(
        session_id=SESSION, timestamp=AT, tool_call_id=number, tool_name="find_symbol", status=status, output=output
    )


def kept(folder: Path, *said: AnyRecord, tail: bytes = b"") -> Conversation:
    writer = TranscriptWriter(folder, "/home/u/proj", clock=lambda: AT)
    for one in said:
        writer.append(one)
    writer.close()
    with (writer.folder / "2026-11-16.jsonl").open("ab") as file:
        file.write(tail)
    found = resume(folder, SESSION)
    assert found is not None
    turns = [one["role"] for one in found.messages]
    assert turns == ["user", "assistant"] * (len(turns) // 2) + ["user"] * (len(turns) % 2)
    return found


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def use(number: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": number, "name": "find_symbol", "input": {"name": number}}


def of(number: str, content: Any = "found", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": number, "content": content, **more}


def test_prompts_answers_calls_and_results_are_the_turns_of_the_api(tmp_path: Path) -> None:
    """REQ-JSONL-006, REQ-INTEGRATION-002"""
    found = kept(
        tmp_path,
        user("Where is the cart?"),
        answer("I look.", "t1", "t2"),
        call("t1"),
        call("t2"),
        result("t2", "no such symbol", "error"),
        result("t1", {"file": "cart.py"}),
        answer("In cart.py."),
        user("Thanks."),
    )
    assert found.messages == [
        {"role": "user", "content": [text("Where is the cart?")]},
        {"role": "assistant", "content": [text("I look."), use("t1"), use("t2")]},
        {"role": "user", "content": [of("t1", '{"file":"cart.py"}'), of("t2", "no such symbol", is_error=True)]},
        {"role": "assistant", "content": [text("In cart.py.")]},
        {"role": "user", "content": [text("Thanks.")]},
    ]
    assert (found.model, found.project, found.cost) == ("claude-sonnet-4-5", "/home/u/proj", 0.5)
    assert (found.input_tokens, found.output_tokens) == (20, 10)
    assert found.interrupted == found.orphaned == found.skipped == []


def test_a_result_of_content_blocks_stays_and_other_lists_are_json(tmp_path: Path) -> None:
    blocks = [text("found")]
    found = kept(tmp_path, user("Go."), answer("", "t1", "t2"), result("t1", blocks), result("t2", [1, 2]))
    assert found.messages[-1]["content"] == [of("t1", blocks), of("t2", "[1,2]")]


def test_a_call_that_a_crash_has_interrupted_gets_a_result_that_says_so(tmp_path: Path) -> None:
    torn = b'{"role":"tool_result","sessionId":"' + str(SESSION).encode() + b'","toolCallId":"t2","out'
    found = kept(tmp_path, user("Go."), answer("", "t1", "t2"), call("t1"), call("t2"), result("t1"), tail=torn)
    assert found.messages[-1]["content"] == [of("t1"), of("t2", INTERRUPTED, is_error=True)]
    assert found.interrupted == ["t2"]
    assert len(found.skipped) == 1
    assert found.messages[0]["content"][0]["text"] == "(1 line of the record of this conversation could not be read.)"
    assert "2026-11-16.jsonl:6:" in found.skipped[0]


def test_a_session_of_a_client_has_calls_alone(tmp_path: Path) -> None:
    found = kept(tmp_path, call("t1"), result("t1"), call("t2"), result("t2"))
    assert [block for one in found.messages[1:] for block in one["content"]] == [
        use("t1"),
        of("t1"),
        use("t2"),
        of("t2"),
    ]
    assert "not recorded" in found.messages[0]["content"][0]["text"]


def test_a_result_whose_call_is_missing_is_left_out_and_named(tmp_path: Path) -> None:
    found = kept(tmp_path, user("Go."), result("lost"), answer("Done."))
    assert [one["role"] for one in found.messages] == ["user", "assistant"]
    assert found.orphaned == ["lost"]


def test_prompts_after_each_other_are_one_turn_and_empty_texts_none(tmp_path: Path) -> None:
    found = kept(tmp_path, user("One."), user("  "), user("Two."), answer(" "))
    assert found.messages == [{"role": "user", "content": [text("One."), text("Two.")]}]


def test_a_line_without_a_required_field_is_refused(tmp_path: Path) -> None:
    """REQ-JSONL-006"""
    line = b'{"role":"user","sessionId":"' + str(SESSION).encode() + b'","content":"x"}\n'
    with pytest.raises(InvalidTranscript, match=r"2026-11-16\.jsonl:2: .*timestamp"):
        kept(tmp_path, user("Go."), tail=line)


def test_a_session_that_nobody_wrote_is_none(tmp_path: Path) -> None:
    assert resume(tmp_path, UUID(int=0, version=4)) is None


def test_a_thousand_lines_are_resumed_whole_with_their_costs(tmp_path: Path) -> None:
    """PERF-005, REQ-INTEGRATION-002: what it takes is in `make bench ARGS=usage`."""
    turns = (one for number in range(500) for one in (user(f"number {number}"), answer(f"answer {number}", cost=0.01)))
    found = kept(tmp_path, *turns)
    assert len(found.messages) == 1000
    assert found.messages[-1]["content"] == [text("answer 499")]
    assert (found.input_tokens, found.output_tokens, round(found.cost, 4)) == (5000, 2500, 5.0)


def chained(folder: Path, length: int) -> list[UUID]:
    """Sessions that continue each other, the oldest first, one a day."""
    sessions = [uuid4() for _ in range(length)]
    for number, session in enumerate(sessions):
        at = AT + timedelta(days=number)
        before = [{"type": CONTINUES, "sessionId": str(sessions[number - 1])}] if number else []
        writer = TranscriptWriter(folder, "/home/u/proj", clock=lambda at=at: at)
        writer.append(
            UserMessage(session_id=session, timestamp=at, content=f"prompt {number}", model="m", attachments=before)
        )
        writer.append(AssistantMessage(session_id=session, timestamp=at, content=f"answer {number}"))
        writer.close()
    return sessions


def prompts(found: Conversation) -> list[str]:
    return [block["text"] for one in found.messages if one["role"] == "user" for block in one["content"]]


def test_what_is_left_of_a_conversation_says_that_its_beginning_is_missing(tmp_path: Path) -> None:
    first, second, third = chained(tmp_path, 3)
    [missing] = tmp_path.glob("*/2026-11-16.jsonl")
    missing.unlink()
    found = resume(tmp_path, third)
    assert found is not None
    assert [one["role"] for one in found.messages] == ["user", "assistant"] * 2
    said = prompts(found)
    assert said[1:] == ["prompt 1", "prompt 2"]
    assert "beginning of this conversation is missing" in said[0]
    assert found.skipped == [f"Session {second} continues session {first}, of which there are no records."]


def test_a_summary_stands_for_a_beginning_that_is_missing_too(tmp_path: Path) -> None:
    _, second = chained(tmp_path, 2)
    next(tmp_path.glob("*/2026-11-16.jsonl")).unlink()
    writer = TranscriptWriter(tmp_path, "/home/u/proj", clock=lambda: AT + timedelta(days=2))
    writer.append(
        UserMessage(
            session_id=second, timestamp=AT + timedelta(days=2), content="So far: …", attachments=[{"type": SUMMARY}]
        )
    )
    writer.close()
    found = resume(tmp_path, second)
    assert found is not None
    assert prompts(found) == ["So far: …"]


def test_however_many_sessions_continue_each_other_all_is_said_and_in_a_cycle_each_once(tmp_path: Path) -> None:
    *_, last = sessions = chained(tmp_path, 60)
    found = resume(tmp_path, last)
    assert found is not None
    assert prompts(found) == [f"prompt {number}" for number in range(60)]
    assert found.skipped == []
    file = next(tmp_path.glob("*/2026-11-16.jsonl"))
    line = UserMessage(
        session_id=sessions[0],
        timestamp=AT - timedelta(days=1),
        content="earlier",
        attachments=[{"type": CONTINUES, "sessionId": str(last)}],
    )
    file.write_bytes(msgspec.json.encode(line) + b"\n" + file.read_bytes())
    found = resume(tmp_path, last)
    assert found is not None
    assert prompts(found)[-60:] == [f"prompt {number}" for number in range(60)]
