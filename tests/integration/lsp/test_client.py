"""The client against a scripted server: a real child process that misbehaves on demand."""

import os
import sys
import threading
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec.structs
import psutil
import pytest

from serena_central.core.errors import (
    DeadlineExceeded,
    PathNotFound,
    RequestFailed,
    ServerBusy,
    ServerCrashed,
    ServerStartFailed,
    ServerUnavailable,
    Unsupported,
)
from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import FileEvent, Location
from serena_central.lsp.catalogue import Documents, Naming, Readiness, Watching
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.diagnostics_wait import LEAST_S
from serena_central.lsp.lsp_session import CURRENT_TRIES, RETRY_PAUSES_S
from serena_central.lsp.readiness import noting_gaps
from serena_central.processes.usage import Usage
from tests.support.fakes import FAKE_SPEC, fake_launch, fake_server, log_of, logged, methods_of, running, text_of

pytestmark = pytest.mark.anyio

START = Position(0, 0)

REFERENCES = "textDocument/references"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "root" / "ä b.py"
    file.parent.mkdir()
    file.write_text("first\n", encoding="utf-8")
    return file


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_a_life_from_initialize_to_exit(file: Path, log: Path) -> None:
    server = fake_server(file.parent, log=str(log))
    assert (server.alive, server.pid, server.exit_code) == (False, None, None)
    async with running(server):
        started = await logged(log, event="started")
        assert server.alive
        assert server.pid == started["pid"]
        assert server.server_version == "1.0"
        assert server.capabilities["hoverProvider"] is True
        assert server.usage().memory_bytes > 1_000_000
        assert await server.ready() is None
        await server.ping()
    assert (server.alive, server.exit_code) == (False, 0)
    assert methods_of(log) == ["initialize", "initialized", "$/serenaCentral/ping", "shutdown", "exit"]
    assert server.usage() == Usage()


async def test_a_file_is_opened_once_and_follows_the_disk(file: Path, log: Path) -> None:
    async with running(fake_server(file.parent, log=str(log))) as server:
        assert await server.hover(file, START) == "v1:first"
        assert await server.hover(file, START) == "v1:first"
        file.write_text("second\n", encoding="utf-8")
        assert await server.hover(file, START) == "v2:second"
        os.utime(file)
        assert await server.hover(file, START) == "v2:second"  # touched, not changed
        file.unlink()
        with pytest.raises(PathNotFound):
            await server.hover(file, START)
        file.write_text("third\n", encoding="utf-8")
        assert await server.hover(file, START) == "v3:third"
    told = [method for method in methods_of(log) if method.startswith("textDocument/did")]
    assert told == [f"textDocument/did{what}" for what in ("Open", "Change", "Close", "Open")]


async def test_a_write_of_the_same_size_within_the_clocks_granularity_is_seen(file: Path) -> None:
    async with running(fake_server(file.parent)) as server:
        for number in range(30):
            file.write_text(f"text {number:02}\n", encoding="utf-8")
            status = file.stat()
            assert await server.hover(file, START) == f"v{number + 1}:text {number:02}"
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


async def test_noted_changes_are_told_before_the_next_request_in_order(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, watch=Watching(globs=("**/*.py",)))
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        await server.hover(file, START)
        file.write_text("changed\n", encoding="utf-8")
        server.files_changed(
            [
                FileEvent(file, "changed"),
                FileEvent(file.with_name("new.py"), "created"),
                FileEvent(file.with_name("new.py"), "changed"),
                FileEvent(file.with_name("old.py"), "deleted"),
                FileEvent(file.with_name("notes.txt"), "created"),
            ]
        )
        assert await server.hover(file, START) == "v2:changed"
    entries = log_of(log)
    methods = [entry.get("method") for entry in entries]
    at = methods.index("workspace/didChangeWatchedFiles")
    assert methods[at - 1 : at + 2] == [
        "textDocument/didChange",
        "workspace/didChangeWatchedFiles",
        "textDocument/hover",
    ]
    kinds = {entry["uri"].rpartition("/")[2]: entry["type"] for entry in entries[at]["params"]["changes"]}
    assert kinds == {"%C3%A4%20b.py": 2, "new.py": 1, "old.py": 3}


async def test_changes_are_told_without_any_request_too(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, watch=Watching(globs=("**/*.py",)))
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        server.files_changed([FileEvent(file, "changed")])
        await logged(log, method="workspace/didChangeWatchedFiles")


async def test_a_registered_watcher_is_honoured_until_it_is_withdrawn(file: Path, log: Path) -> None:
    watcher = {"globPattern": {"baseUri": file.parent.as_uri(), "pattern": "*.{cfg,ini}"}, "kind": 4}
    registration = {"id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": {"watchers": [watcher]}}
    say = [{"id": "r", "method": "client/registerCapability", "params": {"registrations": [registration]}}]
    async with running(fake_server(file.parent, log=str(log), say=say)) as server:
        await server.ping()
        names = ("a.cfg", "b.ini", "c.txt")
        server.files_changed([FileEvent(file.with_name(name), "deleted") for name in names])
        server.files_changed([FileEvent(file.with_name("d.cfg"), "created")])
        told = await logged(log, method="workspace/didChangeWatchedFiles")
    assert [change["uri"].rpartition("/")[2] for change in told["params"]["changes"]] == ["a.cfg", "b.ini"]


