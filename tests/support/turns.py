"""`serena-central` that refuses to import some libraries out of turn (`core/late_imports.py`)."""

import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from serena_central.cli.main import main
from serena_central.core import late_imports

LIBRARIES = ("mcp", "mcp_types", "opentelemetry", "pydantic", "sqlalchemy")
"""Those whose modules import each other."""


class TurnsOnly(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in LIBRARIES and not late_imports._turn._is_owned():  # type: ignore[attr-defined]
            raise AssertionError(f"{fullname} is imported out of turn in {threading.current_thread().name}")
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, TurnsOnly())
    main()
