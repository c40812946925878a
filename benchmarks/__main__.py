"""`python -m benchmarks [ROW ...] [--json]`: measures, and prints one table. Without names: everything."""

import argparse
import platform
import sys
from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.bridges import bridging
from benchmarks.certainty import assuring
from benchmarks.dashboard import viewing
from benchmarks.edits import guarding, replacing
from benchmarks.faults import faulting
from benchmarks.giant import growing_giant
from benchmarks.graph import graphing
from benchmarks.hooks import hooking
from benchmarks.languages import languages
from benchmarks.latency import editing, finding, protocol, references, renaming, searching
from benchmarks.load import crowding, idling, weighing
from benchmarks.modules import modules
from benchmarks.recall import recalling
from benchmarks.scaling import crowded, grown
from benchmarks.starting import starting
from benchmarks.table import Row, as_json, as_markdown

ROWS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "start": starting,
    "protocol": protocol,
    "bridge": bridging,
    "hook": hooking,
    "find": finding,
    "search": searching,
    "references": references,
    "rename": renaming,
    "edit": editing,
    "languages": languages,
    "modules": modules,
    "replace": replacing,
    "guard": guarding,
    "crowd": crowding,
    "memory": weighing,
    "idle": idling,
    "dashboard": viewing,
    "graph": graphing,
    "sessions": crowded,
    "files": grown,
    "giant": growing_giant,
    "recall": recalling,
    "certainty": assuring,
    "faults": faulting,
}
"""Selectable on the command line; run in this order."""

ONLY_BY_NAME = {"giant", "recall", "certainty", "faults"}
"""These take minutes, and the first one 2 GB of disk."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args()
    unknown = set(asked.rows) - set(ROWS)
    if unknown:
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    measured: list[Row] = []
    with Bench() as bench:
        for name, rows in ROWS.items():
            if name in asked.rows or (not asked.rows and name not in ONLY_BY_NAME):
                print(f"{name} …", file=sys.stderr, flush=True)
                measured += rows(bench)
    print(as_json(measured) if asked.json else as_markdown(measured))
    print(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}", file=sys.stderr)


if __name__ == "__main__":
    main()
