"""The worked example of docs/configuration.md says what the commands say."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from serena_central.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")

FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", re.S)
CONSOLE = re.compile(r"```console\n(.*?)```\n", re.S)


def examples() -> list[tuple[str, str]]:
    """Command line → what it prints."""
    (text,) = CONSOLE.findall(PAGE)
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in text.split("$ ")[1:]]


def test_the_worked_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, root = tmp_path / "ada", tmp_path / "ada" / "shop"
    (root / ".git").mkdir(parents=True)
    for name, text in FILE.findall(PAGE):
        file = home / name[2:] if name.startswith("~/") else root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("CLAUDE_CONFIG_DIR", "SERENA_HOME", "XDG_CONFIG_HOME", "DSN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "central"))
    monkeypatch.chdir(root)
    assert len(examples()) == 6
    for command, expected in examples():
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        main()
        out = capsys.readouterr().out.replace(f"{root}/", "").replace(f"{home}/", "~/")
        assert _words(out) == _words(expected), command


def _words(text: str) -> list[list[str]]:
    """Columns are as wide as the paths of the machine."""
    return [line.split() for line in text.splitlines()]
