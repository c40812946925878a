"""Sets up scripted and real language servers for tests: what `fake_server` needs to be used as a catalogue entry."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from serena_central.core.places import Places
from serena_central.core.text import Text
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import Launching, ServerSpec, catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import Launch, locate

FAKE_SERVER = Path(__file__).with_name("fake_server.py")

FAKE_SPEC = ServerSpec(name="fake", title="Fake", languages=("python",), launch=Launching(command=("{bin:python}",)))


def text_of(path: Path) -> Text:
    return read_text(path).text


def fake_launch(**script: Any) -> Launch:
    """How to start the scripted server; `script` are fields of `fake_server.Script`."""
    return Launch([sys.executable, "-I", "-S", str(FAKE_SERVER), json.dumps(script)])


def log_of(path: Path) -> list[dict[str, Any]]:
    """What a scripted server has read and noted so far."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def methods_of(path: Path) -> list[str]:
    return [entry["method"] for entry in log_of(path) if "method" in entry]


async def logged(path: Path, *, method: str = "", event: str = "", count: int = 1) -> dict[str, Any]:
    """Waits until a scripted server has noted a message or event, `count` times; the last of them."""
    with anyio.fail_after(60):
        while True:
            found = [
                entry
                for entry in log_of(path)
                if (method and entry.get("method") == method) or (event and entry.get("event") == event)
            ]
            if len(found) >= count:
                return found[count - 1]
            await anyio.sleep(0.005)


@asynccontextmanager
async def running(server: LanguageServer) -> AsyncGenerator[LanguageServer]:
    """Runs a server while the block is open."""
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(60):
            await tasks.start(server.run)
        try:
            yield server
        finally:
            server.stop()


def fake_server(root: Path, spec: ServerSpec = FAKE_SPEC, **script: Any) -> LanguageServer:
    return LanguageServer(spec, root, launch=fake_launch(**script), settings={}, read_text=text_of)


def real_server(name: str, root: Path) -> LanguageServer:
    """A server of the catalogue, as it is installed beside the tests."""
    spec = catalogue().server(name)
    launch = locate(spec, root, Places(root.parent / "home"), untrusted=None)
    return LanguageServer(spec, root, launch=launch, settings={}, read_text=text_of)
