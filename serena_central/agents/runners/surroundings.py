"""What runners get from the rest of the server: its address, a root's memory and trust, and what tokens cost."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from serena_central.agents.tasks import Usage
from serena_central.claude_config.locations import Locations
from serena_central.claude_config.memory_files import Readable, memory_files


class Server(NamedTuple):
    """How this server is reached."""

    url: str
    token: str


class Surroundings(NamedTuple):
    """`server` blocks for two small files. `memory` maps a real root to the text of its CLAUDE.md files. `trusted` says
    whether what the repository at a real root brings may run. `cost` is that of tokens of a model in dollars, None
    where its rates are unknown; it may block."""

    server: Callable[[], Server]
    memory: Callable[[Path], Awaitable[str]]
    trusted: Callable[[Path], bool]
    cost: Callable[[str, Usage], float | None]


def memory_text(root: Path, locations: Locations, names: Sequence[str], *, trusted: bool, readable: Readable) -> str:
    """The memory files of a root, each below its path. Blocks for small files."""
    found = memory_files(root, locations=locations, names=names, trusted=trusted, readable=readable)
    return "\n\n".join(f"# {part.path}\n\n{part.text.strip()}" for part in found.parts)
