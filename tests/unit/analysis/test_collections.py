"""What is kept for an open project ends with it."""

import gc
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, cast

from serena_central.analysis.collector import Collections

if TYPE_CHECKING:
    from serena_central.projects.project import Project


class Closed:
    """A project that nobody holds any more when it was closed."""

    def __init__(self, root: Path) -> None:
        self.root = root


def test_a_closed_project_is_not_kept_for_its_collector(tmp_path: Path) -> None:
    collections, closed = Collections(tmp_path), Closed(tmp_path)
    collector = collections.of(cast("Project", closed))
    assert collections.of(cast("Project", closed)) is collector
    gone = weakref.ref(closed)
    del closed
    gc.collect()
    assert gone() is None
