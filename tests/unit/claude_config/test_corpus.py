"""Files as people write them, and files as nobody would: read without a traceback, and judged as jsonschema judges."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from serena_central.claude_config.document import Document
from serena_central.claude_config.effective import load
from serena_central.claude_config.problems import Severity
from serena_central.claude_config.schema import servers_schema, settings_schema
from serena_central.claude_config.shape import Fitting
from serena_central.claude_config.sources import servers_of
from tests.unit.claude_config.conftest import Machine


def corpus() -> dict[str, tuple[str, int]]:
    """Name → text, and how many errors are in it."""
    parts = (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8").split("\n=== ")[1:]
    found: dict[str, tuple[str, int]] = {}
    for part in parts:
        head, _, text = part.partition("\n")
        name, _, errors = head.partition(" | ")
        found[name] = text, int(errors)
    return found


CORPUS = corpus()
VALIDATOR = Draft202012Validator(settings_schema())


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 60


@pytest.mark.parametrize("name", CORPUS)
def test_files_as_people_write_them(machine: Machine, name: str) -> None:
    text, errors = CORPUS[name]
    machine.project(text)
    machine.write(".mcp.json", text)
    loaded = machine.load()
    assert len(loaded.errors) == errors, [str(problem) for problem in loaded.problems]
    servers_of(loaded, trusted=True)


@pytest.mark.parametrize("name", CORPUS)
def test_what_counts_of_a_file_is_valid(machine: Machine, name: str) -> None:
    machine.project(CORPUS[name][0])
    assert [error.message for error in VALIDATOR.iter_errors(machine.load().value)] == []


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 10**9),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=6),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(sorted(settings_schema()["properties"]))), inner, max_size=3
        ),
    ),
    max_leaves=10,
)
KNOWN = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("permissions", "hooks", "env", "mcpServers", "model", "allowedMcpServers"), JSON)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.one_of(JSON, KNOWN))
def test_the_comparison_with_the_schema_agrees_with_jsonschema(value: Any) -> None:
    document = Document("settings.json", json.dumps(value))
    assert document.value == value
    fitted = Fitting(document, settings_schema()).fit()
    found = [problem for problem in document.problems if problem.severity is not Severity.NOTE]
    assert bool(found) == bool(list(VALIDATOR.iter_errors(value)))
    if fitted.__class__ is dict:
        assert list(VALIDATOR.iter_errors(fitted)) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60),
        JSON.map(lambda value: json.dumps(value).encode()),
        KNOWN.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
        st.text(alphabet='{}[]",:\\/*ntrue0-9. \n#', max_size=60).map(str.encode),
        st.sampled_from(sorted(CORPUS)).flatmap(
            lambda name: st.integers(0, len(CORPUS[name][0])).map(lambda cut: CORPUS[name][0][:cut].encode())
        ),
    )
)
def test_no_file_makes_a_traceback(machine: Machine, content: bytes) -> None:
    for name in (".claude/settings.json", ".claude/settings.local.json", ".mcp.json", "CLAUDE.md"):
        machine.write(name, "").write_bytes(content)
    (machine.home / ".claude.json").write_bytes(content)
    loaded = load(machine.root, machine.locations)
    [str(problem) for problem in loaded.problems]
    loaded.permissions.reading("a/b")
    loaded.permissions.command("git push && cat x")
    [str(problem) for problem in servers_of(loaded, trusted=False).problems]


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
        b'"\\ud800"',
        b'{"\\ud800": "\\udfff"}',
        b"\xef\xbb\xbf{}",
        b"\x00",
        b" " * 2_000_000,
        b'{"permissions": {"deny": [' + b'"Read(a)",' * 20_000 + b'"Read(b)"]}}',
        b'{"permissions": {"deny": [' + b",".join(b'"Read(x%d)"' % n for n in range(30_000)) + b"]}}",
        b'{"hooks": {"Stop": [' + b",".join(b'{"hooks": [], "matcher": "x%d"}' % n for n in range(20_000)) + b"]}}",
        b'{"permissions": {"deny": [' + b",".join([b'"Read(' + b"{a,b}" * 150 + b')"'] * 500) + b"]}}",
        b'{"env": {"A": "' + b"${" * 50_000 + b'"}}',
    ],
)
def test_hostile_files_end_soon(machine: Machine, content: bytes) -> None:
    machine.project("").write_bytes(content)
    loaded = machine.load()
    [str(problem) for problem in loaded.problems]
    loaded.permissions.reading("a/b")


def test_what_is_no_file(machine: Machine) -> None:
    (machine.root / ".claude").mkdir()
    os.mkfifo(machine.root / ".claude" / "settings.json")
    (machine.root / ".claude" / "settings.local.json").mkdir()
    assert ["must be a regular file" in str(problem) for problem in machine.load().problems] == [True, True]


def test_the_servers_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(servers_schema())
    Draft202012Validator.check_schema(settings_schema())
