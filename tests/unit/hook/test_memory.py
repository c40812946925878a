"""What hooks remember between runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from serena_central.hook.memory import A_MOMENT_S, FORGOTTEN_S, MOST_KEPT, Memory, Unavailable
from serena_central.standalone.home import Home
from serena_central.standalone.lock import lock_at_once


def test_a_search_is_remembered_for_a_moment(tmp_path: Path) -> None:
    assert [Memory(Home(str(tmp_path))).was_stopped("k", at) for at in (1e6, 1e6 + 1, 1e6 + A_MOMENT_S)] == [
        False,
        True,
        False,
    ]


def test_sessions_are_counted_apart_and_forgotten(tmp_path: Path) -> None:
    memory = Memory(Home(str(tmp_path)))
    assert [memory.count(name, 1e6) for name in ("a", "a", "b", "a")] == [1, 2, 1, 3]
    memory.forget("a", 1e6)
    assert memory.count("a", 1e6) == 1
    assert memory.count("b", 1e6 + FORGOTTEN_S) == 1


def test_the_memory_is_bounded(tmp_path: Path) -> None:
    memory = Memory(Home(str(tmp_path)))
    entries = {str(number): [1e6 + number / 1000, 1] for number in range(MOST_KEPT + 50)}
    (tmp_path / "hooks.json").write_text(json.dumps({"stopped": entries, "odd": 1}))
    assert not memory.was_stopped("new", 1e6 + 1)
    kept = json.loads((tmp_path / "hooks.json").read_text())
    assert set(kept) == {"stopped"}
    assert len(kept["stopped"]) == MOST_KEPT
    assert "new" in kept["stopped"]
    assert "0" not in kept["stopped"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"stopped": 5}', '{"stopped": {"k": [1, "x"], "l": null}}', "[" * 9999]
)
def test_a_spoilt_file_is_begun_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "hooks.json").write_text(content)
    assert not Memory(Home(str(tmp_path))).was_stopped("k", 1e6)
    assert Memory(Home(str(tmp_path))).was_stopped("k", 1e6)


def test_where_it_can_not_be_kept_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        Memory(Home(str(tmp_path / "nowhere"))).was_stopped("k", 1e6)
    with (tmp_path / "hooks.json.lock").open("ab") as held:
        assert lock_at_once(held.fileno())
        with pytest.raises(Unavailable, match="another process"):
            Memory(Home(str(tmp_path))).was_stopped("k", 1e6)


COUNTS = """
import sys
from serena_central.hook.memory import Memory, Unavailable
from serena_central.standalone.home import Home
done = 0
while done < 25:
    try:
        Memory(Home(sys.argv[1])).count("s", 1e6)
        done += 1
    except Unavailable:
        pass
"""


def test_many_hooks_at_once_lose_no_count(tmp_path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", COUNTS, str(tmp_path)]) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4
    assert Memory(Home(str(tmp_path))).count("s", 1e6) == 101
