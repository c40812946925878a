"""`python -m benchmarks [ROW ...] [--json]`: measures, and prints one table. Without names: everything."""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.beside import indexing_beside, indexing_giant_beside
from benchmarks.certainty import assuring
from benchmarks.compare import comparing
from benchmarks.dashboard import viewing
from benchmarks.edits import guarding, replacing
from benchmarks.faults import faulting
from benchmarks.files_executed import files_executed
from benchmarks.gates import gating
from benchmarks.giant import growing_giant
from benchmarks.giant_sources import GIANTS
from benchmarks.giants import comparing_giants
from benchmarks.graph import graphing
from benchmarks.hooks import hooking
from benchmarks.hot_file import crowding_a_file
from benchmarks.idle import resting
from benchmarks.languages import languages
from benchmarks.large_answers import answering_at_length
from benchmarks.latency import editing, finding, protocol, references, renaming, searching
from benchmarks.load import crowding, idling, weighing
from benchmarks.modules import modules
from benchmarks.pages import showing
from benchmarks.proxies import proxying
from benchmarks.recall import recalling
from benchmarks.scaling import crowded, grown
from benchmarks.settings import reading_settings
from benchmarks.starting import starting
from benchmarks.table import Row, as_json, as_markdown
from benchmarks.tasks import running_tasks
from benchmarks.upstreams import joining
from benchmarks.usage import using


def clustering(bench: Bench) -> Iterator[Row]:
    """Imported when it is asked for: it needs Ray."""
    from benchmarks.clusters import clustering as rows

    yield from rows(bench)


ROWS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "start": starting,
    "protocol": protocol,
    "proxy": proxying,
    "hook": hooking,
    "hub": joining,
    "gates": gating,
    "tasks": running_tasks,
    "settings": reading_settings,
    "find": finding,
    "search": searching,
    "references": references,
    "rename": renaming,
    "edit": editing,
    "languages": languages,
    "modules": modules,
    "large": answering_at_length,
    "replace": replacing,
    "hot": crowding_a_file,
    "guard": guarding,
    "crowd": crowding,
    "memory": weighing,
    "beside": indexing_beside,
    "beside-giant": indexing_giant_beside,
    "resting": resting,
    "idle": idling,
    "dashboard": viewing,
    "pages": showing,
    "graph": graphing,
    "sessions": crowded,
    "files": grown,
    "files-executed": files_executed,
    "giant": growing_giant,
    "recall": recalling,
    "certainty": assuring,
    "faults": faulting,
    "usage": using,
    "cluster": clustering,
    "compare": comparing,
}
"""Selectable on the command line; run in this order."""

ONLY_BY_NAME = {
    "beside-giant",
    "cluster",
    "compare",
    "pages",
    "usage",
    "giant",
    "recall",
    "certainty",
    "faults",
    "giants",
}
"""These take minutes, and giants some GB of disk."""


README = (
    *("start", "protocol", "find", "search", "references", "rename", "replace", "guard", "edit"),
    *("crowd", "memory", "idle", "beside", "resting"),
)
"""The rows of the table in README.md; `readme` selects them all."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(["readme", *ROWS, "giants", *GIANTS]))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args()
    selected = [name for name in asked.rows if name in GIANTS]
    rows_of = {**ROWS, "giants": comparing_giants(selected)}
    if "readme" in asked.rows:
        asked.rows = [*asked.rows, *README]
        asked.rows.remove("readme")
    unknown = set(asked.rows) - set(rows_of) - set(GIANTS)
    if unknown:
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}; there are {', '.join([*rows_of, *GIANTS])}")
    measured: list[Row] = []
    failed: list[str] = []
    with Bench() as bench:
        for name, rows in rows_of.items():
            if name in asked.rows or (not asked.rows and name not in ONLY_BY_NAME):
                print(f"{name} …", file=sys.stderr, flush=True)
                try:
                    measured += rows(bench)
                except Exception as error:  # noqa: BLE001 (the rows that were measured are worth having)
                    failed.append(f"{name}: {type(error).__name__}: {error}")
    print(as_json(measured) if asked.json else as_markdown(measured))
    processors = f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the end"
    where = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {processors}"
    print(f"\n{where}", file=sys.stderr if asked.json else sys.stdout)
    if failed:
        sys.exit("not measured: " + "; ".join(failed))


if __name__ == "__main__":
    main()
