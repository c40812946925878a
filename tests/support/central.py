"""The whole server, as the command line starts it, in the test's own event loop with a home of its own."""

import math
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx

from serena_central.app import Application, CentralServer, build
from serena_central.app.build import Cluster
from serena_central.config.load import Sources, load_server_config
from serena_central.core.places import Places
from serena_central.sessions.session import ClientIdentity, Session
from serena_central.tools.catalogue import Catalogue
from serena_central.tools.families import CATALOGUE
from tests.support.mcp import Era, RawClient
from tests.support.postgresql import url_for
from tests.support.serving import serving

TESTS = Path(__file__).parents[1]

USUAL: dict[str, Any] = {"auto_install": "off", "allowed_roots": [tempfile.gettempdir(), str(TESTS)]}
"""Tests ask no registry, and their agents may open folders that are no repositories, unless they say so."""


def _defaults(home: Path) -> dict[str, Any]:
    """Projects beside the server's home are trusted, unless a test says otherwise."""
    url = url_for(Places(home / "home").database)
    return {**USUAL, "trusted_roots": [str(home)], **({"database_url": url} if url else {})}


@dataclass
class RunningCentral:
    """A server that runs, and how to reach it."""

    url: str
    central: Application
    server: CentralServer

    @property
    def authorized(self) -> dict[str, str]:
        return {"authorization": self.central.token.header()}

    @asynccontextmanager
    async def http(self, **headers: str) -> AsyncGenerator[httpx.AsyncClient]:
        sent = self.authorized | {key.replace("_", "-"): value for key, value in headers.items()}
        async with httpx.AsyncClient(base_url=self.url, headers=sent, timeout=60) as client:
            yield client

    @asynccontextmanager
    async def raw(self, era: Era, **headers: str) -> AsyncGenerator[RawClient]:
        async with self.http(**headers) as http:
            client = RawClient(http, era)
            await client.open()
            yield client


def sources_in(folder: Path) -> Sources:
    """No settings but the given ones: nothing of the machine that runs the tests."""
    return Sources(folder / "machine.yml", folder / "user.yml", {})


@asynccontextmanager
async def running_central(
    home: Path,
    settings: Mapping[str, Any] | None = None,
    *,
    port: int = 0,
    patience_s: float = 60,
    catalogue: Catalogue = CATALOGUE,
    cluster: Cluster | None = None,
) -> AsyncGenerator[RunningCentral]:
    """Runs a server below `home`; leaving the block stops it as a signal would. Start and stop may take `patience_s`
    each; what is done in between has the bound of its test."""
    loaded = load_server_config(_defaults(home) | dict(settings or {}), sources_in(home))
    servers: list[CentralServer] = []

    def stop() -> None:
        servers[0].should_exit = True

    central = build(loaded, Places(home / "home"), stop=stop, catalogue=catalogue, cluster=cluster)
    servers.append(CentralServer(central))
    with anyio.fail_after(patience_s) as bound:
        async with serving(servers[0], port) as url:
            bound.deadline = math.inf
            try:
                yield RunningCentral(url, central, servers[0])
            finally:
                bound.deadline = anyio.current_time() + patience_s


@asynccontextmanager
async def running_parts(
    home: Path, settings: Mapping[str, Any] | None = None, *, catalogue: Catalogue = CATALOGUE
) -> AsyncGenerator[Application]:
    """All parts of a server below `home`, running, with no HTTP before them."""
    loaded = load_server_config(_defaults(home) | dict(settings or {}), sources_in(home))
    central = build(loaded, Places(home / "home"), stop=lambda: None, catalogue=catalogue)
    async with central.app.router.lifespan_context(central.app):
        yield central


def session_of(central: Application, **facts: Any) -> Session:
    """The session of a client that names itself, as a border would find it."""
    return central.sessions.identify(
        ClientIdentity(**{"credential": "me", "client_name": "test", "explicit_id": "s"} | facts)
    )
