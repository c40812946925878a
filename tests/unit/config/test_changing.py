"""One value of a person's file is changed; every other byte stays, or the change is refused."""

from typing import Any

import pytest

from serena_central.config.changing import with_value
from serena_central.core.errors import ConfigError

FILE = (
    "# Ours\nproject_name: shop  # short\n\n# tools\nexcluded_tools:\n  - a\n  # why b\n  - b\n\n"
    "# last\nread_only: no\n"
)


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        ("", "read_only", True, "read_only: true\n"),
        ("a: 1", "read_only", True, "a: 1\nread_only: true\n"),
        (FILE, "project_name", "new: name", FILE.replace("shop ", '"new: name" ')),
        (FILE, "read_only", True, FILE.replace("read_only: no", "read_only: true")),
        (FILE, "read_only", None, FILE.replace("read_only: no\n", "")),
        (FILE, "excluded_tools", ["c"], FILE.replace("\n  - a\n  # why b\n  - b\n", ' ["c"]\n')),
        ("key:\nb: 1\n", "key", 2, "key: 2\nb: 1\n"),
        ("x: [1, 2] # two\n", "x", [3], "x: [3] # two\n"),
        ("x: {a: 1}\n", "x", None, ""),
    ],
)
def test_one_value_is_changed(text: str, key: str, value: Any, expected: str) -> None:
    assert with_value(text, key, value, file="f.yml") == expected


@pytest.mark.parametrize(
    "text", ["- a list\n", "a: [\n", "{x: 1, y: 2}\n", "x: &a 1\ny: *a\n", "x: |\n  text\n  more\ny: 1\n"]
)
def test_a_form_that_is_not_understood_is_refused_or_kept_whole(text: str) -> None:
    try:
        changed = with_value(text, "x", 5, file="f.yml")
    except ConfigError:
        return
    assert with_value(changed, "x", 5, file="f.yml") == changed
