"""Settings as their files are now; what is broken meanwhile stays as it was."""

import os

import pytest

from serena_central.claude_config.current import CurrentSettings
from tests.unit.claude_config.conftest import Machine


def test_a_changed_file_counts_at_once(machine: Machine) -> None:
    current = CurrentSettings(machine.locations)
    assert current.of(machine.root).value == {}
    machine.project({"model": "a"})
    first = current.of(machine.root)
    assert first.value == {"model": "a"}
    assert current.of(machine.root) is first
    machine.project({"model": "bb"})
    machine.local({"language": "en"})
    assert current.of(machine.root).value == {"model": "bb", "language": "en"}
    (machine.root / ".claude" / "settings.json").unlink()
    assert current.of(machine.root).value == {"language": "en"}


def test_the_last_good_version_of_a_broken_file_stays_in_force(machine: Machine) -> None:
    current = CurrentSettings(machine.locations)
    file = machine.project({"model": "a", "permissions": {"deny": ["Read(.env)"]}})
    machine.user({"language": "en"})
    before = current.of(machine.root).value
    machine.project('{"model": "b", ')
    now = current.of(machine.root)
    assert now.value == before
    assert now.kept == {file}
    (problem,) = now.errors
    assert problem.place.file == str(file)
    assert "what it said before stays in force" in problem.remedy
    assert now.permissions.reading(".env") is not None
    machine.project({"model": "c"})
    mended = current.of(machine.root)
    assert (mended.value, mended.kept, mended.errors) == ({"language": "en", "model": "c"}, frozenset(), [])


def test_a_file_that_was_removed_does_not_stay(machine: Machine) -> None:
    current = CurrentSettings(machine.locations)
    file = machine.project({"model": "a"})
    current.of(machine.root)
    file.unlink()
    assert current.of(machine.root).value == {}


def test_a_file_that_is_replaced_by_one_of_its_size_and_time_is_seen(machine: Machine) -> None:
    current = CurrentSettings(machine.locations)
    file = machine.project({"model": "a"})
    current.of(machine.root)
    status = file.stat()
    new = file.with_name("new")
    new.write_text('{"model":"b"}')
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(file)
    assert current.of(machine.root).value == {"model": "b"}


@pytest.mark.parametrize("inside_first", [True, False])
def test_of_a_file_above_a_root_the_rules_alone_count_whichever_root_is_asked_about_first(
    machine: Machine, inside_first: bool
) -> None:
    current, inside = CurrentSettings(machine.locations), machine.root / "inside"
    (machine.root / ".git").mkdir(exist_ok=True)
    inside.mkdir()
    value = {"model": "a", "permissions": {"deny": ["Read(.env)"]}}
    machine.project(value)
    found = {root: current.of(root).value for root in [machine.root, inside][:: -1 if inside_first else 1]}
    assert found[machine.root] == value
    assert "model" not in found[inside]
