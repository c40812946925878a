"""The processes below one are found without a look at all others of the machine."""

import subprocess
import sys

import psutil
import pytest

from serena_central.processes.usage import descendants, usage_of

PARENT = """
import subprocess, sys
below = subprocess.Popen([sys.executable, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE)
print(below.pid, flush=True)
input()
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
        found = {one.pid for one in descendants(top)}
        assert {child.pid, *(int(pid) for pid in told - {"up"})} <= found <= expected
        child.stdin.close()
        child.wait(30)
    assert usage_of(child.pid).processes == ()
