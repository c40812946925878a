"""What runners of tasks get from the server: address, memory, trust and prices."""

import json
import time
from pathlib import Path

import anyio.to_thread

from serena_central.agents.runners.surroundings import Server, Surroundings, memory_text
from serena_central.agents.tasks import Usage
from serena_central.config.settings import ServerSettings
from serena_central.core.places import Places
from serena_central.projects.root_settings import ClaudeSettings
from serena_central.projects.trust.trust_decisions import Trust


def surroundings_of(settings: ServerSettings, places: Places, claude: ClaudeSettings, trust: Trust) -> Surroundings:
    """Belongs to the event loop's thread, but for `server` and `cost`."""
    from serena_central.transcripts.pricing import Prices
    from serena_central.transcripts.requests import Origin, Request, key_of

    prices = Prices(settings.prices)

    def server() -> Server:
        url = str(json.loads(places.server_file.read_text(encoding="utf-8"))["url"])
        return Server(url, places.token_file.read_text(encoding="ascii").strip())

    async def memory(root: Path) -> str:
        access, trusted = claude.access(root), trust.is_trusted(root)

        def readable(path: Path) -> str | None:
            closed = access.reading if path.is_relative_to(root) else None
            return closed(path.relative_to(root).as_posix()) if closed else None

        names = settings.memory_files
        return await anyio.to_thread.run_sync(
            lambda: memory_text(root, claude.locations, names, trusted=trusted, readable=readable)
        )

    def cost(model: str, usage: Usage) -> float | None:
        request = Request(
            key=key_of(model),
            at=int(time.time() * 1000),
            origin=Origin("task", "", "", "", model),
            input=usage.input,
            output=usage.output,
            write_5m=usage.cache_write,
            read=usage.cache_read,
        )
        return prices.cost(request)

    return Surroundings(server, memory, trust.is_trusted, cost)
