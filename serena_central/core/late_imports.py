"""Imports of large libraries in a server that answers already."""

import gc
from importlib import import_module
from types import ModuleType


def import_to_stay(name: str) -> ModuleType:
    """Imports a module, in a worker thread. Of what comes with it nothing is garbage, so the garbage collector leaves
    it alone: a full collection with SQLAlchemy and the MCP SDK blocks all calls for 0.1 s."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        module = import_module(name)
        gc.freeze()
        return module
    finally:
        if was_enabled:
            gc.enable()
