"""A person's YAML file gets a value more, and keeps all else, byte for byte."""

from pathlib import Path

import pytest
import yaml

from serena_central.config.adding import with_added
from serena_central.core.errors import ConfigError

FILE = Path("/settings.yml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'trusted_roots:\n  - "~/src/*"\n'),
        ("# mine\nlog_level: info", '# mine\nlog_level: info\ntrusted_roots:\n  - "~/src/*"\n'),
        ("trusted_roots: [] # none\na: 1\n", 'trusted_roots: ["~/src/*"] # none\na: 1\n'),
        ("trusted_roots:\na: 1\n", 'trusted_roots: ["~/src/*"]\na: 1\n'),
        ("trusted_roots: # none\na: 1\n", 'trusted_roots: ["~/src/*"] # none\na: 1\n'),
        ("trusted_roots: [~/a] # x\n", 'trusted_roots: [~/a, "~/src/*"] # x\n'),
        ("trusted_roots:\n  - ~/a # x\n# y\nb: 1\n", 'trusted_roots:\n  - ~/a # x\n  - "~/src/*"\n# y\nb: 1\n'),
        ("trusted_roots:\n- ~/a", 'trusted_roots:\n- ~/a\n- "~/src/*"\n'),
        ("# only a comment\n", '# only a comment\ntrusted_roots:\n  - "~/src/*"\n'),
    ],
)
def test_a_value_is_added(before: str, after: str) -> None:
    assert with_added(before, "trusted_roots", ["~/src/*"], file=FILE) == after
    assert yaml.safe_load(after)["trusted_roots"][-1] == "~/src/*"


@pytest.mark.parametrize("text", ["{a: 1}\n", "- a\n", "a: [\n", "trusted_roots: {a: b}\n", "a: 1\n...\n"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="trusted_roots"):
        with_added(text, "trusted_roots", ["~/src/*"], file=FILE)
