"""The source of trust for Claude Code settings: what a repository's settings can execute."""

from collections.abc import Hashable, Mapping
from pathlib import Path

from serena_central.claude_config.locations import (
    FOLDER,
    LOCAL_SETTINGS,
    PROJECT_SERVERS,
    SETTINGS,
    Locations,
    stamp_of,
)


class ClaudeFiles:
    """See `trust_decisions.Source`."""

    name = "claude"

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def parts(self, root: Path) -> Mapping[str, str]:
        if self.stamp(root) is None:
            return {}
        # Late: who has no such files does not pay for it.
        from serena_central.claude_config.executable import executable_texts

        return executable_texts(root, self._locations)

    def stamp(self, root: Path) -> Hashable:
        """None where there are no such files."""
        found = [stamp_of(f"{root}/{PROJECT_SERVERS}")]
        if stamp_of(f"{root}/{FOLDER}") is not None:
            found += (stamp_of(f"{root}/{FOLDER}/{SETTINGS}"), stamp_of(f"{root}/{FOLDER}/{LOCAL_SETTINGS}"))
        if stamp_of(f"{root}/.git") is None:
            found += (stamp_of(f"{folder}/{PROJECT_SERVERS}") for folder in self._locations.around(root))
        return tuple(found) if any(found) else None
