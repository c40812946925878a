"""Every problem has file, line, column and key; one bad entry never drops the rest."""

import pytest

from serena_central.claude_config.checks import timeout_ms
from serena_central.claude_config.problems import Severity
from tests.unit.claude_config.conftest import Machine

HOOK = '{"type": "command", "command": "x"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"model": 1}', "1:2: error: model: a whole number stands here (a string is needed)"),
        ('{"model": "a", "model": "b"}', "1:16: error: model: the key stands twice in one object, first in line 1"),
        (
            '{"permissions": {"deny": ["Read([)"]}}',
            "1:27: error: permissions.deny[0]: the rule 'Read([)' has no effect",
        ),
        ('{"permissions": {"deny": ["Read("]}}', "1:27: error: permissions.deny[0]: the rule 'Read(' has no effect"),
        ('{"permissions": {"deny": [""]}}', "1:27: error: permissions.deny[0]: the rule '' has no effect: it is empty"),
        ('{"permissions": {"deny": [7]}}', "1:27: error: permissions.deny[0]: a whole number stands here"),
        ('{"permissions": {"deny": "Read(x)"}}', "1:18: warning: permissions.deny: a list is needed"),
        ('{"permissions": {"deny": ["Raed(x)"]}}', "1:27: warning: permissions.deny[0]: no tool is called 'Raed'"),
        ('{"permissions": {"ask": ["Bash(a:*b)"]}}', "1:26: warning: permissions.ask[0]: ':*' stands for a prefix"),
        ('{"permissions": {"deny": ["Write(x)"]}}', "1:27: note: permissions.deny[0]: Claude Code looks at paths in"),
        (
            '{"permissions": {"defaultMode": "yolo"}}',
            "1:18: error: permissions.defaultMode: 'yolo' is not allowed (allowed are default, acceptEdits",
        ),
        (
            '{"permissions": {"deny": ["Read(x)"], "allow": ["Read(x)"]}}',
            "1:49: warning: permissions.allow[0]: the rule 'Read(x)' stands among deny, too",
        ),
        (
            f'{{"hooks": {{"Stop": [{{"hooks": [{HOOK}, {HOOK}]}}]}}}}',
            "1:69: error: hooks.Stop[0].hooks[1]: the same hook stands in line 1",
        ),
        (
            f'{{"hooks": {{"Stop": [{{"matcher": "(", "hooks": [{HOOK}]}}]}}}}',
            "1:22: error: hooks.Stop[0].matcher: '(' is no matcher",
        ),
        (
            f'{{"hooks": {{"Stop": [{{"matcher": "Bash(git", "hooks": [{HOOK}]}}]}}}}',
            "1:22: error: hooks.Stop[0].matcher: 'Bash(git' is no matcher",
        ),
        (
            f'{{"hooks": {{"Stop": [{{"matcher": "Read()", "hooks": [{HOOK}]}}]}}}}',
            "1:22: error: hooks.Stop[0].matcher: 'Read()' is no matcher: the parentheses are empty",
        ),
        (
            '{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}',
            "1:32: error: hooks.Stop[0].hooks[0]: a hook of type command needs command",
        ),
        (
            '{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}',
            "1:32: error: hooks.Stop[0].hooks[0]: type is missing",
        ),
        ('{"hooks": {"Stop": [{"matcher": "x"}]}}', "1:21: error: hooks.Stop[0]: hooks is missing"),
        (f'{{"hooks": {{"Stopp": [{{"hooks": [{HOOK}]}}]}}}}', "1:12: note: hooks.Stopp: no event is called 'Stopp'"),
        (
            '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 600001}]}]}}',
            "1:68: error: hooks.Stop[0].hooks[0].timeout: 600001 is out of range (from 0 to 600000 is allowed)",
        ),
        (
            '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}}',
            "1:68: error: hooks.Stop[0].hooks[0].timeout: -1 is out of range",
        ),
        (
            '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 5000}]}]}}',
            "1:68: note: hooks.Stop[0].hooks[0].timeout: 5000 is read as milliseconds here",
        ),
        ('{"mcpServers": {"s": {}}}', "1:17: error: mcpServers.s: the server has neither command nor url"),
        (
            '{"mcpServers": {"s": {"command": "x", "url": "y"}}}',
            "1:17: error: mcpServers.s: the server has both command and url",
        ),
        (
            '{"mcpServers": {"s": {"type": "stdoi", "command": "x"}}}',
            "1:23: error: mcpServers.s.type: 'stdoi' is not allowed (allowed are stdio, http",
        ),
        (
            '{"mcpServers": {"s": {"type": "http", "command": "x"}}}',
            "1:17: error: mcpServers.s: a server of type http needs a url",
        ),
        (
            '{"mcpServers": {"s": {"type": "sse", "transport": "http", "url": "x"}}}',
            "1:17: error: mcpServers.s: type is sse and transport is http",
        ),
        ('{"mcpServers": {"s": {"command": "x"}}}', "1:2: note: mcpServers: Claude Code itself reads no servers"),
        ('{"modle": "x"}', "1:2: note: modle: the key is not known here (did you mean model?)"),
        (
            '{"PreToolUse": []}',
            "1:2: note: PreToolUse: the key is not known here (hooks at this event have an effect below hooks only)",
        ),
        ('{"env": {"A": 1}}', "1:10: error: env.A: a whole number stands here (a string is needed)"),
        ("[]", " error: a list stands here (an object is needed)"),
        ('{"model": "x"', "1:14: error: a comma or } is needed here"),
        ('{"model": }', "1:11: error: '}' stands where a value is needed"),
        ('{"model": tru}', "1:11: error: 'tru' is not a JSON value (quote it, if it is text)"),
        ('{model: "x"}', "1:2: error: a key is needed here"),
        ('{"a": "x\ny"}', "1:7: error: the string has no end on its line"),
        (r'{"a": "C:\dir"}', "1:7: error: the string has an unknown escape"),
        ('{"model": "x"} {}', "1:16: error: something follows after the end"),
        ('{"model": "x",}', "1:14: warning: a comma before the end is not JSON"),
        ('{"model": "x" /* y */}', "1:15: warning: a comment is not JSON"),
        ('\n\n  {"schemaVersion": 2}', "3:4: error: schemaVersion: the file is written for version 2"),
        ('{"allowedTools": ["Read"]}', "1:2: note: allowedTools: the key is of an older form of the format"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(machine: Machine, text: str, expected: str) -> None:
    file = machine.project(text)
    said = [str(problem) for problem in machine.load().problems]
    assert any(one.startswith(f"{file}:{expected}") for one in said), said


def test_one_bad_entry_drops_nothing_else(machine: Machine) -> None:
    machine.project(
        {
            "model": 7,
            "permissions": {"deny": ["Read(a)", "Read([", 3, "Read(b)"], "allow": "Bash", "defaultMode": "no"},
            "hooks": {"Stop": [{"hooks": [{"type": "nothing"}, {"type": "command", "command": "x"}]}, {"hooks": 1}]},
            "mcpServers": {"bad": {}, "good": {"command": "x"}},
            "language": "en",
        }
    )
    loaded = machine.load()
    assert loaded.value == {
        "permissions": {"deny": ["Read(a)", "Read(b)"], "allow": ["Bash"]},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},
        "mcpServers": {"good": {"command": "x"}},
        "language": "en",
    }
    assert all(problem.place.line == 1 for problem in loaded.problems)


