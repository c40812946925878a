"""`serena-central usage` as it is run, without a server."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.child import PROGRAM, environment, run_command
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio


def recorded(folder: Path, **more: object) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    rows = [
        claude("m", at=now, output=100_000, cwd="/home/u/shop"),
        claude("m", at=now, output=200_000),
        b'{torn "usage":\n',
    ]
    written(folder / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", *rows)


async def test_usage_is_shown_with_its_cost(tmp_path: Path) -> None:
    recorded(tmp_path)
    shown = await run_command(tmp_path, "usage", "--by", "project", "--json")
    assert shown.code == 0, shown
    [row] = shown.json["rows"]
    assert (row["key"], row["output"], round(row["cost"], 4)) == ("/home/u/shop", 200_000, 3.0)
    assert any("1 line" in note for note in shown.json["notes"])
    again = await run_command(tmp_path, "usage")
    assert again.code == 0
    assert "3.0000" in again.out


async def test_costs_that_lack_something_have_a_plus_in_every_group(tmp_path: Path) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    rows = [claude("m", at=now, model="homemade", tools={"toolu_1": "mcp__github__search"})]
    written(tmp_path / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", *rows)
    for by in ("day", "model", "tool", "upstream"):
        shown = await run_command(tmp_path, "usage", "--by", by)
        assert "0.0000+" in shown.out, by


async def test_names_that_others_gave_stay_on_their_line(tmp_path: Path) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    name = "m\nAll is well.\x1b[2J"
    line = claude("m", at=now, model=name, session="s\nAll", cwd="/home/u/a\nAll")
    written(tmp_path / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", line, dict(line, timestamp=name))
    for given in (("--by", "model"), ("--by", "project"), ("--audit",), ("watch", "-n", "1")):
        shown = await run_command(tmp_path, "usage", *given)
        assert shown.code == 0, shown
        assert not [one for one in (shown.out + shown.err).splitlines() if one.startswith("All")]
        assert "\x1b" not in shown.out + shown.err


async def test_prices_and_budgets_of_the_settings_count(tmp_path: Path) -> None:
    recorded(tmp_path)
    first = await run_command(tmp_path, "usage", "--json")
    settings = tmp_path / "user" / ".serena" / "serena_config.yml"
    settings.parent.mkdir()
    settings.write_text("prices: {'claude-*': {input: 1, output: 100}}\nusage_budgets: {day: 5, shop: 50}\n")
    second = await run_command(tmp_path, "usage", "--json")
    assert round(first.json["total"]["cost"], 4) == 3.0
    assert round(second.json["total"]["cost"], 4) == 20.0
    assert [note for note in second.json["notes"] if "budget" in note] == [
        "All projects: $20.00 spent today, above the budget of $5.00."
    ]


async def test_rows_that_do_not_count_are_listed(tmp_path: Path) -> None:
    recorded(tmp_path)
    listed = await run_command(tmp_path, "usage", "--audit", "--json")
    assert [row["line"] for row in listed.json["rows"]] == [2, 3]
    assert listed.json["requests"] == 1
    assert listed.json["other_kinds"] == {}


@pytest.mark.parametrize(
    "given",
    [
        ("--audit", "--since", "7d"),
        ("--audit", "--by", "day"),
        ("--since", "7d", "watch", "-n", "1"),
        ("--json", "status-line"),
    ],
)
async def test_options_that_would_count_for_nothing_are_refused(tmp_path: Path, given: tuple[str, ...]) -> None:
    refused = await run_command(tmp_path, "usage", *given)
    assert (refused.code, next(one for one in given if one.startswith("--") and one != "--audit") in refused.err) == (
        2,
        True,
    )


@pytest.mark.parametrize("since", ["yesterday", "0d", "2026-13-01"])
async def test_a_time_that_is_none_is_wrong_usage(tmp_path: Path, since: str) -> None:
    assert (await run_command(tmp_path, "usage", "--since", since)).code == 2


async def test_watching_prints_the_running_block(tmp_path: Path) -> None:
    recorded(tmp_path)
    watched = await run_command(tmp_path, "usage", "watch", "-n", "1")
    assert watched.code == 0, watched
    assert "block $3.00" in watched.out


def test_the_status_line_names_model_session_and_block(tmp_path: Path) -> None:
    recorded(tmp_path)
    given = json.dumps({"session_id": "s-1", "model": {"display_name": "Son\nnet"}, "more": {}}).encode()
    for sent, beginning in (
        (given, b"Son\\nnet | session $3.00 | today $3.00 | block $3.00"),
        (b"", b"today $3.00"),
        (b'{"session_id": "\xff"}', b"today $3.00"),
    ):
        ended = subprocess.run(
            [PROGRAM, "usage", "status-line"], input=sent, env=environment(tmp_path), capture_output=True, check=True
        )
        assert ended.stdout.startswith(beginning)
        assert ended.stdout.count(b"\n") == 1


def test_costs_of_which_transcripts_were_not_read_say_so(tmp_path: Path) -> None:
    """Once while it stays as it is, where lines follow each other."""
    recorded(tmp_path)
    folder = tmp_path / "user" / ".claude" / "projects" / "p"
    written(folder / os.fsdecode(b"s-\xff.jsonl"), claude("n"))

    def run(*given: str) -> subprocess.CompletedProcess[bytes]:
        command = [PROGRAM, "usage", *given]
        return subprocess.run(command, input=b"", env=environment(tmp_path), capture_output=True, check=True)

    assert b" | 1 file or folder not read: serena-central usage" in run("status-line").stdout
    watched = run("watch", "-n", "2", "--interval", "1")
    assert watched.stdout.count(b"today $3.00") == 2
    assert watched.stderr.count(b"its name is not UTF-8") == 1
