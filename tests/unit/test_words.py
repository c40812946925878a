"""The check of words: each replaced word is found where people and agents read, and nowhere else."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/words.py"


def entries() -> Iterator[tuple[str, str, bool]]:
    for one in tomllib.loads(CHECK.with_suffix(".toml").read_text())["word"]:
        for phrase in one["not"]:
            yield phrase, one["but"], one.get("in") == "prose"


def check(*files: Path) -> tuple[int, list[str]]:
    ended = subprocess.run([sys.executable, CHECK, *files], capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.splitlines()


def found_in(file: Path, text: str) -> list[str]:
    file.write_text(text)
    code, lines = check(file)
    assert code == (1 if lines else 0)
    return [line.removeprefix(f"{file}:") for line in lines]


def test_each_replaced_word_is_reported_with_its_replacement(tmp_path: Path) -> None:
    planted = list(entries())
    for suffix, opening in ((".md", "Title\n"), (".py", '"""A title.\n')):
        file = tmp_path / f"all{suffix}"
        lines = [phrase for phrase, _, in_prose in planted if suffix == ".md" or not in_prose]
        file.write_text(
            opening + "\n".join(f"it has: {one};" for one in lines) + ('\n"""\n' if suffix == ".py" else "\n")
        )
        _, reported = check(file)
        for number, phrase in enumerate(lines, start=2):
            instead = {but for one, but, _ in planted if one == phrase}
            assert any(f"{file}:{number}: {phrase!r}: write: {but}" in reported for but in instead), phrase


def test_words_are_found_in_any_case_and_across_line_breaks(tmp_path: Path) -> None:
    assert found_in(tmp_path / "a.md", "One.\nThe server is started\nAnew.\n")[0].startswith("3: 'Anew': write: again")
    assert found_in(tmp_path / "a.py", 'a = 1\n"""A name that leads\n    nowhere."""\n')[0].startswith(
        "2: 'leads nowhere'"
    )
    assert len(found_in(tmp_path / "a.html", "<p>One <b>circle</b></p>\n<p>two circles</p>")) == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("code.md", "See `circle` and:\n\n```\ntake back\n```\n"),
        ("page.html", '<circle r="2"/>{% if circle %}{{ anew }}{% endif %}'),
        ("names.py", "anew = 1\n\n\ndef mend(circle: int) -> int:\n    return circle  # anew\n"),
        ("literal.py", '"""Calls `Journal.mend`; the border and the room of a widget."""\n'),
        (
            "right.md",
            "CPU time, fold, novalidate, no validation, there is no file, recommended, a span processor.\n",
        ),
    ],
)
def test_code_and_right_uses_are_not_reported(tmp_path: Path, name: str, text: str) -> None:
    assert found_in(tmp_path / name, text) == []


def test_the_repository_uses_none_of_them() -> None:
    assert check() == (0, [])


def test_errors_are_named_in_a_block_at_the_end_of_a_docstring(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    (found,) = found_in(file, 'def a():\n    """Opens it.\n\n    Raises OSError, ValueError.\n    """\n')
    assert found.startswith("4: 'Raises OSError': write: a block at the end")
    assert found_in(file, 'def a():\n    """Opens it. Raises OSError."""\n')[0].startswith("2: ")
    assert found_in(file, 'def a():\n    """Opens it.\n\n    Raises:\n        OSError: it is gone.\n    """\n') == []
    assert found_in(file, 'def check():\n    """Raises ValueError for anything but a number."""\n') == []
