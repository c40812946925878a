"""Settings of the running server are changed in the dashboard: in the user's file, at once, undoably."""

import logging
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.config.changing import value_in
from serena_central.core.errors import ConfigError
from serena_central.core.event_kinds import ServerBreaker
from serena_central.core.events import Severity
from serena_central.files.atomic import write_whole
from serena_central.tools import live_settings
from serena_central.tools.live_settings import LiveSettings
from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

FILE = "# Mine\nmax_answer_chars: 4321  # enough\nsessions:\n  # quick\n  idle_after_s: 60\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "user.yml"
    file.write_text(FILE)
    file.chmod(0o640)
    return file


@pytest.fixture
async def central(tmp_path: Path, file: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"tool_timeout_s": 30}) as running:
        yield running


@pytest.fixture(autouse=True)
def level() -> Generator[None]:
    """A change applies the level of the log, too."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


async def change(visitor: Visitor, key: str, value: str = "", **fields: str) -> int:
    return (await visitor.act("/settings/change", {"key": key, "value": value, **fields})).status_code


async def test_a_change_is_written_keeps_comments_and_takes_effect_at_once(
    central: RunningCentral, visitor: Visitor, project: Path, file: Path
) -> None:
    (project / "long.txt").write_text("word " * 2000)
    async with central.http() as http:

        async def read() -> int:
            arguments = {"relative_path": "long.txt", "project": str(project)}
            return len((await http.post("/api/v1/tools/read_file", json={"arguments": arguments})).text)

        before = await read()
        assert await change(visitor, "max_answer_chars", "1000") == 303
        assert file.read_text() == FILE.replace("4321", "1000")
        assert file.stat().st_mode & 0o777 == 0o640
        assert await read() < 2000 < before  # an open project has it, too
        assert await change(visitor, "excluded_tools", "read_file") == 303
        assert await read() < 500
        refused = await http.post("/api/v1/tools/read_file", json={"arguments": {"relative_path": "x"}})
        assert "excluded_tools" in refused.text
    parts = central.central.dashboard.parts
    for key, value in (
        ("sessions.idle_after_s", "5"),
        ("pool.memory_budget_mb", "77"),
        ("retention.calls_days", "3"),
        ("log_level", "warning"),
    ):
        assert await change(visitor, key, value) == 303, key
    assert parts.sessions.policy.idle_after_s == 5
    assert parts.pool.memory_budget_bytes == 77 << 20
    assert parts.store.policy.calls_days == 3
    assert logging.getLogger().level == logging.WARNING
    assert "77 MiB" in shown(await visitor.see("/servers"))
    assert "  # quick\n  idle_after_s: 5.0\n" in file.read_text()


async def test_what_was_changed_by_hand_since_the_start_is_said(
    central: RunningCentral, visitor: Visitor, file: Path
) -> None:
    assert "Changed since" not in shown(await visitor.see("/settings"))
    file.write_text("max_answer_chars: 4322\nexecute_shell: true\n")
    said = shown(await visitor.see("/settings"))
    assert "Changed since the server read them: " in said
    for key in (f"max_answer_chars ({file}:1)", f"execute_shell ({file}:2)", "sessions.idle_after_s (default)"):
        assert key in said, said
    assert "tool_timeout_s" not in said.partition("Changed since")[2].partition("serena-central restart")[0]
    async with central.http() as http:
        [sentence] = (await http.get("/api/v1/stats")).json()["settings_not_in_force"]
        assert "serena-central restart" in sentence
        file.write_text(f"{FILE}alerts.webhook: http://127.0.0.1:1/hunter2\n")
        [sentence] = (await http.get("/api/v1/stats")).json()["settings_not_in_force"]
        assert "alerts.webhook" in sentence
        assert "hunter2" not in sentence
        file.write_text("execute_shell: [\n")
        [sentence] = (await http.get("/api/v1/stats")).json()["settings_not_in_force"]
        assert "no server could start with them" in sentence
        assert str(file) in sentence


async def test_what_is_not_allowed_is_refused_and_changes_nothing(
    central: RunningCentral, visitor: Visitor, file: Path
) -> None:
    for key, value in (("max_answer_chars", "many"), ("max_answer_chars", "1"), ("edit_conflicts", "perhaps")):
        assert await change(visitor, key, value) == 400, (key, value)
    for key in ("execute_shell", "trust", "allowed_roots", "database_url", "alerts.webhook", "nonsense", ""):
        assert await change(visitor, key, "x") == 404, key
    assert await change(visitor, "tool_timeout_s", "5") == 400  # a flag counts more than the file
    assert "set by the flag tool_timeout_s" in shown(await visitor.see("/settings"))
    forged = await visitor.act("/settings/change", {"key": "max_answer_chars", "value": "1000", "csrf": "0" * 64})
    assert forged.status_code == 403
    assert file.read_text() == FILE
    broken = FILE + "edit_conflicts: perhaps\n"
    file.write_text(broken)  # by hand, meanwhile
    refused = await visitor.act("/settings/change", {"key": "max_answer_chars", "value": "1000"})
    assert refused.status_code == 400
    assert "edit_conflicts" in shown(refused.text)
    assert file.read_text() == broken
    assert central.central.dashboard.parts.settings.max_answer_chars == 4321


async def test_changes_are_undone_from_their_list_unless_the_file_has_changed_since(
    central: RunningCentral, visitor: Visitor, file: Path
) -> None:
    assert await change(visitor, "max_answer_chars", "1000") == 303
    assert await change(visitor, "edit_conflicts", "warn") == 303
    page = await visitor.see("/settings")
    assert "Changes made here" in page
    fields: dict[str, Any] = {"key": "max_answer_chars", "before": "4321", "after": "1000"}
    assert 'name="before" value="4321"' in page
    assert (await visitor.act("/settings/undo", fields)).status_code == 303
    assert "max_answer_chars: 4321  # enough" in file.read_text()
    assert central.central.dashboard.parts.settings.max_answer_chars == 4321
    again = await visitor.act("/settings/undo", fields)
    assert again.status_code == 400
    assert "has been changed since" in shown(again.text)
    unset = {"key": "edit_conflicts", "before": "", "after": '"warn"'}
    assert (await visitor.act("/settings/undo", unset)).status_code == 303
    assert file.read_text() == FILE
    assert await change(visitor, "max_answer_chars", reset="yes") == 303
    assert central.central.dashboard.parts.settings.max_answer_chars == 30_000


async def test_alerts_begin_and_end_when_the_settings_say_so(
    central: RunningCentral, visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {told}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr("platform.system", lambda: "Linux")

    def fail(root: str) -> None:
        text = "crashed: password=hunter22; $(touch /tmp/never)"
        central.central.bus.publish(
            ServerBreaker(
                server="ty",
                project=root,
                root=root,
                state="open",
                reason=text,
                message=text,
                severity=Severity.ERROR,
            )
        )

    fail("/src/early")
    assert await change(visitor, "alerts.desktop", "true") == 303
    await anyio.wait_all_tasks_blocked()
    fail("/src/shop")
    with anyio.fail_after(20):
        while not told.exists():
            await anyio.sleep(0.05)
    assert await change(visitor, "alerts.desktop", "false") == 303
    await anyio.wait_all_tasks_blocked()
    fail("/src/late")
    assert await change(visitor, "alerts.desktop", "true") == 303
    await anyio.wait_all_tasks_blocked()
    fail("/src/last")
    with anyio.fail_after(20):
        while told.read_text().count("server.breaker") < 2:
            await anyio.sleep(0.05)
    lines = told.read_text().splitlines()
    assert lines[:3] == ["--app-name=serena-central", "--", "serena-central"]
    assert lines[3].startswith("server.breaker: ty in shop: crashed: password=")
    assert "hunter22" not in lines[3]
    assert lines[3].endswith("$(touch /tmp/never)")
    assert len(lines) == 8  # neither the early nor the late one


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_line_ends_and_a_byte_order_mark_stay(central: RunningCentral, file: Path, mark: bytes) -> None:
    text = mark + FILE.encode().replace(b"\n", b"\r\n")
    file.write_bytes(text)
    live = central.central.live_settings
    await live.change("max_answer_chars", 1000)
    await live.change("read_only", True)
    assert file.read_bytes() == text.replace(b"4321", b"1000") + b"read_only: true\r\n"
    await live.change("read_only", None, was="true", undo=True)
    await live.change("max_answer_chars", 4321, was="1000", undo=True)
    assert file.read_bytes() == text


async def test_servers_with_one_file_lose_no_setting_of_each_other(central: RunningCentral, file: Path) -> None:
    values = {"max_answer_chars": 1000, "edit_diagnostics_s": 7, "pool.idle_ttl_s": 70, "pool.read_retries": 1}
    values |= {"default_context": "codex", "sessions.idle_after_s": 90, "edit_conflicts": "warn", "read_only": True}
    async with anyio.create_task_group() as tasks:
        for key, value in values.items():
            tasks.start_soon(LiveSettings(central.central, []).change, key, value)
    assert {key: value_in(file.read_text(), key) for key in values} == values
    assert "# quick" in file.read_text()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_what_another_program_writes_into_the_file_meanwhile_stays(
    central: RunningCentral, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def written(path: Path, data: bytes, **options: Any) -> None:
        monkeypatch.setattr(live_settings, "write_whole", write_whole)
        if moment == "before":
            file.write_text("read_only: true\n")
        write_whole(path, data, **options)
        file.write_text("read_only: true\n")
        (tmp_path / "machine.yml").write_text("[")  # now nothing can be read again, and the change is rolled back

    monkeypatch.setattr(live_settings, "write_whole", written)
    with pytest.raises(ConfigError, match="another program" if moment == "before" else "machine.yml"):
        await central.central.live_settings.change("max_answer_chars", 1000)
    assert file.read_text() == "read_only: true\n"
    assert central.central.loaded.value.max_answer_chars == 4321
