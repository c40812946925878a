"""Which command lines prove by exit code 0 that a command ran and succeeded."""

import subprocess
from pathlib import Path

import pytest

from serena_central.claude_config.permissions import command_is
from serena_central.claude_config.proven_commands import proven_commands
from serena_central.claude_config.rules import parse_rule

RULE = parse_rule("Bash(pytest:*)")


def proves(line: str) -> bool:
    return any(command_is(RULE, one) for one in proven_commands(line))


@pytest.mark.parametrize(
    "line",
    [
        "pytest",
        "pytest -q;\n",
        "cd x && pytest -q 2>&1 > log.txt",
        "pytest -q tests/$PART && echo done",
        "pytest &&\n git add .",
        ".venv/bin/pytest",
        "ls | head -3 && pytest  # all of them",
        "PYTHONPATH=. CI=1 pytest",
        "source .venv/bin/activate && pytest",
        "command -v pytest && pytest",
        "time -p timeout -k 5 --foreground 60 nice -n 5 pytest -q",
        "env -u HOME -i CI=1 pytest",
        "nohup stdbuf -oL pytest",
    ],
)
def test_a_command_that_runs_by_itself_is_proven(line: str) -> None:
    assert proves(line)


HIDING = [
    "command -v pytest",
    "! pytest -q",
    "time ! pytest",
    "alias t=pytest",
    "trap pytest EXIT",
    "systemd-run pytest",
    "find . -exec pytest {} +",
    "setsid pytest",
    "xargs pytest < /dev/null",
    "pytest || true",
    "pytest; true",
    "pytest\ntrue",
    "pytest | tail",
    "true && pytest |\ntail",
    "pytest |& tail",
    "pytest &",
    "if pytest; then :; fi",
    "while pytest; do break; done",
    "bash -c 'pytest'",
    "(pytest)",
    "{ pytest; }",
    "echo $(pytest)",
    "echo `pytest`",
    "echo pytest",
    "cat <<EOF\npytest\nEOF",
    "pytest() { true; } && pytest",
    "exit 0 && pytest",
    "command exit 0 && pytest",
    "exec true && pytest",
    "eval 'exit 0' && pytest",
    "set -n && pytest",
    "trap 'exit 0' EXIT && pytest",
    "alias pytest=true && pytest",
    "hash -p /bin/true pytest && pytest",
    "$X && pytest",
    "$X pytest",
    "py$X",
    "env --help pytest",
    "timeout --version pytest",
    "nohup --help pytest",
    "env -S 'echo pytest'",
]


@pytest.mark.parametrize("line", HIDING)
def test_a_command_that_may_not_have_run_or_may_have_failed_is_not(line: str) -> None:
    assert not proves(line)


@pytest.mark.parametrize("line", ["exit 0 && pytest", "env --help pytest", "trap 'exit 0' EXIT && pytest", "! pytest"])
def test_so_it_is_in_a_real_shell(line: str, tmp_path: Path) -> None:
    """Their exit code is 0 although this pytest fails, or did not run."""
    program = tmp_path / "pytest"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    ended = subprocess.run(
        ["/bin/sh", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert ended.returncode == 0