async def test_no_more_documents_are_open_than_the_limit_and_the_oldest_goes_first(
    file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.lsp.documents.MAX_OPEN", 2)
    files = [file.with_name(f"f{number}.py") for number in range(3)]
    for each in files:
        each.write_text(each.name, encoding="utf-8")
    async with running(fake_server(file.parent, log=str(log))) as server:
        for each in (files[0], files[1], files[0], files[2]):
            await server.hover(each, START)
    closed = [entry for entry in log_of(log) if entry.get("method") == "textDocument/didClose"]
    assert [entry["params"]["textDocument"]["uri"] for entry in closed] == [files[1].as_uri()]


async def test_a_file_of_another_platform_is_closed_before_a_question_about_others_once_nobody_asks_about_it(
    file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.lsp.documents.UNASKED_S", 60.0)
    system = "darwin" if sys.platform == "win32" else "windows"
    by_name, by_text = file.with_name(f"a_{system}.py"), file.with_name("b.py")
    by_name.write_text("", encoding="utf-8")
    by_text.write_text(f"//go:build {system}\n", encoding="utf-8")
    spec = msgspec.structs.replace(
        FAKE_SPEC, documents=Documents(unopened=("document_symbols",), project_per_platform=True)
    )
    hang_on = ["textDocument/references"]
    async with running(fake_server(file.parent, spec, log=str(log), hang_on=hang_on)) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.references, by_name, START)
            await logged(log, method=hang_on[0])
            with monkeypatch.context() as at_once:
                at_once.setattr("serena_central.lsp.documents.UNASKED_S", 0.0)
                await server.hover(file, START)  # it is still asked about
            tasks.cancel_scope.cancel()
        await server.hover(by_text, START)
        await server.hover(file, START)
        assert "textDocument/didClose" not in methods_of(log)
        monkeypatch.setattr("serena_central.lsp.documents.UNASKED_S", 0.0)
        await server.document_symbols(file)
    closed = [entry for entry in log_of(log) if entry.get("method") == "textDocument/didClose"]
    assert [entry["params"]["textDocument"]["uri"] for entry in closed] == [by_name.as_uri(), by_text.as_uri()]


async def test_a_file_of_another_platform_is_kept_for_the_next_of_its_kind_and_followed_through_edits(
    file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.lsp.documents.UNASKED_S", 0.0)
    constraint = f"//go:build {'darwin' if sys.platform == 'win32' else 'windows'}\n"
    files = [file.with_name(name) for name in ("a.py", "b.py", "c.py")]
    for each in files:
        each.write_text(constraint, encoding="utf-8")
    spec = msgspec.structs.replace(
        FAKE_SPEC, documents=Documents(unopened=("document_symbols",), project_per_platform=True)
    )
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        await server.hover(files[0], START)
        await server.document_symbols(files[1])
        await server.hover(files[1], START)
        assert "textDocument/didClose" not in methods_of(log)
        files[0].write_text("built here\n", encoding="utf-8")
        await server.hover(files[0], START)
        await server.hover(file, START)
        file.write_text(constraint, encoding="utf-8")
        await server.hover(file, START)
        await server.hover(files[0], START)
    closed = [entry for entry in log_of(log) if entry.get("method") == "textDocument/didClose"]
    assert [entry["params"]["textDocument"]["uri"] for entry in closed] == [files[1].as_uri(), file.as_uri()]


async def test_a_file_of_another_platform_that_nobody_asks_about_any_more_is_closed_by_itself(
    file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.lsp.documents.LEFT_OPEN_S", 0.2)
    elsewhere = file.with_name(f"a_{'darwin' if sys.platform == 'win32' else 'windows'}.py")
    elsewhere.write_text("", encoding="utf-8")
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(project_per_platform=True))
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        await server.hover(file, START)
        await server.hover(elsewhere, START)
        closed = await logged(log, method="textDocument/didClose")
    assert closed["params"]["textDocument"]["uri"] == elsewhere.as_uri()


async def test_a_question_that_each_change_cancels_is_answered_at_last(file: Path, log: Path) -> None:
    method = "textDocument/references"
    late = {"late_on": {method: 0.3}, "cancels_late": True}
    async with running(fake_server(file.parent, log=str(log), **late)) as server, anyio.create_task_group() as tasks:

        async def edit() -> None:
            for number in count():
                file.write_text(f"pass  # {number}\n", encoding="utf-8")
                server.files_changed([FileEvent(file, "changed")])
                await anyio.sleep(0.05)

        tasks.start_soon(edit)
        other = file.with_name("other.py")
        other.write_text("pass\n", encoding="utf-8")
        await server.hover(file, START)
        with anyio.fail_after(60):
            assert await server.references(other, START) == []
        tasks.cancel_scope.cancel()
    assert methods_of(log).count(method) == len(RETRY_PAUSES_S) + 1


async def test_symbols_of_the_text_before_are_asked_for_again_for_a_time(file: Path, log: Path) -> None:
    method = "textDocument/documentSymbol"
    file.write_text("class Ring:\n    def size(self): ...\n", encoding="utf-8")

    def symbols(column: int) -> list[dict[str, Any]]:
        def span(line: int, start: int, end: int) -> dict[str, Any]:
            return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}

        size = {"name": "size", "kind": 6, "range": span(1, 4, 23), "selectionRange": span(1, column, column + 4)}
        ring = {"name": "Ring", "kind": 5, "range": span(0, 0, 11), "selectionRange": span(0, 6, 10)}
        return [{**ring, "children": [size]}]

    for lag_s, columns, asked in ((60.0, [4, 4, 8], 3), (0.0, [4, 8], 1), (0.3, [4], None)):
        log.unlink(missing_ok=True)
        spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(symbols_lag_s=lag_s))
        *first, last = map(symbols, columns)
        script = {"first_answers": {method: first}, "answers": {method: last}}
        async with running(fake_server(file.parent, spec, log=str(log), **script)) as server:
            with anyio.fail_after(60):
                (ring,) = await server.document_symbols(file)
        told = ring.children[0].selection.start.column
        assert told == (columns[asked - 1] if asked else 4)
        assert asked in (None, methods_of(log).count(method))