@pytest.mark.parametrize(
    "text",
    [
        '{"permissions": {"deny": ["Read(.env)"], "allow": ["Read"]}, "model": "x", oops',
        '{"schemaVersion": 9, "permissions": {"deny": ["Read(.env)"], "allow": ["Read"]}, "model": "x"}',
    ],
)
def test_of_a_file_that_is_broken_from_the_start_what_restricts_is_kept(machine: Machine, text: str) -> None:
    machine.project(text)
    loaded = machine.load()
    assert loaded.value == {"permissions": {"deny": ["Read(.env)"]}}
    assert loaded.permissions.reading(".env") is not None
    assert loaded.files[0].broken


def test_repeated_keys_lose_no_rule(machine: Machine) -> None:
    machine.project('{"permissions": {"deny": ["Read(a)"]}, "permissions": {"deny": ["Read(b)"], "deny": ["Read(c)"]}}')
    loaded = machine.load()
    assert loaded.value["permissions"]["deny"] == ["Read(a)", "Read(b)", "Read(c)"]
    assert len(loaded.errors) == 3


def test_older_forms_are_read(machine: Machine) -> None:
    machine.project(
        {
            "schemaVersion": 0,
            "allowedTools": ["Bash(npm test)"],
            "permissions": {"blockedTools": ["Bash(rm:*)"], "deny": ["Read(x)"]},
            "ignorePatterns": ["*.key"],
        }
    )
    loaded = machine.load()
    assert loaded.value["permissions"] == {
        "allow": ["Bash(npm test)"],
        "deny": ["Read(x)", "Bash(rm:*)", "Read(*.key)"],
    }
    assert {problem.severity for problem in loaded.problems} == {Severity.NOTE}


@pytest.mark.parametrize(("timeout", "expected"), [(None, 60_000), (0, 0), (30, 30_000), (600, 600_000), (5000, 5000)])
def test_timeouts_of_hooks_in_milliseconds(timeout: int | None, expected: int) -> None:
    assert timeout_ms({} if timeout is None else {"timeout": timeout}, 60_000) == expected
