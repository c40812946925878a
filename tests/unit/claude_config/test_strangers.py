"""What somebody else put into a folder above a root counts for nothing: a shared disk, /tmp."""

import os

import pytest

from serena_central.claude_config.executable import server_folders
from serena_central.claude_config.memory_files import memory_files
from serena_central.claude_config.tiers import tier_files
from tests.unit.claude_config.conftest import Machine

SOMEBODY = 65534


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
def test_settings_servers_and_memory_of_strangers_above_a_root_do_not_count(machine: Machine) -> None:
    above = machine.root.parent
    files = [
        machine.write("../.claude/settings.json", {"permissions": {"deny": ["Read(**)"]}}),
        machine.write("../.mcp.json", {"mcpServers": {}}),
        machine.write("../.git/HEAD", "ref: refs/heads/main"),
        machine.write("../CLAUDE.md", "above"),
    ]

    def found() -> tuple[bool, bool, bool]:
        tiers = [file.path for file in tier_files(machine.root, machine.locations)]
        memory = memory_files(machine.root, [], locations=machine.locations)
        return files[0].resolve() in tiers, above in server_folders(machine.root, machine.locations), bool(memory.parts)

    assert found() == (True, True, True)
    for file in (*files, above / ".git"):
        os.chown(file, SOMEBODY, -1)
    assert found() == (False, False, False)
    for file in files[1:3]:
        os.chown(file, 0, -1)
    assert found() == (False, False, False), "a repository that somebody put around it"