async def test_a_package_that_stands_for_all_that_declares_it_is_no_symbol_of_the_text_before(
    file: Path, log: Path
) -> None:
    method = "textDocument/documentSymbol"
    file.write_text("package a;\n", encoding="utf-8")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 10}}
    package = {"name": "a", "kind": 4, "range": span, "selectionRange": span}
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(symbols_lag_s=60.0))
    async with running(fake_server(file.parent, spec, log=str(log), answers={method: [package]})) as server:
        with anyio.fail_after(30):
            assert [one.name for one in await server.document_symbols(file)] == ["a"]
    assert methods_of(log).count(method) == 1


async def test_requests_that_need_no_open_document_open_none(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("document_symbols",)))
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        assert await server.document_symbols(file) == []
    assert "textDocument/didOpen" not in methods_of(log)


async def test_an_unopened_file_that_changed_since_it_was_asked_about_is_announced_first(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(
        FAKE_SPEC, documents=Documents(unopened=("document_symbols",)), watch=Watching(globs=("**/*.py",))
    )
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        await server.document_symbols(file)
        file.write_text("longer than it was\n", encoding="utf-8")
        await server.document_symbols(file)
    asked = ["workspace/didChangeWatchedFiles", "textDocument/documentSymbol"]
    assert [method for method in methods_of(log) if method in asked] == [asked[1], *asked]


async def test_a_server_that_trusts_mtime_gets_a_changed_file_opened_for_a_moment(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("document_symbols",), trusts_mtime=True))
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        server.files_changed([FileEvent(file, "changed"), FileEvent(file.with_name("gone.py"), "deleted")])
        await server.document_symbols(file)
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    assert asked == ["didOpen", "didClose", "documentSymbol"]


async def test_a_server_that_trusts_mtime_is_shown_no_file_whose_mtime_is_news_to_it(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("document_symbols",), trusts_mtime=True))
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        await server.document_symbols(file)
        before = file.stat()
        for mtime_ns in (before.st_mtime_ns + 1, before.st_mtime_ns + 1, before.st_mtime_ns + 2):
            os.utime(file, ns=(before.st_atime_ns, mtime_ns))
            server.files_changed([FileEvent(file, "changed")])
            await server.document_symbols(file)
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    symbols = "documentSymbol"
    assert asked == [symbols, symbols, "didOpen", "didClose", symbols, symbols]


async def test_a_folder_is_told_to_the_server_once(file: Path, log: Path) -> None:
    more = file.parent / "more"
    ask = {"id": "folders", "method": "workspace/workspaceFolders"}
    server = fake_server(file.parent, log=str(log), say_on={"textDocument/documentSymbol": [ask]})
    async with running(server):
        for folder in (file.parent, more, more):
            await server.enter(folder)
        await server.document_symbols(file)
        await server.ping()
    (answer,) = [entry for entry in log_of(log) if entry.get("id") == "folders"]
    assert methods_of(log).count("workspace/didChangeWorkspaceFolders") == 1
    assert [folder["name"] for folder in answer["result"]] == [file.parent.name, "more"]


async def test_a_server_that_reads_late_is_shown_what_is_new_of_its_own_language(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("document_symbols",), reads_late=True))
    notes = file.with_name("notes.md")
    notes.write_text("", encoding="utf-8")
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        server.files_changed([FileEvent(file, "created"), FileEvent(notes, "changed")])
        await server.document_symbols(file)
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    assert asked == ["didOpen", "didClose", "documentSymbol"]


async def test_a_server_that_does_not_know_a_file_from_the_disk_yet_is_shown_it(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("document_symbols",)))
    errors = {"textDocument/documentSymbol": [-32603]}
    async with running(fake_server(file.parent, spec, log=str(log), errors=errors)) as server:
        assert await server.document_symbols(file) == []
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    assert asked == ["documentSymbol", "didOpen", "documentSymbol"]


async def test_an_answer_that_points_into_a_changed_file_is_asked_again_once_that_was_read(
    file: Path, log: Path
) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(open_candidates=True, settle_candidates=True))
    other = file.with_name("other.py")
    other.write_text("x", encoding="utf-8")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    answers = {"textDocument/references": [{"uri": other.as_uri(), "range": span}]}
    async with running(fake_server(file.parent, spec, log=str(log), answers=answers)) as server:
        with noting_gaps() as lacks:
            for kind in ("changed", None):
                if kind:
                    server.files_changed([FileEvent(other, kind)])
                assert [place.path for place in await server.references(file, START)] == [other]
        assert lacks() is None
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    assert asked == ["didOpen", "references", "didOpen", "documentSymbol", "references", "references"]


async def test_imports_that_can_not_be_told_in_time_cost_their_own_file_its_symbols_and_no_other(file: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, naming=Naming(imports="(?m)^import ((x|xx|x?)+)b"))
    slow = file.with_name("slow.py")
    slow.write_text("import " + "x" * 60, encoding="utf-8")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    symbols = [{"name": "first", "kind": 13, "range": span, "selectionRange": span}]
    async with running(fake_server(file.parent, spec, answers={"textDocument/documentSymbol": symbols})) as server:
        turns, told = 0, anyio.Event()

        async def count() -> None:
            nonlocal turns
            while not told.is_set():
                turns += 1
                await anyio.sleep(0.001)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            with pytest.raises(RequestFailed, match=r"slow.py are imports is unknown: fake naming.imports took"):
                await server.document_symbols(slow)
            told.set()
        assert turns > 20, "others run meanwhile"
        assert [symbol.name for symbol in await server.document_symbols(file)] == ["first"]
        assert await server.ready() is None


async def test_who_asks_for_references_is_called_when_the_server_was_asked(file: Path, log: Path) -> None:
    asked = anyio.Event()
    script = {"hang_on": ["textDocument/references"]}
    async with running(fake_server(file.parent, log=str(log), **script)) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server.references, file, START, when_asked=asked.set))
        with anyio.fail_after(60):
            await asked.wait()
        await logged(log, method="textDocument/references")
        tasks.cancel_scope.cancel()


