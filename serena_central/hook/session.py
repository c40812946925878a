"""When a client's conversation begins: warm up its project in the background, and tell the model what there is. When it
ends: say so to the server, as far as it can know which session that was.
"""

import contextlib
import os
import subprocess
import sys
import time

from serena_central.hook.memory import Memory, Unavailable, digest
from serena_central.hook.payload import Event
from serena_central.hook.server_query import ask
from serena_central.standalone.home import Home

GOODBYE_S = 1.0
"""The client waits no longer than it must: it is about to end."""

SERVER_STARTS_S = 30.0
WARMING_S = 10.0
"""How long the server may take to say that it has begun."""

POLL_S = 0.5

CONTEXT = (
    "The serena-central MCP server indexes this code. Use find_symbol, get_symbols_overview and "
    "find_referencing_symbols "
    "instead of text search for code, and search_for_pattern for text. In a repository with several modules, "
    "name one in project=, or describe the task in semantic_context."
)


def begin(event: Event, home: Home) -> str:
    """Has the warm-up begin without waiting for it; what the model is to know."""
    if event.why != "compact":  # nothing was stopped: only the model's memory was shortened
        folder = event.folder or os.getcwd()
        subprocess.Popen(
            [sys.executable, "-I", "-m", "serena_central.hook", "warm", folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home.folder if os.path.isdir(home.folder) else None,
            env={**os.environ, "SERENA_CENTRAL_HOME": home.folder},
            start_new_session=True,
        )
    return CONTEXT


def warm_up(folder: str, home: Home) -> None:
    """Asks the server to warm up what is in a folder, once it runs: a client's proxy may just be starting it."""
    deadline = time.monotonic() + SERVER_STARTS_S
    body: dict[str, object] = {"folder": folder, "modules": [], "background": True}
    while ask(home, "POST", "/api/v1/warm", deadline=min(deadline, time.monotonic() + WARMING_S), body=body) is None:
        if time.monotonic() + POLL_S > deadline:
            return
        time.sleep(POLL_S)


def end(event: Event, home: Home) -> None:
    """A client behind a proxy, or of the handshake era, is seen to go without this."""
    with contextlib.suppress(Unavailable):
        Memory(home).forget(digest(event.session), time.time())
    if event.session and event.why != "clear":
        body = {"conversation": event.session}
        ask(home, "POST", "/api/v1/conversations/close", deadline=time.monotonic() + GOODBYE_S, body=body)
