"""Transcripts that the server writes: where they lie, what each line is, and what a crash leaves."""

import json
import os
import re
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from serena_central.core.errors import StoreError
from serena_central.transcripts import cleanup
from serena_central.transcripts.own_files import day_files, project_folders
from serena_central.transcripts.reader import InvalidTranscript, Skipped, folder_of, records, sessions
from serena_central.transcripts.records import (
    CONTINUES,
    DECODER,
    AnyRecord,
    AssistantMessage,
    ToolCall,
    ToolResult,
    UserMessage,
    project_hash,
)
from serena_central.transcripts.roots import Root, roots_of
from serena_central.transcripts.session_ids import SessionIds
from serena_central.transcripts.writer import TranscriptWriter
from tests.support.transcripts import claude, written

ROOT = "/home/u/proj"
AT = datetime(2026, 11, 16, 23, 59, 59, tzinfo=UTC)
SESSION = uuid4()


def said(text: str, session: UUID = SESSION) -> UserMessage:
    return UserMessage(session_id=session, timestamp=AT, content=text)


def read(folder: Path, session: UUID = SESSION) -> tuple[list[str], list[str]]:
    """The texts of a session and the lines that were skipped."""
    skipped: list[Skipped] = []
    found = [one.content for one in records(folder, session, skipped.append) if isinstance(one, UserMessage)]
    return found, [f"{one.file.name}:{one.line}" for one in skipped]


def test_the_folder_of_a_project_has_a_name_of_its_own() -> None:
    """REQ-JSONL-001"""
    assert project_hash(ROOT) == "nAn4BVomwnc23cwEtOaT"
    names = {project_hash(f"/home/u/proj-{number}") for number in range(10_000)}
    assert len(names) == 10_000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{20}", name) for name in names)


def test_midnight_in_utc_begins_a_file_and_earlier_bytes_stay(tmp_path: Path) -> None:
    """REQ-JSONL-002"""
    now = AT
    writer = TranscriptWriter(tmp_path, ROOT, clock=lambda: now)
    writer.append(said("before"))
    first = writer.folder / "2026-11-16.jsonl"
    before = first.read_bytes()
    now = AT + timedelta(seconds=1)
    writer.append(said("äfter"))
    writer.close()
    assert first.read_bytes() == before
    second = (writer.folder / "2026-11-17.jsonl").read_bytes()
    assert second.count(b"\n") == 1
    assert second.endswith(b"\n")
    assert b"\r" not in second
    assert "äfter" in second.decode()
    assert read(writer.folder) == (["before", "äfter"], [])
    assert first.stat().st_mode & 0o077 == 0


EACH: list[AnyRecord] = [
    UserMessage(session_id=SESSION, timestamp=AT, content="Where?", model="m", attachments=[{"path": "a.py"}]),
    AssistantMessage(
        session_id=SESSION, timestamp=AT, content="There.", tool_calls=[{"id": "t"}], stop_reason="end_turn",
        input_tokens=1, output_tokens=2, cache_creation_tokens=3, cache_read_tokens=4, cost=0.1235,
    ),
    ToolCall(session_id=SESSION, timestamp=AT, tool_call_id="t", tool_name="find", tool_input={"a": [1]}),
    ToolResult(
        session_id=SESSION, timestamp=AT, tool_call_id="t", tool_name="find", status="ok", output="x", exit_code=0,
        execution_time_ms=1.5,
    ),
]  # fmt: skip


@pytest.mark.parametrize("record", EACH, ids=lambda one: type(one).__name__)
def test_each_kind_is_read_as_it_was_written(record: AnyRecord, tmp_path: Path) -> None:
    """REQ-JSONL-003"""
    writer = TranscriptWriter(tmp_path, ROOT)
    writer.append(record)
    writer.close()
    assert list(records(writer.folder, SESSION, lambda _: None)) == [record]
    [line] = [file.read_text() for file in day_files(writer.folder)]
    assert {"sessionId", "timestamp", "role"} <= set(json.loads(line))