async def test_places_in_files_that_are_at_hand_are_converted_without_a_thread(file: Path) -> None:
    file.write_text("größe = 1", encoding="utf-8")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 7}}  # in UTF-8
    script = {"answers": {"textDocument/definition": [{"uri": file.as_uri(), "range": span}]}}
    threads: set[str] = set()

    def read(path: Path) -> Text:
        threads.add(threading.current_thread().name)
        return text_of(path)

    for at_hand in (False, True):
        spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("definition",)))
        launch = fake_launch(**script)
        made = partial(LanguageServer, spec, file.parent, launch=launch, settings={}, read_text=read)
        async with running(made(are_at_hand=lambda _paths, at_hand=at_hand: at_hand)) as server:
            threads.clear()
            assert [(one.path, one.range.end.column) for one in await server.definition(file, START)] == [(file, 5)]
        assert (threads == {threading.main_thread().name}) is at_hand


async def test_what_includes_a_changed_file_is_rebuilt_and_stays_open(file: Path, log: Path) -> None:
    documents = Documents(open_candidates=True, settle_candidates=True, included=("*.h",))
    spec = msgspec.structs.replace(FAKE_SPEC, documents=documents)
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        await server.references(file, START, candidates=[file])
        server.files_changed([FileEvent(file.with_name("x.h"), "changed")])
        await server.references(file, START, candidates=[file])
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    once = ["documentSymbol", "references"]
    assert asked == ["didOpen", *once, "didChange", *once]
    (rebuilt,) = [entry["params"] for entry in log_of(log) if entry.get("method") == "textDocument/didChange"]
    assert rebuilt["forceRebuild"] is True


async def test_candidates_are_opened_and_worked_on_before_the_question_once(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(open_candidates=True, settle_candidates=True))
    other = file.with_name("other.py")
    other.write_text("", encoding="utf-8")
    gone = file.with_name("gone.py")
    async with running(fake_server(file.parent, spec, log=str(log))) as server:
        for _ in range(2):
            assert await server.references(file, START, candidates=[other, gone]) == []
    asked = [method.rpartition("/")[2] for method in methods_of(log) if method.startswith("textDocument/")]
    assert asked == ["didOpen", "didOpen", "documentSymbol", "documentSymbol", "references", "references"]


async def test_others_run_between_two_of_the_candidates_that_are_opened(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.core.pacing.SLICE_S", 0.0)
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(open_candidates=True, settle_candidates=True))
    others = [file.with_name(f"{number}.py") for number in range(20)]
    for other in others:
        other.write_text("", encoding="utf-8")
    turns, read_at = 0, dict[Path, int]()

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    def read(path: Path) -> Text:
        read_at.setdefault(path, turns)
        return text_of(path)

    server = LanguageServer(spec, file.parent, launch=fake_launch(), settings={}, read_text=read)
    async with running(server), anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await server.references(file, START, candidates=others)
        tasks.cancel_scope.cancel()
    seen = [read_at[other] for other in others]
    assert len(set(seen)) == len(others)


async def test_work_that_begins_with_the_first_document_is_waited_for_before_a_wide_question(
    file: Path, log: Path
) -> None:
    readiness = Readiness(kind="progress", titles=("index",), grace_s=60, cap_s=60, after_open=True)
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=readiness)

    def progress(**value: str) -> dict[str, object]:
        return {"method": "$/progress", "params": {"token": "t", "value": value}}

    say_on = {
        "textDocument/didOpen": [progress(kind="begin", title="index")],
        "textDocument/hover": [progress(kind="end")],
    }
    server = fake_server(file.parent, spec, log=str(log), say_on=say_on)
    async with running(server), anyio.create_task_group() as tasks:
        tasks.start_soon(server.references, file, START)
        await logged(log, method="textDocument/didOpen")
        await server.hover(file, START)  # waits for nothing, and lets the index end
    asked = [method for method in methods_of(log) if method in ("textDocument/hover", "textDocument/references")]
    assert asked == ["textDocument/hover", "textDocument/references"]


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("clangd version 22.1.1 linux", "22.1.1"),
        ('{"GoVersion":"go1.26.8","Version":"v0.23.0"}', "0.23.0"),
        ("dev", "dev"),
    ],
)
async def test_a_servers_version_is_the_number_in_what_it_says(file: Path, said: str, version: str) -> None:
    async with running(fake_server(file.parent, version=said)) as server:
        assert server.server_version == version


async def test_an_edit_by_ranges_replaces_the_whole_text(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(ranged_edits_only=True))
    file.write_text("one\nzwei ü", encoding="utf-8")
    async with running(
        fake_server(file.parent, spec, log=str(log), capabilities={"textDocumentSync": {"change": 2}})
    ) as server:
        await server.hover(file, START)
        file.write_text("three\n", encoding="utf-8")
        await server.hover(file, START)
    change = (await logged(log, method="textDocument/didChange"))["params"]["contentChanges"]
    end = {"line": 1, "character": 7}
    assert change == [{"text": "three\n", "range": {"start": {"line": 0, "character": 0}, "end": end}}]


async def test_bytes_that_are_no_text_reach_the_server_as_replacement_characters(file: Path) -> None:
    file.write_bytes(b"caf\xe9\n")
    async with running(fake_server(file.parent)) as server:
        assert await server.hover(file, START) == "v1:caf\ufffd"


async def test_identical_questions_are_asked_once(file: Path, log: Path) -> None:
    async with running(fake_server(file.parent, log=str(log), late_on={"textDocument/hover": 0.3})) as server:
        answers: list[str | None] = []

        async def ask() -> None:
            answers.append(await server.hover(file, START))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
    assert answers == ["v1:first"] * 5
    assert methods_of(log).count("textDocument/hover") == 1


