"""Which language servers list_projects shows beside which project."""

from pathlib import Path
from typing import Any

import msgspec

from serena_central.pool.snapshot import ServerSnapshot
from serena_central.tools.workflow import servers_by_project


def server(root: str, **more: Any) -> ServerSnapshot:
    plain = {
        "key": [root, "ls", "", None],
        "root": root,
        "server": "ls",
        "languages": [],
        "version": "",
        "state": "idle",
        "run": 1,
        "pid": None,
        "breaker": {"state": "closed", "failures": 0, "opens_until": None, "last_failure": ""},
        "reason": "",
        "stderr_tail": "",
        "draining": False,
        **dict.fromkeys(("memory_bytes", "cpu_percent", "attached", "leases", "calls", "restarts"), 0),
        **dict.fromkeys(("idle_s", "age_s"), 0),
    }
    return msgspec.convert({**plain, **more}, ServerSnapshot, dec_hook=lambda kind, value: kind(value))


def test_a_server_of_a_nested_root_belongs_to_the_innermost_project_around_it() -> None:
    roots = [Path("/a"), Path("/a/inner")]
    found = servers_by_project([server("/a"), server("/a/crates/x"), server("/a/inner/y"), server("/b")], roots)
    assert found == {
        Path("/a"): [{"server": "ls", "state": "idle"}, {"server": "ls", "state": "idle", "folder": "crates/x"}],
        Path("/a/inner"): [{"server": "ls", "state": "idle", "folder": "y"}],
    }


def test_servers_from_before_a_change_of_settings_or_trust_are_shown_while_they_run_alone() -> None:
    ended = server("/a", state="disconnected", missing=True)
    assert servers_by_project([ended, server("/a")], [Path("/a")]) == {Path("/a"): [{"server": "ls", "state": "idle"}]}
    after = server("/a", state="disconnected")
    found = servers_by_project([ended, after], [Path("/a")])
    assert found == {Path("/a"): [{"server": "ls", "state": "disconnected"}]}
    assert len(servers_by_project([server("/a", state="expired"), server("/a")], [Path("/a")])[Path("/a")]) == 2


def test_a_server_without_a_program_is_not_installed() -> None:
    found = servers_by_project([server("/a", state="disconnected", missing=True)], [Path("/a")])
    assert found == {Path("/a"): [{"server": "ls", "state": "not installed"}]}
