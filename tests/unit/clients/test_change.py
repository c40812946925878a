"""Files of every kind: changed whole, given back as they were, or left alone with a reason."""

import os
import stat
from pathlib import Path

import pytest

from serena_central.clients.change import Backups, Change, Unusable, entry_in, make, putting, taking
from serena_central.clients.client import JSON, JSON_WITH_COMMENTS, is_ours
from serena_central.clients.forms import Entry, Form
from serena_central.clients.toml_form import TomlForm
from serena_central.standalone import private as private_files

KEYS = ("mcpServers", "serena")
ENTRY = {"command": "/opt/bin/serena-proxy", "args": []}
TOML = TomlForm()


def connected(
    file: Path, backups: Backups, form: Form = JSON, entry: Entry = ENTRY, *, private: bool = False
) -> Change:
    change = putting(file, form, KEYS, entry, private=private)
    make(change, backups)
    assert entry_in(file, form, KEYS) == entry
    return change


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path / "backups")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".client" / "settings.json"


@pytest.mark.parametrize(
    ("form", "before"),
    [
        (JSON, b""),
        (JSON, b" \n"),
        (JSON, b"{}"),
        (JSON, b'{"mcpServers": {}}'),
        (JSON, b'{\r\n  "a": 1\r\n}\r\n'),
        (JSON, b'\xef\xbb\xbf{"a": "\xc3\xa9"}'),
        (JSON, b'{"mcpServers": {"serena": {"command": "uvx", "args": ["serena"]}}, "x": 1e5}'),
        (JSON_WITH_COMMENTS, b'// settings\n{\n  "a": [1,],\n}\n'),
        (TOML, b'model = "o"'),
        (TOML, b'\xef\xbb\xbfmodel = "o"\r\n\r\n\r\n'),
        (TOML, b'[mcpServers.serena]\ncommand = "uvx"\n# note\n\n[mcpServers.serena.env]\nA = "1"\n'),
    ],
)
def test_after_connect_and_disconnect_a_file_has_its_bytes_back(
    file: Path, backups: Backups, form: Form, before: bytes
) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(before)
    file.chmod(0o640)
    connected(file, backups, form)
    assert file.read_bytes() != before
    make(taking(file, form, KEYS, backups, is_ours), backups)
    assert file.read_bytes() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_file_that_was_not_there_goes_again(file: Path, backups: Backups) -> None:
    connected(file, backups)
    make(taking(file, JSON, KEYS, backups, is_ours), backups)
    assert not file.exists()
    assert taking(file, JSON, KEYS, backups, is_ours).is_none


def test_after_several_connects_a_file_is_what_it_was_before_the_first(file: Path, backups: Backups) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("{ }")
    connected(file, backups)
    connected(file, backups, entry={"command": "/new/serena-proxy"})
    make(taking(file, JSON, KEYS, backups, is_ours), backups)
    assert file.read_text() == "{ }"


def test_what_others_changed_meanwhile_stays(file: Path, backups: Backups) -> None:
    file.parent.mkdir(parents=True)
    file.write_text('{"a": 1}')
    connected(file, backups)
    file.write_text(file.read_text().replace('"a": 1', '"a": 2'))
    make(taking(file, JSON, KEYS, backups, is_ours), backups)
    assert JSON.read(file.read_text()) == {"a": 2, "mcpServers": {}}


def test_a_link_stays_a_link_and_its_target_changes(tmp_path: Path, file: Path, backups: Backups) -> None:
    dotfiles = tmp_path / "dotfiles" / "settings.json"
    dotfiles.parent.mkdir()
    dotfiles.write_text("{}")
    file.parent.mkdir(parents=True)
    file.symlink_to(dotfiles)
    connected(file, backups)
    assert file.is_symlink()
    assert "serena-proxy" in dotfiles.read_text()
    make(taking(file, JSON, KEYS, backups, is_ours), backups)
    assert (file.is_symlink(), dotfiles.read_text()) == (True, "{}")


def test_a_file_with_a_secret_is_for_its_user_alone(file: Path, backups: Backups) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    file.chmod(0o644)
    change = connected(file, backups, entry={"headers": {"Authorization": "Bearer s3cret"}}, private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = change.diff({"s3cret": "<token>"})
    assert '+      "headers": {' in shown
    assert "Bearer <token>" in shown
    assert "s3cret" not in shown
    (backup,) = (file.parents[2] / "backups").iterdir()
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert backup.read_text() == "{}"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640)])
def test_a_new_file_has_the_mode_of_the_users_umask(
    tmp_path: Path, backups: Backups, monkeypatch: pytest.MonkeyPatch, umask: int, mode: int
) -> None:
    monkeypatch.setattr(private_files, "_user_umask", umask)
    for private, expected in ((False, mode), (True, 0o600)):
        file = tmp_path / f"{private}.json"
        connected(file, backups, private=private)
        assert stat.S_IMODE(file.stat().st_mode) == expected


def test_planning_and_showing_change_nothing(file: Path, backups: Backups) -> None:
    change = putting(file, JSON, KEYS, ENTRY, private=False)
    assert change.diff({}).startswith(f"--- {os.devnull}\n+++ {file}\n")
    assert not file.parent.exists()
    connected(file, backups)
    again = putting(file, JSON, KEYS, ENTRY, private=False)
    assert (again.is_none, again.diff({})) == (True, "")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{\n  "a": 1,,\n}', ":2: a key in double quotes was expected"),
        (b'{"a": "\xff"}', ":1: not UTF-8"),
        (b"\n\n[1, 2]", ":3: it is not an object"),
        (b'{"mcpServers": []}', ':1: "mcpServers" is not an object'),
    ],
)
def test_a_malformed_file_is_left_as_it_is_and_named_with_its_line(
    file: Path, backups: Backups, content: bytes, says: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.raises(Unusable) as refused:
        putting(file, JSON, KEYS, ENTRY, private=False)
    assert f"{file}{says}" in str(refused.value)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    "text",
    ["mcpServers = 7\n", 'mcpServers.serena.command = "x"\n'],
)
def test_toml_that_names_us_in_another_way_is_left_alone(file: Path, backups: Backups, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(Unusable, match="manually"):
        putting(file, TOML, KEYS, ENTRY, private=False)
    assert file.read_text() == text


def test_what_can_not_be_a_configuration_is_refused_in_words(tmp_path: Path, backups: Backups) -> None:
    folder, pipe, loop, locked = (tmp_path / name for name in ("folder", "pipe", "loop", "locked"))
    folder.mkdir()
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    locked.write_text("{}")
    locked.chmod(0o444)
    for file, says in (
        (folder, "not a regular file"),
        (pipe, "not a regular file"),
        (loop, "link"),
        (locked, "read-only"),
    ):
        with pytest.raises(Unusable, match=says):
            putting(file, JSON, KEYS, ENTRY, private=False)
    with pytest.raises(Unusable, match="can't be read"):
        putting(locked / "below", JSON, KEYS, ENTRY, private=False)
    assert locked.read_text() == "{}"


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(file: Path, backups: Backups) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    change = putting(file, JSON, KEYS, ENTRY, private=False)
    file.write_text('{"theirs": 1}')
    with pytest.raises(Unusable, match="another program"):
        make(change, backups)
    assert file.read_text() == '{"theirs": 1}'
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_only_the_newest_backups_are_kept(file: Path, tmp_path: Path, backups: Backups) -> None:
    for number in range(14):
        connected(file, backups, entry={"command": str(number)})
    kept = sorted((tmp_path / "backups").iterdir())
    assert len(kept) == 10
    assert '"12"' in kept[-1].read_text()