async def test_a_cancelled_call_is_cancelled_in_the_server_and_its_late_answer_dropped(file: Path, log: Path) -> None:
    async with running(fake_server(file.parent, log=str(log), late_on={"textDocument/hover": 0.3})) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.hover, file, START)
            asked = await logged(log, method="textDocument/hover")
            tasks.cancel_scope.cancel()
        assert (await logged(log, method="$/cancelRequest"))["params"] == {"id": asked["id"]}
        assert await server.hover(file, START) == "v1:first"


async def test_a_cancelled_call_that_waited_for_a_server_to_read_leaves_it_with_the_texts_on_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = file.with_name("new.py")
    async with running(fake_server(file.parent)) as server:
        await server.hover(file, START)
        file.write_text("second\n", encoding="utf-8")
        new.write_text("new\n", encoding="utf-8")
        for path in (file, new):
            with monkeypatch.context() as unread:
                unread.setattr("serena_central.lsp.wire.MAX_QUEUED_FRAMES", 0)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(server.hover, path, START)
                    await anyio.wait_all_tasks_blocked()
                    tasks.cancel_scope.cancel()
        assert await server.hover(file, START) == "v2:second"
        assert await server.hover(new, START) == "v3:new"


async def test_a_build_that_a_cancelled_call_did_not_come_to_ask_for_is_asked_for_by_the_next(
    file: Path, log: Path
) -> None:
    file.with_name("Cargo.toml").write_text("[lib]\nproc-macro = true\n", encoding="utf-8")
    spec = msgspec.structs.replace(FAKE_SPEC, watch=Watching(globs=("**/*.rs",), rebuild="fake/rebuild"))
    async with running(fake_server(file.parent, spec, log=str(log), hang_on=["fake/rebuild"])) as server:
        await server.hover(file, START)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                server.files_changed([FileEvent(file.with_name("lib.rs"), "changed")])
                await server.hover(file, START)

            tasks.start_soon(ask)
            await logged(log, method="fake/rebuild")
            tasks.cancel_scope.cancel()
        await logged(log, method="fake/rebuild", count=2)


async def test_a_build_that_the_server_refuses_is_noted_with_answers_until_it_is_made(file: Path) -> None:
    file.with_name("Cargo.toml").write_text("[lib]\nproc-macro = true\n", encoding="utf-8")
    spec = msgspec.structs.replace(
        FAKE_SPEC,
        watch=Watching(globs=("**/*.rs",), rebuild="fake/rebuild"),
        readiness=msgspec.structs.replace(FAKE_SPEC.readiness, cap_s=0.5),  # it does not say when it has built
    )
    async with running(fake_server(file.parent, spec, errors={"fake/rebuild": [-32603]})) as server:

        async def noted() -> str | None:
            with noting_gaps() as lacks:
                await server.references(file, START)
            return lacks()

        assert await noted() is None
        server.files_changed([FileEvent(file.with_name("lib.rs"), "changed")])
        for _ in range(2):
            assert "did not run build scripts and procedural macros again" in (await noted() or "")
        server.files_changed([FileEvent(file.with_name("lib.rs"), "changed")])
        assert "build scripts" not in (await noted() or "")


async def test_changes_that_a_cancelled_call_did_not_come_to_tell_are_told_by_the_next(
    file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.lsp.documents.LARGE_BYTES", 0)
    other, created = file.with_name("other.py"), file.with_name("created.py")
    other.write_text("other\n", encoding="utf-8")
    is_read, may_be_read = threading.Event(), threading.Event()
    may_be_read.set()

    def read(path: Path) -> Text:
        is_read.set()
        assert may_be_read.wait(60)
        return text_of(path)

    spec = msgspec.structs.replace(FAKE_SPEC, watch=Watching(globs=("**/*.py",)))
    launch = fake_launch(log=str(log))
    async with running(LanguageServer(spec, file.parent, launch=launch, settings={}, read_text=read)) as server:
        for path in (file, other):
            await server.hover(path, START)
            path.write_text("changed\n", encoding="utf-8")
        is_read.clear()
        may_be_read.clear()
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                changes = [FileEvent(file, "changed"), FileEvent(other, "changed"), FileEvent(created, "created")]
                server.files_changed(changes)
                await server.hover(file, START)

            tasks.start_soon(ask)
            await anyio.to_thread.run_sync(is_read.wait, 60)
            server.files_changed([FileEvent(created, "changed")])
            tasks.cancel_scope.cancel()
            may_be_read.set()
        told = await logged(log, method="workspace/didChangeWatchedFiles")
        assert await server.hover(other, START) == "v4:changed"
    changes = [(change["uri"].rpartition("/")[2], change["type"]) for change in told["params"]["changes"]]
    assert changes == [("%C3%A4%20b.py", 2), ("other.py", 2), ("created.py", 1)]


async def test_an_outdated_answer_is_asked_for_again_a_bounded_number_of_times(file: Path, log: Path) -> None:
    async with running(
        fake_server(file.parent, log=str(log), errors={"textDocument/hover": [-32801, -32802, -32800, *[-32801] * 4]})
    ) as server:
        assert await server.ping() is None
        with pytest.raises(ServerBusy):
            # Three pauses, four tries: -32801, -32802, -32800, -32801.
            await server.hover(file, START)
        assert await server.hover(file, START) == "v1:first"
    assert methods_of(log).count("textDocument/hover") == 4 + 4


async def test_an_answer_about_a_text_that_has_changed_meanwhile_is_not_believed(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("document_symbols",)))
    async with (
        running(fake_server(file.parent, spec, log=str(log), late_on={"textDocument/documentSymbol": 0.3})) as server,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.document_symbols, file)
        await logged(log, method="textDocument/documentSymbol")
        file.write_text("changed while it was asked\n", encoding="utf-8")
    assert methods_of(log).count("textDocument/documentSymbol") == 2


