"""Patterns over a repository's files take no time that grows with the square of their blank lines."""

import re
from pathlib import Path

import serena_central

_LINES = re.compile(r"""re\.compile\(\s*r?(?P<quote>["'])(?P<source>.*?)(?P=quote),[^)\n]*MULTILINE""")


def test_no_pattern_begins_at_each_line_and_runs_over_the_next_ones() -> None:
    folder = Path(serena_central.__file__).parent
    texts = {file: file.read_text() for file in folder.rglob("*.py")}
    found = [
        f"{file.relative_to(folder)}: {one['source']}" for file, text in texts.items() for one in _LINES.finditer(text)
    ]
    assert len(found) > 5
    assert [one for one in found if r"^\s*" in one or r"^\s+" in one] == []
