"""Transcripts of tasks: written without a setting, and resumed. Real tools and a real server; the model is scripted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from serena_central.transcripts.cleanup import clean_up, pin, pinned
from serena_central.transcripts.reader import records, sessions
from serena_central.transcripts.records import AnyRecord, AssistantMessage, ToolCall, ToolResult, UserMessage
from serena_central.transcripts.resuming import continued, resume
from tests.integration.test_messages_runner import LISTING, compacting, tasks
from tests.support.central import running_central
from tests.support.models import Request, Text
from tests.support.models.script import Turn
from tests.support.tasks import over, scripted, start

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / "shop.py").write_text("class Cart:\n    pass\n")
    return root


def written(home: Path, session: str) -> list[AnyRecord]:
    [folder] = [one for one in (home / "transcripts").iterdir() if one.is_dir()]
    return list(records(folder, session, print))


async def ran(http: httpx.AsyncClient, instruction: str, project: Path, **asked: Any) -> dict[str, Any]:
    found = await over(http, (await start(http, instruction, project, **asked))["id"])
    assert found["state"] == "done", found
    return found


def finding(request: Request) -> Turn:
    """Lists before its first answer, and then says how many prompts it has seen."""
    if not request.results:
        return [Text("Looking."), LISTING]
    return Text(f"Prompts: {len(request.prompts)}.")


async def test_each_answer_and_call_of_a_task_is_written_with_its_tokens(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-JSONL-003, REQ-JSONL-005"""
    async with tasks(tmp_path, monkeypatch, finding, input_tokens=lambda _: 2000) as (_, http):
        found = await ran(http, "Where is the cart?", project)
        prompt, looking, call, result, answer = written(tmp_path / "home", found["resume_id"])
    assert isinstance(prompt, UserMessage)
    assert isinstance(looking, AssistantMessage)
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert isinstance(answer, AssistantMessage)
    assert prompt.content == "Where is the cart?"
    assert prompt.model
    assert prompt.model.startswith("claude-sonnet")
    assert (looking.content, looking.stop_reason, looking.input_tokens, looking.output_tokens) == (
        "Looking.", "tool_use", 2000, 1,
    )  # fmt: skip
    assert looking.cost == round(looking.cost, 4) > 0
    assert looking.tool_calls[0]["id"] == call.tool_call_id == result.tool_call_id
    assert (call.tool_name, result.status) == ("list_dir", "ok")
    assert "shop.py" in result.output
    assert answer.content == "Prompts: 1."
    assert UUID(found["resume_id"]).version == 4


async def test_a_conversation_is_resumed_where_it_was_in_the_same_session_or_a_new_one(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-JSONL-004, REQ-JSONL-006, REQ-INTEGRATION-002: by what the model sees."""
    async with tasks(tmp_path, monkeypatch, finding) as (model, http):
        first = await ran(http, "Where is the cart?", project)
        again = await ran(http, "And the till?", project, resume=first["id"])
        assert (again["resume_id"], again["text"]) == (first["resume_id"], "Prompts: 2.")
        sent = model.requests[-1].body["messages"]
        assert [one["role"] for one in sent] == ["user", "assistant", "user", "assistant", "user"]
        apart = await ran(http, "And the door?", project, resume=first["resume_id"], new=True)
        assert (apart["resume_id"] != first["resume_id"], apart["text"]) == (True, "Prompts: 3.")
        # What is said in the one session is not part of the other.
        await ran(http, "And the roof?", project, resume=first["resume_id"])
        last = await ran(http, "And now?", project, resume=apart["resume_id"])
        assert (last["resume_id"], last["text"]) == (apart["resume_id"], "Prompts: 4.")
    found = resume(tmp_path / "home" / "transcripts", apart["resume_id"])
    assert found
    said = [block.get("text") for one in found.messages if one["role"] == "user" for block in one["content"]]
    assert [text for text in said if text] == ["Where is the cart?", "And the till?", "And the door?", "And now?"]
    assert found.last_at
    idle = [continued(found, new=False, now=found.last_at + timedelta(hours=hours)) for hours in (23, 25)]
    assert [one.session == found.session for one in idle] == [True, False]


async def test_a_task_without_cleanup_is_kept_whatever_its_age(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-JSONL-007: `--no-cleanup`"""
    async with tasks(tmp_path, monkeypatch, [Text("There.")]) as (_, http):
        kept = await ran(http, "Where is the cart?", project, no_cleanup=True)
    folder = tmp_path / "home" / "transcripts"
    assert pinned(folder) == {kept["resume_id"]}
    later = datetime.now(UTC) + timedelta(days=90)
    assert clean_up(folder, lambda _: 30, later) == []
    pin(folder, kept["resume_id"], on=False)
    assert len(clean_up(folder, lambda _: 30, later)) == 1


async def test_a_compacted_conversation_is_resumed_from_its_summary(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"compact_at_tokens": 1000}
    async with tasks(tmp_path, monkeypatch, compacting, input_tokens=lambda _: 2000, **policy) as (_, http):
        done = await ran(http, "Where is the cart?", project)
    found = resume(tmp_path / "home" / "transcripts", done["resume_id"])
    assert found
    assert [one["role"] for one in found.messages] == ["user", "assistant"]
    assert "The cart is in shop.py." in found.messages[0]["content"][0]["text"]
    assert found.input_tokens == 3 * 2000


async def test_what_cannot_be_resumed_is_refused_with_what_helps(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def refusal(http: httpx.AsyncClient, **asked: Any) -> tuple[int, str]:
        asked = {"instruction": "x", "project": str(project), **asked}
        answer = await http.post("/api/v1/tasks", json=asked)
        return answer.status_code, answer.json()["error"]["message"]

    async with tasks(tmp_path, monkeypatch, [Text("There.")] * 3) as (_, http):
        done = await ran(http, "x", project)
        for asked, code, words in (
            ({"resume": "00000000-0000-4000-8000-000000000000"}, 409, "transcripts own"),
            ({"resume": "../../etc"}, 409, "transcripts own"),
            ({"resume": "t-none"}, 404, "t-none"),
            ({"resume": done["id"], "project": str(other)}, 409, str(project)),
            ({"new": True}, 400, "resume"),
        ):
            status, message = await refusal(http, **asked)
            assert (status, words in message) == (code, True), (asked, status, message)


async def test_a_task_of_another_runner_is_written_too_and_clients_are_not(tmp_path: Path, project: Path) -> None:
    steps = [{"call": "list_dir", "arguments": {"relative_path": "."}}, {"text": "There."}]
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        said = {"arguments": {"project": str(project), "relative_path": "."}, "session": "a-client"}
        await http.post("/api/v1/tools/list_dir", json=said)
        await ran(http, "Where is the cart?", project)
        await http.post("/api/v1/tools/list_dir", json=said)
        refused = await http.post(
            "/api/v1/tasks", json={"instruction": "x", "project": str(project), "resume": "t-1", "runner": "scripted"}
        )
        assert "scripted can't resume" in refused.json()["error"]["message"]
        [own] = sessions(tmp_path / "home" / "transcripts")
    assert own.project == str(project)
    kinds = [type(one).__name__ for one in written(tmp_path / "home", own.session)]
    assert kinds == ["UserMessage", "ToolCall", "ToolResult", "AssistantMessage"]
    assert datetime.fromisoformat(own.last_at).tzinfo