@pytest.mark.parametrize("record", EACH, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("missing", ["sessionId", "timestamp", "role"])
def test_a_line_without_a_required_field_is_none(record: AnyRecord, missing: str) -> None:
    """REQ-JSONL-003"""
    plain = json.loads(msgspec.json.encode(record))
    del plain[missing]
    with pytest.raises(msgspec.ValidationError):
        DECODER.decode(json.dumps(plain))


def test_a_session_id_is_a_uuid_of_version_4() -> None:
    """REQ-JSONL-004"""
    with pytest.raises(msgspec.ValidationError, match="version 4"):
        DECODER.decode(
            b'{"role":"user","sessionId":"01a20568-5176-7c23-8d01-d6c7fac1e871","timestamp":"2026-11-16T00:00:00Z","content":""}'
        )


def test_secrets_are_masked_and_counts_are_not(tmp_path: Path) -> None:
    writer = TranscriptWriter(tmp_path, ROOT)
    secret = "ghp_abcdefghijklmnopqrstuvwxyz012345"
    writer.append(said(f"My token is {secret}"))
    writer.append(
        ToolCall(session_id=SESSION, timestamp=AT, tool_call_id="t", tool_name="x", tool_input={"password": "hunter22"})
    )
    writer.append(
        ToolResult(session_id=SESSION, timestamp=AT, tool_call_id="t", tool_name="x", status="ok", output=secret)
    )
    writer.append(EACH[1])
    writer.close()
    text = "".join(file.read_text() for file in day_files(writer.folder))
    assert secret not in text
    assert "hunter22" not in text
    assert '"inputTokens":1' in text


def test_a_second_writer_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    first = TranscriptWriter(tmp_path, ROOT)
    with pytest.raises(StoreError, match="Another process"):
        TranscriptWriter(tmp_path, ROOT)
    first.close()
    TranscriptWriter(tmp_path, ROOT).close()


def test_appending_a_line_is_one_write_to_a_file_that_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PERF-002: what it takes is in `make bench ARGS=usage`."""
    writer = TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)
    writer.append(said("first"))
    done: list[tuple[int, bytes]] = []
    write = os.write

    def noted(file: int, content: bytes) -> int:
        done.append((file, content))
        return write(file, content)

    def opened(*_: object, **__: object) -> int:
        raise AssertionError("it opened a file")

    monkeypatch.setattr(os, "write", noted)
    monkeypatch.setattr(os, "open", opened)
    for number in range(10):
        writer.append(said(f"number {number}"))
    monkeypatch.undo()
    assert len({file for file, _ in done}) == 1
    assert [content.count(b"\n") for _, content in done] == [1] * 10
    assert read(writer.folder)[0] == ["first", *(f"number {number}" for number in range(10))]
    writer.close()


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    """REL-002"""
    writer = TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)
    writer.append(said("one"))
    writer.close()
    file = writer.folder / "2026-11-16.jsonl"
    torn = file.read_bytes() + b'{"role":"user","sessionId":"' + str(SESSION).encode() + b'","conte'
    file.write_bytes(torn)
    writer = TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)
    writer.append(said("two"))
    writer.close()
    assert file.read_bytes().startswith(torn + b"\n")
    assert read(writer.folder) == (["one", "two"], ["2026-11-16.jsonl:2"])


def test_a_line_that_a_full_disk_cut_is_ended_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, content: write(file, content[:40]))
        with pytest.raises(OSError, match="bytes were written"):
            writer.append(said("lost"))
    writer.append(said("kept"))
    writer.close()
    assert read(writer.folder)[0] == ["kept"]


def test_a_disk_that_was_full_at_the_first_line_costs_no_later_one(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            TranscriptWriter(tmp_path, ROOT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with closing(TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)) as writer:
        writer.append(said("later"))
        assert read(writer.folder) == (["later"], [])
    assert project_folders(tmp_path) == [writer.folder]


def test_a_project_whose_name_was_half_written_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / project_hash(ROOT)
    folder.mkdir()
    (folder / "project.json").write_bytes(b"")
    TranscriptWriter(tmp_path, ROOT).close()
    assert project_folders(tmp_path) == [folder]


def test_a_day_that_is_deleted_while_it_is_written_begins_anew(tmp_path: Path) -> None:
    with closing(TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)) as writer:
        writer.append(said("before"))
        (writer.folder / "2026-11-16.jsonl").unlink()
        writer.append(said("after"))
        assert read(writer.folder) == (["after"], [])


def test_faulty_lines_are_skipped_and_a_missing_field_rejects(tmp_path: Path) -> None:
    """REL-002, REQ-JSONL-006"""
    writer = TranscriptWriter(tmp_path, ROOT, clock=lambda: AT)
    writer.append(said("one"))
    writer.close()
    file = writer.folder / "2026-11-16.jsonl"
    session = str(SESSION).encode()
    with file.open("ab") as more:
        more.write(b"\x00\x00" + session + b"\n\xff\xfe" + session + b"\n{" + session + b"\n")
        more.write(b'{"latin-1":"Gr\xf6\xdfe","sessionId":"' + session + b'"}\n')
    assert read(writer.folder) == (["one"], [f"2026-11-16.jsonl:{line}" for line in (2, 3, 4, 5)])
    with file.open("ab") as more:
        more.write(b'{"role":"user","sessionId":"' + session + b'","content":"no time"}\n')
    with pytest.raises(InvalidTranscript, match=r"2026-11-16\.jsonl:6: .*timestamp"):
        read(writer.folder)


def test_sessions_are_kept_apart_and_found(tmp_path: Path) -> None:
    other = uuid4()
    writer = TranscriptWriter(tmp_path, ROOT)
    for text, session in (("a", SESSION), ("b", other), ("c", SESSION)):
        writer.append(said(text, session))
    writer.close()
    assert read(writer.folder) == (["a", "c"], [])
    assert {one.session: one.lines for one in sessions(tmp_path)} == {str(SESSION): 2, str(other): 1}
    assert sessions(tmp_path)[0].project == ROOT
    assert folder_of(tmp_path, str(other)) == writer.folder
    assert folder_of(tmp_path, "nowhere") is None


def test_a_session_keeps_its_id_over_restarts_until_a_day_of_silence(tmp_path: Path) -> None:
    """REQ-JSONL-004"""
    first = SessionIds(tmp_path).current("window", AT)
    assert first.version == 4
    again = SessionIds(tmp_path)
    assert again.current("window", AT + timedelta(hours=24)) == first
    assert again.current("other", AT) != first
    later = again.current("window", AT + timedelta(hours=48, seconds=1))
    assert later != first


def test_another_conversation_in_the_same_window_has_an_id_of_its_own(tmp_path: Path) -> None:
    """REQ-JSONL-004: `--new`, `/clear` and `/new` of clients whose hooks report their conversations."""
    ids = SessionIds(tmp_path)
    unnamed = ids.current("window", AT)
    assert ids.current("window", AT, "conv-1") == unnamed  # the hook told what it is called
    begun = ids.current("window", AT, "conv-2")
    assert begun != unnamed
    assert begun.version == 4
    restarted = SessionIds(tmp_path)
    assert restarted.current("window", AT) == begun  # no hook has reported since the restart
    assert restarted.current("window", AT, "conv-2") == begun
    assert restarted.current("window", AT, "conv-1") not in (unnamed, begun)


Aged = Callable[[str, float], Path]


@pytest.fixture
def aged(tmp_path: Path) -> Aged:
    """Writes a line for a session in a project of a name, in a file of that many days."""

    def make(name: str, days: float) -> Path:
        at = AT - timedelta(days=days)
        writer = TranscriptWriter(tmp_path, name, clock=lambda: at)
        writer.append(said("x"))
        writer.close()
        file = writer.folder / f"{at.date().isoformat()}.jsonl"
        os.utime(file, (at.timestamp(), at.timestamp()))
        return file

    return make


def test_old_transcripts_are_deleted_unless_settings_or_pins_keep_them(tmp_path: Path, aged: Aged) -> None:
    """REQ-JSONL-007"""
    old, fresh, kept = aged("/a", 31), aged("/a", 29), aged("/for-ever", 400)
    foreign = written(tmp_path / "not-ours" / "2020-01-01.jsonl", claude("m"))
    os.utime(foreign, (0, 0))

    def days(root: str) -> int:
        return cleanup.NEVER if root == "/for-ever" else cleanup.KEEP_DAYS

    cleanup.pin(tmp_path, str(SESSION))
    assert cleanup.clean_up(tmp_path, days, AT) == []
    cleanup.pin(tmp_path, str(SESSION), on=False)
    assert cleanup.clean_up(tmp_path, days, AT) == [old]
    assert fresh.exists()
    assert kept.exists()
    assert foreign.exists()


def test_what_a_pinned_session_continues_is_kept_with_it(tmp_path: Path) -> None:
    sessions = [uuid4() for _ in range(3)]
    for number, session in enumerate(sessions):
        at = AT - timedelta(days=100 - number)
        before = [{"type": CONTINUES, "sessionId": str(sessions[0])}] if number == 1 else []
        writer = TranscriptWriter(tmp_path, "/a", clock=lambda at=at: at)
        writer.append(UserMessage(session_id=session, timestamp=at, content=f"prompt {number}", attachments=before))
        writer.close()
    files = sorted(tmp_path.glob("*/*.jsonl"))
    for file in files:
        os.utime(file, (0, 0))
    cleanup.pin(tmp_path, str(sessions[1]))
    assert cleanup.clean_up(tmp_path, lambda _: 30, AT) == files[2:]
    assert [file.exists() for file in files] == [True, True, False]


def test_nothing_of_a_project_is_deleted_while_it_is_not_known_what_a_pinned_session_continues(
    tmp_path: Path, aged: Aged
) -> None:
    before, broken, elsewhere = aged("/a", 40), aged("/a", 31), aged("/b", 31)
    for file in (before, elsewhere):
        file.write_bytes(file.read_bytes().replace(str(SESSION).encode(), str(uuid4()).encode()))
        os.utime(file, (0, 0))
    broken.write_bytes(b'{"role":"user","sessionId":"' + str(SESSION).encode() + b'"}\n')
    os.utime(broken, (0, 0))
    cleanup.pin(tmp_path, str(SESSION))
    assert cleanup.clean_up(tmp_path, lambda _: 30, AT) == [elsewhere]
    assert before.exists()


def test_pins_that_are_set_at_once_all_count(tmp_path: Path) -> None:
    names = [f"session-{number}" for number in range(16)]
    with ThreadPoolExecutor(len(names)) as pool:
        assert [*pool.map(partial(cleanup.pin, tmp_path), names)] == [None] * len(names)
    assert cleanup.pinned(tmp_path) == set(names)


@pytest.mark.parametrize("damage", [b'["3f0c', b'["\xff"]', b"{}", b""])
def test_nothing_is_deleted_while_it_is_not_known_what_is_kept(tmp_path: Path, aged: Aged, damage: bytes) -> None:
    old = aged("/a", 31)
    (tmp_path / cleanup.PINNED).write_bytes(damage)
    for attempt in (
        lambda: cleanup.clean_up(tmp_path, lambda _: 30, AT),
        lambda: cleanup.pin(tmp_path, str(SESSION)),
        lambda: cleanup.pinned(tmp_path),
    ):
        with pytest.raises(StoreError, match=cleanup.PINNED):
            attempt()
    assert old.exists()
    assert (tmp_path / cleanup.PINNED).read_bytes() == damage


@pytest.mark.parametrize("damage", [b'{"window": {"sessionId": "\xff', b"[]", b'{"window": {"lastActivity": 1'])
def test_damaged_notes_of_ours_cost_an_id_and_no_line(tmp_path: Path, damage: bytes) -> None:
    aged = b'{"window":{"sessionId":"01234567-89ab-4def-8123-456789abcdef","lastActivity":"2026-11-16T10:00:00"}}'
    for content in (damage, aged):  # the second one says of no time zone
        (tmp_path / "sessions.json").write_bytes(content)
        first = SessionIds(tmp_path).current("window", AT)
        assert SessionIds(tmp_path).current("window", AT) == first
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "project.json").write_bytes(b'{"root":"\xff"}')
    assert project_folders(tmp_path) == []


def test_clients_transcripts_are_archived_and_stay(tmp_path: Path) -> None:
    import gzip

    file = written(tmp_path / ".claude" / "projects" / "p" / "s.jsonl", claude("m"))
    roots: list[Root] = roots_of(tmp_path, {})
    now = datetime.now(UTC)
    assert cleanup.archive(roots, tmp_path / "archive", now) == []
    later = now + timedelta(days=21)
    [made] = cleanup.archive(roots, tmp_path / "archive", later)
    assert gzip.decompress(made.read_bytes()) == file.read_bytes()
    assert cleanup.archive(roots, tmp_path / "archive", later) == []


def test_transcripts_of_one_name_in_several_folders_of_a_client_are_all_archived(tmp_path: Path) -> None:
    import gzip

    places = [tmp_path / name / "projects" / "p" / "s.jsonl" for name in ("work", "private")]
    files = [written(place, claude(place.parts[-4])) for place in places]
    roots = roots_of(tmp_path, {"CLAUDE_CONFIG_DIR": f"{tmp_path}/work,{tmp_path}/private"})
    later = datetime.now(UTC) + timedelta(days=21)
    made = cleanup.archive(roots, tmp_path / "archive", later)

    assert sorted(map(gzip.decompress, map(Path.read_bytes, made))) == sorted(map(Path.read_bytes, files))
    assert cleanup.archive(roots, tmp_path / "archive", later) == []


@pytest.mark.slow
def test_a_file_of_any_size_is_read_in_little_memory(tmp_path: Path) -> None:
    """A fifth of a gigabyte, in a process of its own that may not use more than 50 MB above its start."""
    import subprocess
    import sys

    writer = TranscriptWriter(tmp_path, ROOT)
    line: dict[str, Any] = json.loads(msgspec.json.encode(said("x" * 1000)))
    file = writer.folder / "2026-11-16.jsonl"
    with file.open("wb") as out:
        out.write((json.dumps(line).encode() + b"\n") * 200_000)
    writer.close()
    program = (
        "import resource, sys; from pathlib import Path; from serena_central.transcripts.reader import records\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = sum(1 for _ in records(Path(sys.argv[1]), sys.argv[2], print))\n"
        "print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(writer.folder), str(SESSION)], capture_output=True, check=True, text=True
    )
    count, grown_mb = map(int, done.stdout.split())
    assert count == 200_000
    assert grown_mb < 50