async def test_an_error_fails_its_call_alone(file: Path) -> None:
    async with running(fake_server(file.parent, errors={"textDocument/hover": [-32603]})) as server:
        with pytest.raises(RequestFailed, match="as scripted") as caught:
            await server.hover(file, START)
        assert caught.value.code == -32603
        assert await server.hover(file, START) == "v1:first"


@pytest.mark.parametrize("garbage", ["json", "shape"])
async def test_an_answer_that_cannot_be_read_fails_its_call_alone(file: Path, garbage: str) -> None:
    async with running(fake_server(file.parent, garbage_on={"textDocument/hover": garbage})) as server:
        with pytest.raises(RequestFailed):
            await server.hover(file, START)
        assert server.alive
        await server.ping()


async def test_broken_framing_is_a_crash(file: Path) -> None:
    server = fake_server(file.parent, garbage_on={"textDocument/hover": "framing"})
    async with running(server):
        with pytest.raises(ServerCrashed, match=r"sent .a header without Content-Length"):
            await server.hover(file, START)
    assert server.exit_code is not None


async def test_what_is_not_offered_is_unsupported_and_a_denied_feature_too(file: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, deny=("definition",), unadvertised=("implementation",))
    async with running(fake_server(file.parent, spec)) as server:
        with pytest.raises(Unsupported):
            await server.definition(file, START)
        with pytest.raises(Unsupported):
            await server.definitions(file, [START], "declaration")
        assert await server.implementation(file, START) == []


async def test_a_request_that_the_server_does_not_know_before_it_has_loaded_is_sent_again(file: Path) -> None:
    readiness = Readiness(kind="notification", method="fake/status", field="quiet", value=True, grace_s=60, cap_s=60)
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=readiness)
    ready = {"textDocument/hover": [{"method": "fake/status", "params": {"quiet": True}}]}
    unknown = {"textDocument/hover": [-32601, -32601]}
    async with running(fake_server(file.parent, spec, say_on=ready, errors=unknown)) as server:
        with pytest.raises(Unsupported):  # the notification comes with the first answer: the second one is final
            await server.hover(file, START)
        assert await server.hover(file, START) == "v1:first"
    async with running(fake_server(file.parent, spec, say_on=ready, errors={"textDocument/hover": [-32601]})) as server:
        assert await server.hover(file, START) == "v1:first"


async def test_settings_are_answered_by_section_and_unset_ones_with_an_empty_table(file: Path, log: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, settings={"fake": {"deep": {"value": 1}}})
    sections = ["fake.deep", "fake.deep.value", "other", None]
    items = [{"section": section} if section else {} for section in sections]
    say = [
        {"id": 1, "method": "workspace/configuration", "params": {"items": items}},
        {"id": 2, "method": "window/showMessageRequest", "params": {"type": 1, "message": "?", "actions": []}},
        {"id": 3, "method": "workspace/applyEdit", "params": {"edit": {}}},
        {"id": 4, "method": "window/workDoneProgress/create", "params": {"token": 1}},
        {"id": 5, "method": "workspace/workspaceFolders"},
        {"id": 6, "method": "fake/unheardOf", "params": {}},
    ]
    async with running(fake_server(file.parent, spec, log=str(log), say=say)) as server:
        await server.ping()
    answers = {entry["id"]: entry for entry in log_of(log) if "method" not in entry and "id" in entry}
    assert answers[1]["result"] == [{"value": 1}, 1, {}, {"fake": {"deep": {"value": 1}}}]
    assert answers[2]["result"] is None
    assert answers[3]["result"]["applied"] is False
    assert answers[4]["result"] is None
    assert answers[5]["result"] == [{"uri": file.parent.as_uri(), "name": "root"}]
    assert answers[6]["error"]["code"] == -32601


async def test_published_diagnostics_are_awaited_for_the_text_as_it_is(file: Path) -> None:
    def published(version: int, message: str) -> dict[str, object]:
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
        diagnostics = [{"range": span, "message": message, "code": 7}]
        params = {"uri": file.as_uri(), "version": version, "diagnostics": diagnostics}
        return {"method": "textDocument/publishDiagnostics", "params": params}

    say_on = {"textDocument/didChange": [published(2, "new")], "textDocument/definition": [published(1, "old")]}
    async with running(fake_server(file.parent, say_on=say_on)) as server:
        await server.definition(file, START)
        (old,) = await server.diagnostics(file)
        assert (old.message, old.code, old.severity, old.range) == ("old", "7", 1, Range(START, Position(0, 5)))
        file.write_text("second\n", encoding="utf-8")
        (new,) = await server.diagnostics(file)
        assert new.message == "new"


async def test_diagnostics_of_a_file_that_changes_while_they_are_awaited_are_those_of_its_new_text(
    file: Path, log: Path
) -> None:
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
    params = {"uri": file.as_uri(), "version": 2, "diagnostics": [{"range": span, "message": "new"}]}
    say_on = {"textDocument/didChange": [{"method": "textDocument/publishDiagnostics", "params": params}]}
    found: list[str] = []
    async with running(fake_server(file.parent, log=str(log), say_on=say_on)) as server:

        async def ask() -> None:
            found.extend(one.message for one in await server.diagnostics(file))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await logged(log, method="textDocument/didOpen")
            file.write_text("second\n", encoding="utf-8")
            server.files_changed([FileEvent(file, "changed")])
    assert found == ["new"]


