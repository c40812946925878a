"""Entries of MCP servers that are not valid are refused before anything is written."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from serena_central.cli.mcp_edits import add_json


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('{"command": 7}', "Expected `str`, got `int` - at `$.command`"),
        ('{"command": "x", "args": "--y"}', "`$.args`"),
        ('{"url": "http://x", "headers": {"A": 1}}', "`$.headers[...]`"),
        ('{"args": []}', "with a command or a url"),
        ("[", "not JSON"),
    ],
)
def test_an_entry_that_is_not_valid_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, problem: str
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    ended = CliRunner().invoke(add_json, ["bad", entry, "--scope", "user"])
    assert ended.exit_code == 2
    assert problem in ended.output
    assert not (tmp_path / "claude").exists()
