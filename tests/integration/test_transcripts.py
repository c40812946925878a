"""Transcripts of clients' sessions, written by a real server that is asked by a real client."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import anyio
import httpx
import pytest

from serena_central.core.errors import SerenaCentralError
from serena_central.store.query_results import CallFilter
from serena_central.transcripts.reader import records, sessions
from serena_central.transcripts.records import ToolCall, ToolResult, UserMessage
from serena_central.transcripts.writer import TranscriptWriter
from tests.support.central import running_central, running_parts, session_of
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "a1B2" * 9


def shop(folder: Path) -> Path:
    root = folder / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "notes.txt").write_text("The password is here.\n")
    return root


async def test_calls_and_their_results_are_written_and_a_restart_keeps_the_session(tmp_path: Path) -> None:
    root, home = shop(tmp_path), tmp_path / "home"
    for _ in range(2):
        async with running_parts(home, {"transcripts": True}) as central:
            session = session_of(central)
            await central.caller.call(session, "read_file", {"project": str(root), "relative_path": "notes.txt"})
            with pytest.raises(SerenaCentralError, match=r"none\.txt"):
                await central.caller.call(session, "read_file", {"project": str(root), "relative_path": "none.txt"})
    folder = home / "home" / "transcripts"
    [own] = sessions(folder)
    assert (own.project, own.lines) == (str(root), 8)
    [project] = [one for one in folder.iterdir() if one.is_dir()]
    found = list(records(project, own.session, print))
    calls = [one for one in found if isinstance(one, ToolCall)]
    results = [one for one in found if isinstance(one, ToolResult)]
    assert [one.tool_input["relative_path"] for one in calls] == ["notes.txt", "none.txt"] * 2
    assert [one.status for one in results] == ["ok", "error"] * 2
    assert [one.tool_call_id for one in calls] == [one.tool_call_id for one in results]
    assert "The password is here." in results[0].output


async def test_half_of_a_surrogate_pair_costs_the_records_of_a_call_one_character(tmp_path: Path) -> None:
    """A client that cuts a text within an emoji sends one."""
    root, home = shop(tmp_path), tmp_path / "home"
    async with running_parts(home, {"transcripts": True}) as central:
        session = session_of(central)
        for name in ("cut: \ud83d", "notes.txt"):
            with suppress(SerenaCentralError):
                await central.caller.call(session, "read_file", {"project": str(root), "relative_path": name})
        await central.store.writer.flush()
        calls = await central.store.ask(lambda queries: queries.calls(CallFilter()))
    kept = [one.detail.arguments["relative_path"] for one in calls if one.detail is not None]
    assert sorted(kept) == ["cut: \ufffd", "notes.txt"]
    folder = home / "home" / "transcripts"
    [own] = sessions(folder)
    [project] = [one for one in folder.iterdir() if one.is_dir()]
    found = [one for one in records(project, own.session, print) if isinstance(one, ToolCall)]
    assert [one.tool_input["relative_path"] for one in found] == ["cut: \ufffd", "notes.txt"]


async def test_the_content_of_a_file_that_holds_secrets_is_not_written(tmp_path: Path) -> None:
    root, home = shop(tmp_path), tmp_path / "home"
    (root / ".env").write_text("SIGNING=quite-unlike-a-token\n")
    async with running_parts(home, {"transcripts": True}) as central:
        asked = {"project": str(root), "relative_path": ".env"}
        answer = await central.caller.call(session_of(central), "read_file", asked)
    assert "quite-unlike-a-token" in answer.blocks[0]
    written = [file for file in (home / "home" / "transcripts").rglob("*") if file.is_file()]
    assert len(written) > 2
    assert not [file for file in written if "quite-unlike-a-token" in file.read_text()]


async def test_prompts_and_stops_that_a_clients_hooks_report_stand_beside_its_calls(tmp_path: Path) -> None:
    root = shop(tmp_path)
    (root / "src").mkdir()

    async def report(http: httpx.AsyncClient, event: str, conversation: str, **said: str) -> None:
        told = {"session_id": conversation, "cwd": str(root / "src"), **said}
        body = {"client": "claude-code", "said": told, "ancestors": [4_000_001]}
        assert (await http.post(f"/api/v1/gates/{event}", json=body)).status_code == 200

    async with running_central(tmp_path, {"transcripts": True}) as running, running.http() as http:
        session = session_of(running.central, client_pid=4_000_001, credential=running.central.token.credential)
        await report(http, "UserPromptSubmit", "conv-1", prompt=f"Read the notes. {SECRET}")
        await running.central.caller.call(session, "read_file", {"project": str(root), "relative_path": "notes.txt"})
        await report(http, "Stop", "conv-1", last_assistant_message="The password is here.")
        await report(http, "SessionStart", "conv-2", source="clear")
        await running.central.caller.call(session, "list_dir", {"project": str(root), "relative_path": "."})
        await report(http, "UserPromptSubmit", "conv-2", prompt="And now?")
    folder = tmp_path / "home" / "transcripts"
    [project] = [one for one in folder.iterdir() if one.is_dir()]
    said: list[list[str]] = []
    for own in reversed(sessions(folder)):
        assert own.project == str(root)
        said.append([type(one).__name__ for one in records(project, own.session, print)])
    assert said == [
        ["UserMessage", "ToolCall", "ToolResult", "AssistantMessage"],
        ["ToolCall", "ToolResult", "UserMessage"],
    ]
    written = "".join(file.read_text() for file in project.glob("*.jsonl"))
    assert "Read the notes." in written
    assert SECRET not in written


async def test_nothing_is_written_unless_it_is_wanted(tmp_path: Path) -> None:
    root = shop(tmp_path)
    async with running_parts(tmp_path / "home") as central:
        asked = {"project": str(root), "relative_path": "notes.txt"}
        await central.caller.call(session_of(central), "read_file", asked)
    assert not (tmp_path / "home" / "home" / "transcripts").exists()


@pytest.mark.parametrize("archives", [True, False])
async def test_a_server_deletes_old_transcripts_of_its_own_and_archives_those_of_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archives: bool
) -> None:
    """REQ-JSONL-007"""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    client = written(tmp_path / "claude" / "projects" / "p" / "s-1.jsonl", claude("m"))
    folder = tmp_path / "home" / "home" / "transcripts"
    at = datetime(2026, 1, 1, tzinfo=UTC)
    writer = TranscriptWriter(folder, "/home/u/shop", clock=lambda: at)
    writer.append(UserMessage(session_id=uuid4(), timestamp=at, content="Where?"))
    writer.close()
    own = writer.folder / "2026-01-01.jsonl"
    for file in (client, own):
        os.utime(file, (at.timestamp(), at.timestamp()))
    archived = tmp_path / "home" / "home" / "transcript-archive" / "claude-code" / client.relative_to("/")
    archive = archived.with_name("s-1.jsonl.gz")
    async with running_parts(tmp_path / "home", {"archive_transcripts": archives}):
        with anyio.fail_after(20):
            while own.exists() or archive.exists() != archives:
                await anyio.sleep(0.01)
    assert client.exists()