async def test_diagnostics_of_a_file_before_it_was_closed_are_not_those_of_the_file_that_is_opened_later(
    file: Path,
) -> None:
    def published(version: int, message: str) -> dict[str, object]:
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
        params = {"uri": file.as_uri(), "version": version, "diagnostics": [{"range": span, "message": message}]}
        return {"method": "textDocument/publishDiagnostics", "params": params}

    say_on = {
        "textDocument/definition": [published(1, "old")],
        "textDocument/documentSymbol": [published(1, "late")],
        "textDocument/hover": [published(2, "new")],
    }
    async with running(fake_server(file.parent, say_on=say_on)) as server:
        await server.definition(file, START)
        file.unlink()
        with pytest.raises(PathNotFound):
            await server.diagnostics(file)
        file.write_text("second\n", encoding="utf-8")
        async with anyio.create_task_group() as tasks:
            found: list[str] = []

            async def ask() -> None:
                found.extend(one.message for one in await server.diagnostics(file))

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await server.document_symbols(file)
            await server.hover(file, START)
    assert found == ["new"]


async def test_diagnostics_of_a_file_that_is_deleted_while_they_are_awaited_are_awaited_no_longer(
    file: Path, log: Path
) -> None:
    async with running(fake_server(file.parent, log=str(log))) as server, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(PathNotFound):
                await server.diagnostics(file)

        tasks.start_soon(ask)
        await logged(log, method="textDocument/didOpen")
        file.unlink()
        server.files_changed([FileEvent(file, "deleted")])


async def test_diagnostics_that_never_come_are_waited_for_less_and_less(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.lsp.diagnostics_wait.FULL_S", 1.0)
    waited: list[float] = []
    async with running(fake_server(file.parent)) as server:
        for _ in range(6):
            with pytest.raises(DeadlineExceeded) as expired:
                await server.diagnostics(file)
            waited.append(expired.value.seconds)
    assert waited[0] == 1.0
    assert waited == sorted(waited, reverse=True)
    assert waited[-1] == LEAST_S


async def test_the_names_of_a_file_are_asked_about_in_one_go(file: Path, log: Path) -> None:
    place = {"uri": file.as_uri(), "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}}
    asks = "textDocument/definition"
    script: dict[str, Any] = {"answers": {asks: [place]}, "errors": {asks: [-32603, -32801]}, "log": str(log)}
    async with running(fake_server(file.parent, **script)) as server:
        found = await server.definitions(file, [Position(0, column) for column in range(4)])
        assert found == [[Location(file, Range(START, Position(0, 5)))]] * 4
    assert methods_of(log).count(asks) == 6  # two of them failed, and were asked for again by themselves
    assert methods_of(log).count("textDocument/didOpen") == 1


async def test_a_name_of_which_the_server_can_not_tell_costs_the_others_nothing(file: Path) -> None:
    errors = {"textDocument/definition": [-32603] * 3}
    async with running(fake_server(file.parent, errors=errors)) as server:
        assert await server.definitions(file, [START, Position(0, 1)]) == [None, []]


async def test_the_names_of_a_file_that_changes_meanwhile_are_asked_about_again(file: Path, log: Path) -> None:
    asks = "textDocument/definition"
    spec = msgspec.structs.replace(FAKE_SPEC, documents=Documents(unopened=("definition",)))
    script: dict[str, Any] = {"late_on": {asks: 1.0}, "log": str(log)}
    async with running(fake_server(file.parent, spec, **script)) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.definitions, file, [START])
        await logged(log, method=asks)
        file.write_text("changed\n", encoding="utf-8")
    assert methods_of(log).count(asks) == 2


async def test_names_of_a_file_that_nobody_waits_for_any_more_are_taken_back(file: Path, log: Path) -> None:
    asks = "textDocument/definition"
    async with running(fake_server(file.parent, hang_on=[asks], log=str(log))) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.definitions, file, [START, Position(0, 1)])
            await logged(log, method=asks)
            tasks.cancel_scope.cancel()
        await server.ping()
    assert methods_of(log).count("$/cancelRequest") == 2


async def test_a_capped_wait_for_readiness_says_so(file: Path) -> None:
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=Readiness(kind="log", pattern="never", cap_s=0.1))
    async with running(fake_server(file.parent, spec)) as server:
        assert "may be incomplete" in (await server.ready() or "")


async def test_a_null_for_symbols_counts_only_from_a_server_that_is_ready(file: Path, log: Path) -> None:
    readiness = Readiness(kind="notification", method="fake/status", field="quiet", value=True, grace_s=60, cap_s=60)
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=readiness)
    asks = "textDocument/documentSymbol"
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
    symbol = {"name": "first", "kind": 12, "range": span, "selectionRange": span}
    quiet = [{"method": "fake/status", "params": {"quiet": True}}]
    script = {"answers": {asks: [symbol]}, "nulls": {asks: 2}, "say_on": {asks: quiet}, "log": str(log)}
    async with running(fake_server(file.parent, spec, **script)) as server:
        assert await server.document_symbols(file) == []  # ready between its two answers: the second counts
        assert [one.name for one in await server.document_symbols(file)] == ["first"]
    assert methods_of(log).count(asks) == 3


async def test_an_answer_while_the_server_reads_its_folders_anew_is_asked_for_again(file: Path, log: Path) -> None:
    readiness = Readiness(kind="notification", method="fake/status", field="quiet", value=True, grace_s=60, cap_s=60)
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=readiness, watch=Watching(globs=("**/*.py",)))
    calm, busy = ({"method": "fake/status", "params": {"quiet": quiet}} for quiet in (True, False))
    say_on = {"workspace/didChangeWatchedFiles": [busy], "textDocument/documentSymbol": [calm]}
    async with running(fake_server(file.parent, spec, log=str(log), say=[calm], say_on=say_on)) as server:
        assert await server.ready() is None
        server.files_changed([FileEvent(file.with_name("new.py"), "created")])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.references, file, START)
            await logged(log, method="textDocument/references")
            await server.document_symbols(file)
    assert methods_of(log).count("textDocument/references") == 2


