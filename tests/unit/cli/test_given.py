"""No command looks at what lies on a file system whose server is away."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from serena_central.cli.call import _absolute
from serena_central.cli.connecting import project_root as repository_around
from serena_central.cli.given import GivenPath
from serena_central.cli.main import cli
from serena_central.cli.trust import project_root
from serena_central.files import mounts


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mounts.REMOTE, "points", lambda: frozenset({str(tmp_path / "away")}))
    monkeypatch.setattr(mounts, "_answers", lambda _point: False)
    folder = tmp_path / "away/project"
    folder.mkdir(parents=True)
    return folder


def parameters(command: click.Command, context: click.Context) -> Iterator[click.Parameter]:
    yield from command.params
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (found := command.get_command(context, name)) is not None:
                yield from parameters(found, context)


def test_every_path_of_the_command_line_is_one_that_can_be_looked_at() -> None:
    taken = [one for one in parameters(cli, click.Context(cli)) if isinstance(one.type, click.Path)]
    assert len(taken) > 10
    assert [one.name for one in taken if not isinstance(one.type, GivenPath)] == []


@pytest.mark.parametrize(
    "words", [["trust", "{}"], ["validate", "--project", "{}"], ["blame", "{}/f.py:1"], ["waves", "check", "{}/p.yml"]]
)
def test_a_command_ends_at_once_for_a_folder_whose_server_is_away(away: Path, words: list[str]) -> None:
    with pytest.raises(mounts.FileSystemAway):
        cli.main([word.format(away) for word in words], standalone_mode=False)


def test_a_call_names_no_project_whose_server_is_away(away: Path) -> None:
    with pytest.raises(mounts.FileSystemAway):
        _absolute(str(away))


def test_the_current_folder_may_be_away_too(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(away)
    for find in (project_root, repository_around):
        with pytest.raises(mounts.FileSystemAway):
            find(None)
