"""The four waves of docs/refactoring.md, through the tools: a rename across two modules of a super-repo."""

import json
import re
from pathlib import Path
from typing import Any

from tests.support.central import running_central
from tests.support.mcp import RawClient
from tests.support.superrepo import platform

BOTH = ["scoring", "scan"]


async def ask(client: RawClient, tool: str, **arguments: Any) -> Any:
    result = await client.call(tool, **arguments)
    assert not result["isError"], result
    return json.loads(result["content"][0]["text"])


REPORT = """\
# Refactoring report

3 edits by raw, session …, from  … to  ….

## Changes, in dependency order

| step | file | symbols | edits | lines |
| --- | --- | --- | --- | --- |
| 1 | `modules/scoring/scoring/risk.py` | `score`, `TWICE` | 1 | +2 −2 |
| 2 | `modules/scan/scan/jobs.py` | `<file>`, `run` | 2 | +2 −2 |

No file depends on a file of a later step. Files of one step are independent of each other or form a cycle.

## Broken references

| project | before | now | new |
| --- | --- | --- | --- |
| scoring | 0 | 0 | 0 |
| scan | 0 | 0 | 0 |

## Unused symbols

| project | before | now | new |
| --- | --- | --- | --- |
| scoring | 0 | 0 | 0 |
| scan | 2 | 2 | 0 |

## Outcome

No new broken references and no new unused symbols.
"""
"""Without the session and the times."""


async def report(client: RawClient) -> str:
    result = await client.call("refactoring_report")
    assert not result["isError"], result
    return result["content"][0]["text"]


async def findings(client: RawClient) -> dict[str, tuple[list[str], list[str]]]:
    """Module → broken references and unused symbols."""
    broken = await ask(client, "check_references", project=BOTH)
    unused = await ask(client, "find_unused_symbols", project=BOTH)
    return {
        module: (
            [f"{one['path']}:{one['line']} {one['what']}" for one in broken[module]["broken"]],
            [one["name_path"] for one in unused[module]["unused"]],
        )
        for module in BOTH
    }


async def test_a_rename_in_waves_ends_without_a_broken_reference_or_a_new_unused_symbol(tmp_path: Path) -> None:
    root = platform(tmp_path)
    jobs = "modules/scan/scan/jobs.py"
    async with running_central(tmp_path) as central, central.raw("handshake", x_serena_project=str(root)) as client:
        # Discovery: what there is, and who uses it.
        before = await findings(client)
        assert before == {"scoring": ([], []), "scan": ([], ["run", "Job"])}
        graph = await ask(client, "dependency_graph", project="scoring", granularity="symbol", format="json")
        assert [(edge["source"], edge["target"]) for edge in graph["drawn"]["edges"]] == [
            ("scoring/risk.py:TWICE", "scoring/risk.py:py_total")
        ]
        uses = await ask(client, "find_referencing_symbols", name_path="py_total", project=BOTH)

        # Analysis: which modules have to change, the one that declares it first.
        assert [module for module in BOTH if uses[module]] == ["scoring", "scan"]
        assert list(uses["scan"]) == ["scan/jobs.py"]

        # Change: the declaration with its own module, then each module that uses it.
        declared = {"name_path": "py_total", "relative_path": "modules/scoring/scoring/risk.py"}
        refused = await client.call("rename_symbol", **declared, new_name="score")
        assert refused["isError"]
        assert (
            "Other modules of the super-repo reference it: scan ('scan': scan/jobs.py:0, scan/jobs.py:4)."
            in refused["content"][0]["text"]
        )
        await ask(client, "rename_symbol", **declared, new_name="score", force=True)
        halfway = await findings(client)
        assert halfway["scan"][0] == ["scan/jobs.py:0 unresolved import"]
        unfinished = await report(client)
        assert "| scan | 0 | 1 | 1 |\n\n- scan: scan/jobs.py: unresolved import: " in unfinished
        assert "Not finished: 1 new broken reference, 0 new unused symbols." in unfinished
        for line in ("import {}", "    return {}()"):
            old, new = line.format("py_total"), line.format("score")
            await ask(client, "replace_content", relative_path=jobs, needle=old, repl=new, mode="literal")

        # Validation: nothing is broken, and nothing unused that was not before.
        assert await findings(client) == before
        told = await report(client)
        assert re.sub(r" [cs]-\w+|20\S+Z", " …", told) == REPORT
    text = (root / jobs).read_text()
    assert "from scoring.risk import score\n" in text
    assert "def py_total(self) -> int:" in text


async def test_files_of_a_project_alone_are_reported_by_their_paths_in_it(tmp_path: Path) -> None:
    files = {"shop": "cart.py", "till": "coins.py"}
    for name, file in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("A = 1\n")
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        named: list[list[str]] = []
        for name, file in files.items():
            changed = {"project": str(tmp_path / name), "relative_path": file}
            await ask(client, "replace_content", **changed, needle="1", repl="2", mode="literal")
            named.append(re.findall(r"^\| \d+ \| `(.*?)`", await report(client), re.MULTILINE))
    assert named == [["cart.py"], [f"{tmp_path}/shop/cart.py", f"{tmp_path}/till/coins.py"]]
