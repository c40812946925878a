"""One value of a person's file is changed; every other byte stays, or the change is refused."""

from typing import Any

import pytest

from serena_central.config.changing import value_in, with_value
from serena_central.core.errors import ConfigError

FILE = (
    "# Ours\nproject_name: shop  # short\n\n# tools\nexcluded_tools:\n  - a\n  # why b\n  - b\n\n"
    "# last\nread_only: no\n"
)


LIST = "excluded_tools:\n  - a\n  # why b\n  - b\n"


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        ("", "read_only", True, "read_only: true\n"),
        ("a: 1", "read_only", True, "a: 1\nread_only: true\n"),
        (FILE, "project_name", "new: name", FILE.replace("shop ", '"new: name" ')),
        (FILE, "read_only", True, FILE.replace("read_only: no", "read_only: true")),
        (FILE, "read_only", None, FILE.replace("read_only: no\n", "")),
        (FILE, "excluded_tools", ["c"], FILE.replace(LIST, '# why b\nexcluded_tools: ["c"]\n')),
        (FILE, "excluded_tools", None, FILE.replace(LIST, "# why b\n")),
        (FILE, "project_name", None, FILE.replace("project_name: shop  # short\n", "# short\n")),
        ("x: [a, # why '#' a\n  '#b']\ny: 1\n", "x", ["a"], "# why '#' a\nx: [\"a\"]\ny: 1\n"),
        ("g: # all\n  # why\n  x: 1 # one\nb: 2 # two\n", "g.x", None, "# all\n# why\n# one\nb: 2 # two\n"),
        ("g:\n  x:\n  - 1 # one\n  - 2\n  # end\n", "g.x", [2], "g:\n  # one\n  x: [2]\n  # end\n"),
        ("x: |\n  a # no comment\n\n# of y\ny: 1\n", "x", "b", 'x: "b"\n\n# of y\ny: 1\n'),
        ("key:\nb: 1\n", "key", 2, "key: 2\nb: 1\n"),
        ("x: [1, 2] # two\n", "x", [3], "x: [3] # two\n"),
        ("x: {a: 1}\n", "x", None, ""),
        ("a: 1", "g.x", 5, "a: 1\ng:\n  x: 5\n"),
        ("g:\n  # why\n  x: 1  # one\nb: 2\n", "g.x", 5, "g:\n  # why\n  x: 5  # one\nb: 2\n"),
        ("g:\n  x: 1  # one\n# of b\nb: 2\n", "g.y", [1], "g:\n  x: 1  # one\n  y: [1]\n# of b\nb: 2\n"),
        ("g:\n    x:\n    - 1\n\n# end", "g.y", 2, "g:\n    x:\n    - 1\n    y: 2\n\n# end"),
        ("g:\n  x: 1\n  y: 2\n", "g.x", None, "g:\n  y: 2\n"),
        ("a: 1\ng:\n  x: 1\nb: 2\n", "g.x", None, "a: 1\nb: 2\n"),
        ("g: {x: 1} # in one line\n", "g.y", 2, "g: {y: 2, x: 1} # in one line\n"),
        ("g: {x: 1, y: 2}\n", "g.y", 3, "g: {x: 1, y: 3}\n"),
        ("g:\nb: 1\n", "g.x", 1, 'g: {"x": 1}\nb: 1\n'),
        ("a: 1\n", "g.x", None, "a: 1\n"),
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


@pytest.mark.parametrize("text", ["g: 1\n", "g: [x]\n", "g: {x: 1, y: 2}\n", "g: &g\n  x: 1\nh: *g\n"])
def test_a_key_of_a_group_is_refused_where_the_form_is_not_understood(text: str) -> None:
    with pytest.raises(ConfigError):
        with_value(text, "g.x", None if "y" in text else 5, file="f.yml")
    assert value_in(text, "g.none") is None