async def test_a_server_that_every_question_makes_busy_is_believed_in_the_end_with_a_note(
    file: Path, log: Path
) -> None:
    readiness = Readiness(kind="notification", method="fake/status", field="quiet", value=True, grace_s=60, cap_s=60)
    calm, busy = ({"method": "fake/status", "params": {"quiet": quiet}} for quiet in (True, False))
    # It is ready again before anybody can look: what counts is how it was when it answered.
    script = {"say_on": {REFERENCES: [busy]}, "say_after": {REFERENCES: [calm]}}
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=readiness)
    async with running(fake_server(file.parent, spec, log=str(log), say=[calm], **script)) as server:
        assert await server.ready() is None
        with anyio.fail_after(60), noting_gaps() as lacks:
            assert await server.references(file, START) == []
        assert "may be incomplete" in (lacks() or "")
    assert methods_of(log).count(REFERENCES) == CURRENT_TRIES


async def test_what_one_answer_may_lack_is_no_matter_of_another_question(file: Path) -> None:
    """The server becomes ready right after an answer that it gave too early: the note stays with that answer."""
    readiness = Readiness(kind="notification", method="fake/status", field="quiet", value=True, grace_s=60, cap_s=0.1)
    spec = msgspec.structs.replace(FAKE_SPEC, readiness=readiness)
    quiet = [{"method": "fake/status", "params": {"quiet": True}}]
    async with running(fake_server(file.parent, spec, say_on={"$/serenaCentral/ping": quiet})) as server:
        with noting_gaps() as early:
            await server.references(file, START)
        await server.ping()
        with noting_gaps() as later:
            await server.references(file, START)
    assert "may be incomplete" in (early() or "")
    assert later() is None


async def test_a_file_of_which_an_unready_server_can_not_tell_is_no_empty_file(file: Path) -> None:
    readiness = Readiness(kind="log", pattern="never", grace_s=60, cap_s=0.1)
    async with running(fake_server(file.parent, msgspec.structs.replace(FAKE_SPEC, readiness=readiness))) as server:
        with pytest.raises(ServerBusy, match="still loading the project"):
            await server.document_symbols(file)


async def test_a_server_that_floods_stderr_is_never_blocked_and_its_last_words_are_kept(file: Path) -> None:
    async with running(fake_server(file.parent, flood_stderr_bytes=3_000_000)) as server:
        assert await server.hover(file, START) == "v1:first"
    assert server.stderr_tail.endswith("the end of the flood")
    assert len(server.stderr_tail) <= 16 * 1024


async def test_a_crash_wakes_every_caller_with_how_it_ended(file: Path, log: Path) -> None:
    server = fake_server(
        file.parent, log=str(log), hang_on=["textDocument/hover"], crash_on=["textDocument/definition"]
    )
    crashes: list[ServerCrashed] = []

    async def ask(character: int) -> None:
        with pytest.raises(ServerCrashed) as caught:
            await server.hover(file, Position(0, character))
        crashes.append(caught.value)

    async with running(server), anyio.create_task_group() as tasks:
        for character in range(3):
            tasks.start_soon(ask, character)
        await logged(log, method="textDocument/hover", count=3)
        with pytest.raises(ServerCrashed):
            await server.definition(file, START)
    assert [crash.exit_code for crash in crashes] == [-9] * 3
    assert server.exit_code == -9
    with pytest.raises(ServerCrashed):
        await server.hover(file, START)


async def test_a_call_on_a_server_that_was_stopped_says_so(file: Path, log: Path) -> None:
    server = fake_server(file.parent, log=str(log), hang_on=["textDocument/hover"])
    async with running(server), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ServerUnavailable):
                await server.hover(file, START)

        tasks.start_soon(ask)
        await logged(log, method="textDocument/hover")
        server.stop()


async def test_a_start_that_fails_says_why(file: Path) -> None:
    server = fake_server(file.parent, exit_at_start=3)
    with pytest.raises(ServerStartFailed, match=r"exited with code 3.*does not want to start"):
        await server.run()
    assert server.exit_code == 3
    with pytest.raises(ServerStartFailed, match="no licence"):
        await fake_server(file.parent, fail_initialize="no licence").run()


async def test_a_program_that_does_not_exist_fails_the_start(file: Path) -> None:
    server = fake_server(file.parent)
    server._launch = msgspec.structs.replace(server._launch, command=["/nonexistent/server"])
    with pytest.raises(ServerStartFailed, match="No such file"):
        await server.run()


async def test_a_start_that_never_ends_can_be_cancelled_and_leaves_nothing(file: Path, log: Path) -> None:
    server = fake_server(file.parent, log=str(log), never_initialize=True, ignore_eof=True, ignore_sigterm=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        started = await logged(log, event="started")
        await logged(log, method="initialize")
        tasks.cancel_scope.cancel()
    assert gone(started["pid"])


async def test_a_server_that_ignores_every_polite_word_is_killed_with_its_children(file: Path, log: Path) -> None:
    server = fake_server(
        file.parent,
        log=str(log),
        ignore_shutdown=True,
        ignore_eof=True,
        ignore_sigterm=True,
        detached_child=True,
        hang_on=["shutdown"],
    )
    with anyio.fail_after(60):
        async with running(server):
            child = (await logged(log, event="child"))["pid"]
            pid = server.pid
            assert pid
    assert gone(pid)
    assert gone(child)
    assert [entry["event"] for entry in log_of(log) if "event" in entry][-2:] == ["eof", "sigterm"]
    assert server.exit_code is not None


async def test_a_server_that_stops_reading_ends_no_later(file: Path, log: Path) -> None:
    server = fake_server(file.parent, log=str(log), freeze_on=["textDocument/hover"])
    file.write_text("x" * 3_000_000, encoding="utf-8")
    other = file.with_name("other.py")
    other.write_text("y" * 3_000_000, encoding="utf-8")
    with anyio.fail_after(60):
        async with running(server):
            with anyio.move_on_after(0.3):
                await server.hover(file, START)
            with anyio.move_on_after(0.3):
                await server.definition(other, START)
    assert server.exit_code is not None
