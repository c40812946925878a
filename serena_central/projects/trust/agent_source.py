"""The source of trust for definitions of agents: the instructions and tools of the agents that a repository brings."""

import os
from collections.abc import Hashable, Mapping
from pathlib import Path

from serena_central.claude_config.locations import AGENTS, FOLDER, Locations, stamp_of
from serena_central.config.document import DocumentError, read_whole


class AgentFiles:
    """See `trust_decisions.Source`."""

    name = "agents"

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def parts(self, root: Path) -> Mapping[str, str]:
        found: dict[str, str] = {}
        if self.stamp(root) is None:
            return found
        for file in _files(root):
            try:
                text = read_whole(Path(file), root)
            except DocumentError:
                continue  # nor is it an agent
            # What is not ASCII is escaped, so that nothing can hide.
            found[file] = (text or "").encode("ascii", "backslashreplace").decode()
        return found

    def stamp(self, root: Path) -> Hashable:
        """None where there is no such folder, or it is the user's own."""
        folder = stamp_of(f"{root}/{FOLDER}/{AGENTS}")
        if folder is None or self._locations.brought_folder(root) is None:
            return None
        return folder, *map(stamp_of, _files(root))


def _files(root: Path) -> list[str]:
    folder = f"{root}/{FOLDER}/{AGENTS}"
    try:
        return sorted(f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".md"))  # noqa: PTH208
    except OSError:
        return []
