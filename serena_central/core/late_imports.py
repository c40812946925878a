"""Imports of large libraries in a server that answers already.

Where modules of a library import each other, two threads that import it at once may each be given half of a module, and
fail. So what is imported late, in threads, is imported here: one thread at a time.
"""

import gc
import logging
import sys
import threading
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from serena_central.core.allocator import give_back

logger = logging.getLogger(__name__)

RETRY_S = 1.0

_turn = threading.RLock()

_running: set[str] = set()
"""Packages whose own code runs now."""


class _LatePackage(ModuleType):
    """A package whose own code has not run yet."""

    def __getattr__(self, name: str) -> Any:
        """Asked for names that the package does not have: its code, which may bring it, runs now."""
        if name.startswith("__") and name != "__all__":  # what Python itself looks for
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        with _turn:
            if isinstance(self, _LatePackage) and self.__name__ not in _running:
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                _running.add(self.__name__)
                try:
                    self.__spec__.loader.exec_module(self)
                    self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]
                finally:
                    _running.discard(self.__name__)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def import_modules_alone(*packages: str) -> None:
    """From now on modules of these packages are imported without the packages' own code, which would import all others:
    it runs when somebody asks a package itself for a name. Nothing happens to packages that were imported before.

    Whatever imports from such a package itself, as its other modules may, is to be imported by `import_to_stay`: of two
    threads that each wait for what the other one imports, none goes on.
    """
    with _turn:
        for name in packages:
            if name in sys.modules:
                continue
            spec = find_spec(name)
            if spec is None or spec.loader is None:
                raise ImportError(name=name)
            package = sys.modules[name] = module_from_spec(spec)
            package.__class__ = _LatePackage
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, package)


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


async def import_patiently(name: str, *, alone: Sequence[str] = ()) -> ModuleType:
    """Imports a module that the server can't do without, in a thread, as plain requests are answered meanwhile; again
    and again while files can't be opened. `alone`: packages as of `import_modules_alone`."""
    import anyio.to_thread  # the command line, which also imports late, has no use for it

    def work() -> ModuleType:
        import_modules_alone(*alone)
        return import_to_stay(name)

    while True:
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except (ImportError, OSError) as error:
            logger.warning("%s could not be imported: %s; retrying in %g s", name, error, RETRY_S)
        await anyio.sleep(RETRY_S)
        invalidate_caches()
