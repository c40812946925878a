"""MCP servers of all sources: who wins, and which may be used."""

from typing import Any

import pytest

from serena_central.claude_config.problems import Severity
from serena_central.claude_config.sources import Servers, State, servers_of
from serena_central.claude_config.substitution import revealed
from tests.unit.claude_config.conftest import Machine

SERVER = {"command": "run"}


def servers(machine: Machine, *, trusted: bool = True) -> Servers:
    return servers_of(machine.load(), trusted=trusted)


def states(machine: Machine, *, trusted: bool = True) -> dict[str, State]:
    found = servers(machine, trusted=trusted).found
    return {one.name: one.state for one in found if one.state is not State.SHADOWED}


def named(name: str, by: str) -> dict[str, Any]:
    return {"mcpServers": {name: {"command": by}}}


def test_the_strongest_source_wins_and_the_others_are_shadowed(machine: Machine) -> None:
    (machine.root / ".git").mkdir()
    machine.write("~/.claude/claude.json", named("s", "legacy"))
    machine.write(
        "~/.claude.json",
        {**named("s", "state"), "projects": {str(machine.root): named("s", "state of project")}, "other": 1},
    )
    machine.user(named("s", "user"))
    machine.project(named("s", "project"))
    machine.write(".mcp.json", named("s", "mcp.json"))
    machine.local({**named("s", "local"), "enableAllProjectMcpServers": True})
    found = servers(machine).found
    assert [one.entry["command"] for one in found] == [
        *("local", "state of project", "mcp.json", "project", "user", "state", "legacy"),
    ]
    assert [one.state for one in found] == [State.ENABLED] + [State.SHADOWED] * 6
    assert [str(one.source) for one in found] == ["local", "local", "project", "project", "user", "user", "user"]
    assert "settings.local.json:1:" in found[1].why


def test_mcp_json_is_read_from_the_root_up_to_its_repository(machine: Machine) -> None:
    machine.enterprise({"enableAllProjectMcpServers": True})
    machine.write("../.mcp.json", {"mcpServers": {"s": {"command": "outer"}, "t": {"command": "outer"}}})
    machine.write(".mcp.json", named("s", "inner"))
    assert set(states(machine)) == {"s"}
    (machine.root.parent / ".git").mkdir()
    assert {one.name: one.entry["command"] for one in servers(machine).usable().values()} == {
        "s": "inner",
        "t": "outer",
    }
    (machine.root / ".git").mkdir()
    assert set(states(machine)) == {"s"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, State.PENDING),
        ({"enableAllProjectMcpServers": True}, State.ENABLED),
        ({"enabledMcpjsonServers": ["s"]}, State.ENABLED),
        ({"enabledMcpjsonServers": ["other"]}, State.PENDING),
        ({"disabledMcpjsonServers": ["s"]}, State.DISABLED),
        ({"enableAllProjectMcpServers": True, "disabledMcpjsonServers": ["s"]}, State.DISABLED),
        ({"enabledMcpjsonServers": ["s"], "disabledMcpjsonServers": ["s"]}, State.DISABLED),
        ({"enableAllProjectMcpServers": False, "enabledMcpjsonServers": ["s"]}, State.ENABLED),
    ],
)
@pytest.mark.parametrize("tier", ["enterprise", "user", "project", "local"])
def test_activation_of_servers_in_mcp_json(machine: Machine, keys: dict[str, Any], expected: State, tier: str) -> None:
    machine.write(".mcp.json", {"mcpServers": {"s": SERVER}})
    getattr(machine, tier)(keys)
    assert states(machine) == {"s": expected}


def test_what_is_disabled_in_one_tier_stays_so_whatever_others_enable(machine: Machine) -> None:
    machine.write(".mcp.json", {"mcpServers": {"s": SERVER}})
    machine.user({"disabledMcpjsonServers": ["s"]})
    machine.local({"enabledMcpjsonServers": ["s"], "enableAllProjectMcpServers": True})
    assert states(machine) == {"s": State.DISABLED}


def test_what_the_client_keeps_of_a_project_activates_too(machine: Machine) -> None:
    machine.write(".mcp.json", {"mcpServers": {"s": SERVER, "t": SERVER}})
    kept = {"enabledMcpjsonServers": ["s", "t"], "disabledMcpjsonServers": ["t"]}
    machine.write("~/.claude.json", {"projects": {str(machine.root): kept}})
    assert states(machine) == {"s": State.ENABLED, "t": State.DISABLED}


