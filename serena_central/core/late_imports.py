"""Imports of large libraries in a server that answers already.

Where modules of a library import each other, two threads that import it at once may each be given half of a module, and
fail. So what is imported late, in threads, is imported here: one thread at a time.
"""

import gc
import logging
import threading
from importlib import import_module, invalidate_caches
from types import ModuleType

from serena_central.core.allocator import give_back

logger = logging.getLogger(__name__)

RETRY_S = 1.0

_turn = threading.RLock()


def import_to_stay(name: str) -> ModuleType:
    """Imports a module, in a worker thread; waits while another thread imports one. Of what comes with it nothing is
    garbage, so the garbage collector leaves it alone: a full collection with SQLAlchemy and the MCP SDK blocks all
    calls for 0.1 s. What the import took and freed goes back to the system.

    Raises:
        ImportError: so does OSError where no more files can be opened.
    """
    with _turn:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            module = import_module(name)
            gc.freeze()
            give_back()
            return module
        finally:
            if was_enabled:
                gc.enable()


async def import_patiently(name: str) -> ModuleType:
    """Imports a module that the server can't do without, in a thread, as plain requests are answered meanwhile; again
    and again while files can't be opened."""
    import anyio.to_thread  # the command line, which also imports late, has no use for it

    while True:
        try:
            return await anyio.to_thread.run_sync(import_to_stay, name, abandon_on_cancel=True)
        except (ImportError, OSError) as error:
            logger.warning("%s could not be imported: %s; retrying in %g s", name, error, RETRY_S)
        await anyio.sleep(RETRY_S)
        invalidate_caches()
