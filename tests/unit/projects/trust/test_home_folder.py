"""What lies in the user's own folder comes with no repository, also where that folder is the root."""

from pathlib import Path

from serena_central.claude_config.locations import Locations
from serena_central.projects.trust.agent_source import AgentFiles
from serena_central.projects.trust.claude_source import ClaudeFiles

SETTINGS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'


def test_the_home_folder_brings_nothing_that_needs_trust(tmp_path: Path) -> None:
    where = Locations("linux", tmp_path, tmp_path / "home", {})
    for folder in (where.home, where.home / "app"):
        (folder / ".claude" / "agents").mkdir(parents=True)
        (folder / ".claude" / "settings.json").write_text(SETTINGS)
        (folder / ".claude" / "agents" / "one.md").write_text("---\nname: one\n---\n")
    linked = tmp_path / "linked"
    linked.symlink_to(where.home)
    for locations in (where, Locations("linux", tmp_path, linked, {})):
        for source in (ClaudeFiles(locations), AgentFiles(locations)):
            assert source.parts(where.home) == {}
            assert len(source.parts(where.home / "app")) == 1
