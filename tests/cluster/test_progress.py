"""Progress of a call comes with the answers to its front's pings. Ray itself is left out: methods are called here."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from serena_central.cluster.directory import Placement
from serena_central.cluster.ray_cluster import HostWire
from serena_central.cluster.ray_host import HostActor
from serena_central.core.progress import Listener

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]


class Reporting:
    """A host whose call reports, and ends when that was heard."""

    def __init__(self) -> None:
        self.heard = anyio.Event()

    async def run(self, message: bytes, report: Listener) -> bytes:
        for part in (0.25, 0.5):
            report(f"{part:.0%}", part)
        await self.heard.wait()
        return message


def called_here(actor: Any) -> Any:
    """As Ray's handle of the actor."""

    def method(work: Callable[..., Any]) -> Any:
        return SimpleNamespace(remote=work)

    return SimpleNamespace(run=method(actor.run), ping=method(actor.ping))


async def test_what_a_call_reports_is_heard_once_while_it_lasts() -> None:
    actor = HostActor.__ray_metadata__.modified_class()
    actor._host = host = Reporting()
    wire = HostWire(Placement(root="/src/shop", epoch=1, node="a", host="host-1"))
    wire._actor = called_here(actor)
    heard: list[tuple[str, float | None]] = []

    def hear(text: str, part: float | None) -> None:
        heard.append((text, part))
        if len(heard) == 2:
            host.heard.set()

    with anyio.fail_after(60):
        assert await wire.send("c-1", b"its reply", hear) == b"its reply"
    assert heard == [("25%", 0.25), ("50%", 0.5)]
    assert await actor.ping("c-1") == []
