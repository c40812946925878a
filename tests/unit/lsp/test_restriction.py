"""How a server is started for a project that its user does not trust, and when it is not."""

import os
from pathlib import Path
from typing import Any

import msgspec.structs
import pytest

from serena_central.core.errors import ServerNotInstalled, ServerNotTrusted
from serena_central.core.places import Places
from serena_central.lsp.catalogue import Launching, ServerSpec, Untrusted, catalogue
from serena_central.lsp.locate import Launch, locate
from tests.support.fakes import FAKE_SPEC

HOW = Untrusted(
    args=("--safe",),
    without_args=("--danger",),
    env={"SAFE": "{shims}", "OWN": "safe"},
    initialization_options={"run": {"scripts": False}},
    settings={"fake": {"run": False}},
    unless=("fake.toml",),
    lacks="much is missing",
)
SPEC = msgspec.structs.replace(
    FAKE_SPEC,
    launch=Launching(command=("{bin:fake-ls}", "--danger=yes", "--danger", "--dangerous"), env={"OWN": "mine"}),
    initialization_options={"run": {"scripts": True, "other": 1}},
    executes=("build",),
    untrusted=HOW,
)


def program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "fake-ls"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def found(spec: ServerSpec, root: Path, **more: Any) -> Launch:
    return locate(spec, root, Places(root.parent / "home"), **{"untrusted": root, **more})


def test_the_restricted_mode_is_laid_over_all_else(tmp_path: Path, root: Path) -> None:
    path = str(program(tmp_path / "bin").parent)
    launch = found(SPEC, root, path=path)
    assert launch.command[1:] == ["--dangerous", "--safe"]
    assert launch.env["OWN"] == "safe"
    assert Path(launch.env["SAFE"], "bin/cargo").is_file()
    assert launch.options == {"run": {"scripts": False, "other": 1}}
    assert launch.settings == {"fake": {"run": False}}
    trusted = found(SPEC, root, path=path, untrusted=None)
    assert trusted.command[1:] == ["--danger=yes", "--danger", "--dangerous"]
    assert (trusted.env, trusted.options, trusted.settings) == ({"OWN": "mine"}, SPEC.initialization_options, {})


@pytest.mark.parametrize(
    ("executes", "untrusted"),
    [(None, None), (None, HOW), (("build",), None)],
    ids=["unsaid", "unsaid, with", "without"],
)
def test_what_executes_and_has_no_such_mode_is_not_run(root: Path, executes: Any, untrusted: Untrusted | None) -> None:
    spec = msgspec.structs.replace(SPEC, executes=executes, untrusted=untrusted)
    with pytest.raises(ServerNotTrusted, match=f"serena-central trust {root}"):
        found(spec, root)


def test_a_file_that_counts_for_more_than_a_client_keeps_it_from_being_run(tmp_path: Path, root: Path) -> None:
    path = str(program(tmp_path / "bin").parent)
    inside = root / "a" / "b"
    inside.mkdir(parents=True)
    found(SPEC, inside, untrusted=root, path=path)
    (root / "a" / "fake.toml").touch()
    with pytest.raises(ServerNotTrusted, match=r"a/fake\.toml"):
        found(SPEC, inside, untrusted=root, path=path)


def test_programs_of_the_project_are_neither_found_nor_handed_on(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(root / ".venv" / "bin")
    (tmp_path / "link").symlink_to(root / ".venv")
    users = tmp_path / "users"
    users.mkdir()
    inside = [".venv/bin", str(root / ".venv" / "bin"), str(tmp_path / "link" / "bin")]
    monkeypatch.setenv("PATH", os.pathsep.join([*inside, str(users), os.environ["PATH"]]))
    assert found(SPEC, root, untrusted=None).command[0] == str(root / ".venv/bin/fake-ls")
    with pytest.raises(ServerNotInstalled) as missing:
        found(SPEC, root)
    assert not isinstance(missing.value, ServerNotTrusted)
    program(users / "x").rename(users / "fake-ls")
    launch = found(SPEC, root)
    assert launch.command[0] == str(users / "fake-ls")
    handed_on = launch.env["PATH"].split(os.pathsep)
    assert str(users) in handed_on
    assert not set(inside) & set(handed_on)
    assert launch.env["GIT_DIR"] == os.devnull


def test_stand_ins_can_be_executed() -> None:
    how = catalogue().server("rust-analyzer").untrusted
    assert how is not None
    shims = Path(locate.__code__.co_filename).with_name("shims") / "bin"
    assert {file.name for file in shims.iterdir() if os.access(file, os.X_OK)} == {"cargo", "rustc", "rustup"}


def test_what_trust_alone_would_not_start_is_told_with_how_to_get_it(tmp_path: Path, root: Path) -> None:
    spec = catalogue().server("ruby-lsp")
    assert spec.restricted is None
    with pytest.raises(ServerNotTrusted, match=r"is not trusted.*Nor is it installed: .*gem install ruby-lsp") as error:
        found(spec, root, path=str(tmp_path))
    assert error.value.how_to_get.endswith(spec.how_to_get)
    folder = program(tmp_path / "bin").parent
    (folder / "fake-ls").rename(folder / "ruby-lsp")
    with pytest.raises(ServerNotTrusted) as error:
        found(spec, root, path=str(folder))
    assert "installed" not in str(error.value)
