"""Row about a super-repo: what it costs to go from module to module, against staying in one, in the same run."""

import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.django import BUILD
from benchmarks.table import Row, row, timed

MODULES = 5
FILES = 50
CALLS = 100
ROUNDS = 5


def modules(bench: Bench) -> Iterator[Row]:
    root = _write(BUILD / "generated" / "super-repo")
    server = Server(bench.fresh_home("modules"))
    client = server.client()
    try:
        client.call("activate_project", project=str(root))
        client.call("find_symbol", name_path_pattern="Part7", project="*")
        server.await_index()
        yield _switching(client, "find_symbol", {"name_path_pattern": "Part7/method_3", "include_body": True})
        yield _switching(client, "find_referencing_symbols", {"name_path": "shared", "relative_path": "base.py"})
    finally:
        client.close()
        server.stop()


def _switching(client: Client, tool: str, arguments: dict[str, str | bool]) -> Row:
    """Rounds of calls over all modules and rounds on one, in turn, so that both meet the same load."""
    requests = [client.prepare(tool, project=f"part-{number}", **arguments) for number in range(MODULES)]
    everywhere, one = cycle(requests), requests[0]
    taken: list[float] = []
    bases: list[float] = []
    for _ in range(ROUNDS):
        bases += timed(lambda: client.send(one), CALLS, warm_up=MODULES)
        taken += timed(lambda: client.send(next(everywhere)), CALLS, warm_up=MODULES)
    base = median(bases)
    name = f"{tool}, in turn over {MODULES} modules"
    return row(name, "≤ 1.2 ×", taken, peer="one module", base=base, note=f"one module {base:.2f} ms")


def _write(root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    listed = "".join(f"  part-{number}: {{path: modules/part-{number}}}\n" for number in range(MODULES))
    files = {".serena/project.yml": f"type: super-repo\ndefault_module: part-0\nmodules:\n{listed}"}
    for number in range(MODULES):
        folder = f"modules/part-{number}"
        files[f"{folder}/pyproject.toml"] = f'[project]\nname = "part-{number}"\nversion = "1"\n'
        files[f"{folder}/base.py"] = "def shared(value: int) -> int:\n    return value\n"
        for n in range(FILES):
            methods = "".join(
                f"    def method_{m}(self, value: int) -> int:\n        return shared(value + {m})\n\n"
                for m in range(4)
            )
            files[f"{folder}/part_{n}.py"] = f"from base import shared\n\n\nclass Part{n}:\n{methods}"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
