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
from serena_central.hook.question import ask
from serena_central.island.home import Home

GOODBYE_S = 1.0
"""The client waits no longer than it must: it is about to end."""

CONTEXT = (
    "Code here is served by serena-central (MCP). Use find_symbol, get_symbols_overview and find_referencing_symbols "
    "rather than text search for anything about code; search_for_pattern for text. In a repository of several modules, "
    "name one by project=, or say what it is about in semantic_context."
)


def begin(event: Event, home: Home) -> str:
    """Starts the warm-up and returns at once, with what the model is to know."""
    if event.why != "compact":  # nothing was stopped: only the model's memory was shortened
        warm_up(event.folder or os.getcwd(), home)
    return CONTEXT


def warm_up(folder: str, home: Home) -> None:
    """In a process of its own that nobody waits for; what it has to say stands in its log."""
    subprocess.Popen(
        [sys.executable, "-I", "-m", "serena_central.cli", "warm", "--background", "--project", folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, "SERENA_CENTRAL_HOME": home.folder},
        start_new_session=True,
    )


def end(event: Event, home: Home) -> None:
    """A client behind a proxy, or of the handshake era, is seen to go without this."""
    with contextlib.suppress(Unavailable):
        Memory(home).forget(digest(event.session), time.time())
    if event.session and event.why != "clear":
        body = {"conversation": event.session}
        ask(home, "POST", "/api/conversations/close", deadline=time.monotonic() + GOODBYE_S, body=body)
