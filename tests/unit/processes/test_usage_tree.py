"""The processes below one are found without a look at all others of the machine, and measured when they have run."""

import subprocess
import sys

import psutil
import pytest

from serena_central.processes import usage as measuring
from serena_central.processes.tree import below, look_at
from serena_central.processes.usage import TreeUsage, usage_of

PARENT = """
import subprocess, sys
below = subprocess.Popen([sys.executable, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE)
print(below.pid, flush=True)
input()
"""

GROWING = """
kept = []
while True:
    print("grown", flush=True)
    input()
    kept.append(b"x" * 20_000_000)
"""


def test_children_of_children_are_found_as_psutil_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        told = {child.stdout.readline().strip(), child.stdout.readline().strip()}
        top = psutil.Process()
        expected = {one.pid for one in top.children(recursive=True)}
        if sys.platform == "linux":
            monkeypatch.setattr(psutil.Process, "children", None)  # it is not asked
        found = set(below(top.pid))
        assert {child.pid, *(int(pid) for pid in told - {"up"})} <= found <= expected
        child.stdin.close()
        child.wait(30)
    assert usage_of(child.pid).processes == ()
    assert look_at(child.pid) is None


def test_a_process_is_described_as_psutil_describes_it() -> None:
    own = look_at(psutil.Process().pid)
    assert own
    expected = psutil.Process()
    assert own.parent == expected.ppid()
    assert own.cpu_s == pytest.approx(sum(expected.cpu_times()[:4]), abs=1)


def test_a_process_is_measured_again_only_when_it_has_run_or_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    measure = measuring._measure

    def noting(pid: int) -> measuring.ProcessUsage | None:
        measured.append(pid)
        return measure(pid)

    monkeypatch.setattr(measuring, "_measure", noting)
    with subprocess.Popen(
        [sys.executable, "-c", GROWING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        tree = TreeUsage()
        while True:  # its first measurement may fall into its way to `input`
            before, count = tree.of(child.pid), len(measured)
            if tree.of(child.pid) == before and len(measured) == count:
                break
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        after = tree.of(child.pid)
        assert measured[count:] == [child.pid]
        assert after.memory_bytes - before.memory_bytes >= 15_000_000
        child.kill()