def test_what_comes_with_a_repository_waits_for_trust(machine: Machine) -> None:
    machine.write(".mcp.json", {"mcpServers": {"s": SERVER}})
    machine.project({**named("p", "x"), "enableAllProjectMcpServers": True})
    machine.local(named("l", "x"))
    machine.user(named("u", "x"))
    expected = dict.fromkeys("lps", State.UNTRUSTED) | {"u": State.ENABLED}
    assert states(machine, trusted=False) == expected
    assert set(servers(machine).usable()) == set("lpsu")


def test_a_managed_file_excludes_all_others(machine: Machine) -> None:
    machine.user(named("u", "x"))
    machine.write("etc/claude-code/managed-mcp.json", named("m", "x"))
    assert states(machine) == {"m": State.ENABLED}
    machine.write("etc/claude-code/managed-mcp.json", {"mcpServers": {}})
    assert states(machine) == {}


REMOTE = {"url": "https://mcp.example.com/v1"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"deniedMcpServers": [{"serverName": "s"}]}, "r"),
        ({"deniedMcpServers": [{"serverCommand": ["run", "a"]}]}, "r"),
        ({"deniedMcpServers": [{"serverCommand": ["run"]}]}, "sr"),
        ({"deniedMcpServers": [{"serverUrl": "https://*.example.com/*"}]}, "s"),
        ({"allowedMcpServers": []}, ""),
        ({"allowedMcpServers": [{"serverName": "s"}]}, "s"),
        ({"allowedMcpServers": [{"serverName": "s"}, {"serverCommand": ["other"]}]}, ""),
        ({"allowedMcpServers": [{"serverCommand": ["run", "a"]}, {"serverName": "r"}]}, "sr"),
        ({"allowedMcpServers": [{"serverUrl": "https://mcp.example.com/*"}]}, "r"),
        ({"allowedMcpServers": [{"serverName": "s"}], "deniedMcpServers": [{"serverName": "s"}]}, ""),
    ],
)
def test_lists_of_the_policy(machine: Machine, policy: dict[str, Any], expected: str) -> None:
    machine.user({"mcpServers": {"s": {"command": "run", "args": ["a"]}, "r": REMOTE}})
    machine.enterprise(policy)
    assert sorted(servers(machine).usable()) == sorted(expected)


def test_a_users_list_adds_to_the_policy_unless_that_says_otherwise(machine: Machine) -> None:
    machine.user({"mcpServers": {"s": SERVER, "r": REMOTE}, "allowedMcpServers": [{"serverName": "r"}]})
    machine.enterprise({"allowedMcpServers": [{"serverName": "s"}]})
    assert sorted(servers(machine).usable()) == ["r", "s"]
    machine.enterprise({"allowedMcpServers": [{"serverName": "s"}], "allowManagedMcpServersOnly": True})
    assert sorted(servers(machine).usable()) == ["s"]


def test_kinds_of_transport(machine: Machine) -> None:
    url = "https://x"
    machine.user(
        {
            "mcpServers": {
                "a": {"command": "x"},
                "b": {"type": "stdio", "command": "x"},
                "c": {"url": url},
                "d": {"type": "streamable-http", "url": url},
                "e": {"transport": "sse", "url": url},
                "f": {"transport": "http", "type": "streamable-http", "url": url},
            }
        }
    )
    assert [one.kind for one in servers(machine).found] == ["stdio", "stdio", "http", "http", "sse", "http"]


def test_variables_in_mcp_json_are_resolved_and_shown_as_written(machine: Machine) -> None:
    machine.environment = {"TOKEN": "canary"}
    machine.write(
        ".mcp.json",
        {
            "mcpServers": {
                "s": {"command": "x", "args": ["${TOKEN}"]},
                "r": {"url": "https://x", "headers": {"Authorization": "${NOPE}"}},
            }
        },
    )
    found = servers(machine)
    (server,) = found.found
    assert server.target == "x ${TOKEN}"
    assert revealed(server.entry["args"][0]) == "canary"
    assert "canary" not in repr(found)
    (problem,) = found.problems
    assert problem.severity is Severity.ERROR
    assert problem.key == "mcpServers.r.headers.Authorization"


def test_problems_in_the_clients_own_file_have_lines_of_that_file(machine: Machine) -> None:
    file = machine.write("~/.claude.json", '{\n "history": [1, 2],\n "mcpServers": {\n  "bad": {}\n }\n}')
    (problem,) = servers(machine).problems
    assert str(problem).startswith(f"{file}:4:3: error: mcpServers.bad: the server has neither command nor url")


@pytest.mark.parametrize("text", ["", "nonsense", '{"mcpServers": 7}', '{"projects": 7}', '{"mcpServers": {"s": 7}}'])
def test_a_broken_file_of_the_client_is_one_problem(machine: Machine, text: str) -> None:
    machine.write("~/.claude.json", text)
    found = servers(machine)
    assert found.found == []
    assert len(found.problems) == 1
