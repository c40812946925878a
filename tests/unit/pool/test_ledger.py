"""What an earlier server left is ended, and nothing else: pid, creation time and owner token must all match."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

from serena_central.config.policies import PoolPolicy
from serena_central.core.events import EventBus, Severity
from serena_central.core.places import Places
from serena_central.pool.ledger import OWNER_VARIABLE, Child, Ledger
from serena_central.pool.pool import LanguageServerPool

SLEEP = "import time; print(flush=True); time.sleep(3600)"
NEST = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).wait()"


@contextmanager
def process(owner: str, code: str = SLEEP) -> Generator[subprocess.Popen[bytes]]:
    """A child that has said that it runs (or that its own child does), with that owner in its environment."""
    environment = {**os.environ, OWNER_VARIABLE: owner}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            yield child
        finally:
            if psutil.pid_exists(child.pid):
                for below in psutil.Process(child.pid).children(recursive=True):
                    below.kill()
            child.kill()


def running(child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is None


def test_a_leftover_and_its_descendants_are_ended(tmp_path: Path) -> None:
    before = Ledger(tmp_path / "children.json")
    with process(before.owner, NEST) as child:
        below = psutil.Process(child.pid).children()
        before.record([child.pid])
        killed = Ledger(tmp_path / "children.json").sweep()
        assert set(killed) == {child.pid, *(each.pid for each in below)}
        assert psutil.wait_procs(below, timeout=60)[1] == []
        assert Ledger(tmp_path / "children.json").sweep() == []


def test_another_process_under_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "children.json")
    with process(ledger.owner) as child:
        created = psutil.Process(child.pid).create_time()
        ledger._write([Child(child.pid, created - 1)])
        assert Ledger(tmp_path / "children.json").sweep() == []
        assert running(child)


def test_a_process_without_the_owners_token_is_left_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "children.json")
    with process("somebody else") as child:
        ledger.record([child.pid])
        assert Ledger(tmp_path / "children.json").sweep() == []
        assert running(child)


def test_processes_that_are_gone_are_no_trouble(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "children.json")
    with process(ledger.owner) as child:
        ledger.record([child.pid])
    child.wait()
    assert Ledger(tmp_path / "children.json").sweep() == []
    ledger.record([child.pid])
    assert b'"children":[]' in (tmp_path / "children.json").read_bytes()


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_an_unreadable_ledger_is_said_and_replaced(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "children.json"
    file.write_bytes(content)
    assert Ledger(file).sweep() == []
    assert "can't be read" in caplog.text
    assert msgspec.json.decode(file.read_bytes())["children"] == []


def test_the_guard_above_a_server_is_written_down_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "children.json")
    with process(ledger.owner, NEST) as guard:
        server = psutil.Process(guard.pid).children()[0]
        ledger.record([server.pid])
        children = msgspec.json.decode((tmp_path / "children.json").read_bytes())["children"]
        assert {child["pid"] for child in children} == {guard.pid, server.pid}


def test_an_unchanged_list_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "children.json"
    ledger = Ledger(file)
    with process(ledger.owner) as child:
        ledger.record([child.pid])
        file.unlink()
        ledger.record([child.pid])
        assert not file.exists()


@pytest.mark.anyio
async def test_the_pool_ends_leftovers_before_it_serves_and_says_so(tmp_path: Path) -> None:
    places = Places(tmp_path)
    before = Ledger(places.ledger_file)
    bus = EventBus()
    with process(before.owner) as child:
        before.record([child.pid])
        pool = LanguageServerPool(bus=bus, places=places, policy=PoolPolicy())
        async with anyio.create_task_group() as tasks:
            with anyio.fail_after(60):
                await tasks.start(pool.run)
            assert not psutil.pid_exists(child.pid)
            tasks.cancel_scope.cancel()
    [event] = bus.recent()
    assert (event.kind, event.severity, event.data) == ("server.leftover", Severity.WARNING, {"pid": child.pid})
