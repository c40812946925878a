"""Rows about findings that gates act on: on five real packages as they were published, nothing that is certain is
wrong, nothing that is surely unused is used, and what is planted as unused is found.

A certain broken reference in Python is proved by running its statement: some packages hold broken code on purpose. What
is surely unused is deleted by the tool, all of it at once, before the package's own suite runs, or its modules are
imported where the published package brings no suite. What is planted is taken out again.
"""

import ast
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bench import Bench, Server
from benchmarks.client import Refused
from benchmarks.faults import SEED, SETTINGS, Subject
from benchmarks.languages import SERVERS
from benchmarks.packages import PACKAGES, git
from benchmarks.table import Row

PLANTED = 8
"""In each package: three functions, three methods and two types."""

_HEADS = {"py": r"^class (\w+):$", "go": r"^type (\w+) struct \{$", "ts": r"^export class (\w+) \{$"}
"""Types without a base; a method that is planted stands at their beginning, in Go at the end of the file."""

_FUNCTION = {
    "py": "\n\ndef {}(value):\n    return value\n",
    "go": "\nfunc {}(value int) int {{\n\treturn value\n}}\n",
    "ts": "\nfunction {}(value: number): number {{\n  return value;\n}}\n",
}
_TYPES = {
    "py": "\n\nclass {}:\n    value = 1\n",
    "go": "\ntype {} struct {{\n\tvalue int\n}}\n",
    "ts": "\nclass {} {{\n  value = 1;\n}}\n",
}
_METHOD = {
    "py": "    def {}(self):\n        return self\n\n",
    "go": "\nfunc (it *{holder}) {}() int {{\n\treturn 1\n}}\n",
    "ts": "  {}(): number {{\n    return 1;\n  }}\n",
}


class Planted(NamedTuple):
    path: str
    name: str


def assuring(bench: Bench) -> Iterator[Row]:
    home = bench.fresh_home("certainty")
    (home / "servers").symlink_to(SERVERS)
    server = Server(home, **SETTINGS)
    try:
        for package in PACKAGES.values():
            subject = Subject(server, package)
            yield _certain(subject)
            yield _deleted(subject)
            yield _found(subject)
    finally:
        server.stop()


def _certain(subject: Subject) -> Row:
    answer = json.loads(subject.call("check_references", possible=True, max_answer_chars=5_000_000)[0])
    certain = [one for one in answer["broken"] if one["certainty"] == "certain"]
    wrong = [one for one in certain if not _is_broken(subject.root, one)]
    for one in wrong:
        print(f"  {one['path']}:{one['line']}: {one['message']}", file=sys.stderr, flush=True)
    possible = len(answer["broken"]) - len(certain)
    note = f"{len(certain)} certain, {len(certain) - len(wrong)} proved real; {possible} possible"
    return Row(f"{subject.package.title}: certain broken references that are none", "0", len(wrong), unit="", note=note)


def _is_broken(root: Path, one: dict[str, Any]) -> bool:
    """Whether the statement at a place fails when it runs in its module's place."""
    if not one["path"].endswith(".py"):
        return False
    source = (root / one["path"]).read_text(encoding="utf-8")
    lines = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom))
    statement = next((node for node in lines if node.lineno <= one["line"] + 1 <= (node.end_lineno or 0)), None)
    if statement is None:
        return False
    package = ".".join(Path(one["path"]).parent.parts)
    run = f"__package__ = {package!r}\nimport importlib\nimportlib.import_module(__package__)\n{ast.unparse(statement)}"
    python = root / ".venv/bin/python"
    command = [str(python) if python.exists() else sys.executable, "-c", run]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr


def _deleted(subject: Subject) -> Row:
    found = [one for one in _unused(subject) if one["confidence"] == "high"]
    refused: list[str] = []
    for one in sorted(found, key=lambda one: (one["relative_path"], -one["line"])):
        subject.begin()
        try:
            subject.call("safe_delete_symbol", name_path=one["name_path"], relative_path=one["relative_path"])
        except Refused as error:
            refused.append(one["name_path"])
            print(f"  {one['relative_path']}: {str(error)[:200]}", file=sys.stderr, flush=True)
    broken = sorted(subject.new_failures())
    print(f"  {[one['name_path'] for one in found]} {broken}", file=sys.stderr, flush=True)
    git(subject.root, "checkout", "--quiet", ".")
    note = f"{len(found)} surely unused, {len(found) - len(refused)} deleted, {len(refused)} refused"
    title = subject.package.title
    return Row(f"{title}: failures after what is surely unused is deleted", "0", len(broken), unit="", note=note)


def _found(subject: Subject) -> Row:
    planted = _plant(subject)
    try:
        told = {(one["relative_path"], one["name_path"].rpartition("/")[2]) for one in _unused(subject)}
    finally:
        git(subject.root, "checkout", "--quiet", ".")
    missed = [one for one in planted if one not in told]
    print(f"  missed: {missed}", file=sys.stderr, flush=True)
    title = f"{subject.package.title}: planted unused symbols that are found"
    return Row(title, str(len(planted)), len(planted) - len(missed), unit="")


def _unused(subject: Subject) -> list[dict[str, Any]]:
    """All of them: a call that ends before it has looked at every symbol is made again, and goes on."""
    subject.begin()
    where = {"relative_path": subject.package.code} if subject.package.code else {}
    while True:
        answer = json.loads(subject.call("find_unused_symbols", max_answer_chars=5_000_000, **where)[0])
        if not answer.get("not_examined"):
            return answer["unused"]


def _plant(subject: Subject) -> list[Planted]:
    """Functions and types at the ends of files, methods in types, all named like nothing else."""
    draw = random.Random(SEED)
    files = sorted({one.path for one in subject.symbols()})
    kind = files[0].rpartition(".")[2]
    texts = {path: (subject.root / path).read_text(encoding="utf-8") for path in files}
    holders = [path for path in files if re.search(_HEADS[kind], texts[path], re.MULTILINE)]
    planted: list[Planted] = []
    for number in range(PLANTED):
        method = number % 8 in (1, 4, 7)
        path = draw.choice(holders if method else files)
        name = f"laid_aside_{number}"
        text = texts[path]
        if method:
            texts[path] = _with_method(text, kind, name)
        else:
            texts[path] = text + (_TYPES if number % 8 in (2, 5) else _FUNCTION)[kind].format(name)
        (subject.root / path).write_text(texts[path], encoding="utf-8")
        planted.append(Planted(path, name))
    return planted


def _with_method(text: str, kind: str, name: str) -> str:
    match = re.search(_HEADS[kind], text, re.MULTILINE)
    assert match is not None
    method = _METHOD[kind].format(name, holder=match[1])
    return text + method if kind == "go" else f"{text[: match.end() + 1]}{method}{text[match.end() + 1 :]}"
