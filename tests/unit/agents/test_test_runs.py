"""Which command lines count as runs of tests."""

import pytest

from serena_central.agents.test_runs import ends_as_its_tests, runs_tests


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
        "sudo -u ci make test",
        "for part in a b; do pytest $part; done",
    ],
)
def test_runs_of_tests_are_recognized(line: str) -> None:
    assert runs_tests(line)


@pytest.mark.parametrize(
    "line",
    [
        *("git status", "echo pytest", "pip install pytest", "make build", "cat test.py", "ls"),
        *("command -v pytest", "alias t=pytest", "trap pytest EXIT", "which pytest", "env --help pytest"),
    ],
)
def test_other_commands_are_not(line: str) -> None:
    assert not runs_tests(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pytest -q", True),
        ("cd app && timeout 60 make test && echo done", True),
        ("make -C app test | tail -3", False),
        ("! pytest -q", False),
        ("pytest || true", False),
        ("pytest; true", False),
        ("bash -c 'pytest -q'", False),
        ("exit 0 && pytest", False),
        ("pytest --collect-only", False),
        ("cargo test --no-run", False),
        ("make --dry-run test", False),
    ],
)
def test_a_lines_exit_code_is_that_of_its_tests_or_not(line: str, expected: bool) -> None:
    assert runs_tests(line)
    assert ends_as_its_tests(line) is expected
