"""Which command lines count as runs of tests."""

import pytest

from serena_central.agents.test_runs import runs_tests


@pytest.mark.parametrize(
    "line",
    [
        "pytest",
        "cd app && .venv/bin/python -W error -m pytest -q tests/unit",
        "PYTHONPATH=. python3.11 -m unittest discover",
        "uv run --frozen pytest -x",
        "npm test -- --watch=false",
        "yarn run test:unit",
        "npx --yes vitest run",
        "go test ./...",
        "cargo nextest run",
        "make -C app test | tail -3",
        "./gradlew :app:test",
        "bash -c 'pytest -q'",
        "timeout 60 ctest --output-on-failure",
    ],
)
def test_runs_of_tests_are_recognized(line: str) -> None:
    assert runs_tests(line)


@pytest.mark.parametrize("line", ["git status", "echo pytest", "pip install pytest", "make build", "cat test.py", "ls"])
def test_other_commands_are_not(line: str) -> None:
    assert not runs_tests(line)
