"""What edits cost and who asked for them: a real server edits, its answers stand in a client's transcript."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from serena_central.app.build import Application
from serena_central.projects.editing.undo import undo
from tests.support.central import running_parts, session_of
from tests.support.child import run_command
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio

SOURCE = "class Cart:\n    def total(self):\n        return 0\n\n    def count(self):\n        return 0\n"


class Window:
    """A window of Claude Code: calls tools of a server, and writes its transcript."""

    def __init__(self, central: Application, folder: Path, name: str) -> None:
        self.central = central
        self.name = name
        self.file = folder / "user" / ".claude" / "projects" / "p" / f"{name}.jsonl"
        self.calls = 0

    def prompt(self, text: str) -> None:
        said = {"type": "user", "timestamp": _now(), "sessionId": self.name, "message": {"content": text}}
        written(self.file, said)

    async def call(self, tool: str, **given: Any) -> str:
        self.calls += 1
        number = f"toolu_{self.name}_{self.calls}"
        line = claude(f"m{self.calls}", at=_now(), request=f"r-{number}", session=self.name, output=100_000, input=0)
        line["message"]["content"] = [
            {"type": "tool_use", "id": number, "name": f"mcp__serena__{tool}", "input": given},
        ]
        written(self.file, line)
        answer = await self.central.caller.call(session_of(self.central, explicit_id=self.name), tool, given)
        text = "".join(str(block) for block in answer.blocks)
        block = {"type": "tool_result", "tool_use_id": number, "content": [{"type": "text", "text": text}]}
        result = {"type": "user", "timestamp": _now(), "sessionId": self.name, "message": {"content": [block]}}
        written(self.file, result)
        return text


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def test_edits_are_joined_with_the_conversations_that_asked_for_them(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    file, notes = root / "cart.py", root / "notes.txt"
    file.write_text(SOURCE)
    notes.write_text("one\n")
    project = str(root)
    async with running_parts(tmp_path) as central:
        one, other = Window(central, tmp_path, "s-1"), Window(central, tmp_path, "s-2")
        one.prompt("Sum it up.\nPlease.")
        given = {"project": project, "relative_path": "cart.py", "name_path": "Cart/total"}
        body = "def total(self):\n        return sum(self.prices)\n"
        summed = json.loads(await one.call("replace_symbol_body", **given, body=body))["edit"]
        other.prompt("Count them.")
        given = {"project": project, "relative_path": "notes.txt", "mode": "literal"}
        counted = json.loads(await other.call("replace_content", **given, needle="one", repl="two"))["edit"]
        # It lists an edit that another conversation made.
        other.prompt(json.dumps({"edit": summed}))
        undone = (await undo(counted, central.history, central.projects, by="me")).id
        quiet = session_of(central, explicit_id="quiet")
        answer = await central.caller.call(quiet, "replace_content", {**given, "needle": "one", "repl": "three"})
        unseen = json.loads("".join(map(str, answer.blocks)))["edit"]
    shown = await run_command(tmp_path, "usage", "--by", "edit", "--json")
    assert shown.code == 0, shown
    rows = {row["key"]: row for row in shown.json["rows"]}
    assert list(rows) == [unseen, undone, counted, summed]
    assert [(rows[one]["session"], rows[one]["prompt"], rows[one]["undone_by"]) for one in (summed, counted)] == [
        ("s-1", "Sum it up.", ""),
        ("s-2", "Count them.", undone),
    ]
    assert [round(rows[one]["cost"], 4) for one in (summed, counted)] == [1.5, 1.5]
    assert (rows[unseen]["session"], rows[unseen]["unpriced"]) == ("", 1)
    assert ["2 edits" in note for note in shown.json["notes"]] == [True]
    by_symbol = await run_command(tmp_path, "usage", "--by", "symbol", "--json")
    assert [(row["key"], row["calls"], row["failed"]) for row in by_symbol.json["rows"]] == [
        ("(no symbol)  shop/notes.txt", 3, 1),
        ("Cart/total  shop/cart.py", 1, 0),
    ]
    assert "Cart/total" in (await run_command(tmp_path, "usage", "--by", "symbol", "--since", "1d")).out
    assert (await run_command(tmp_path, "usage", "--by", "edit", "--since", "2999-01-01")).out.startswith("No edits")

    blamed = await run_command(tmp_path, "blame", f"{file}:3", "--json")
    assert (blamed.json["key"], blamed.json["prompt"], blamed.json["session_cost"]) == (summed, "Sum it up.", 1.5)
    assert summed in (await run_command(tmp_path, "blame", f"{file}:3")).out
    by_nobody = await run_command(tmp_path, "blame", f"{notes}:1", "--json")
    assert (by_nobody.json["key"], by_nobody.json["session"]) == (unseen, "")
    assert (await run_command(tmp_path, "blame", f"{file}:6")).code == 1
    file.write_text("# by hand\n" + file.read_text())
    assert (await run_command(tmp_path, "blame", f"{file}:4", "--json")).json["key"] == summed
    assert (await run_command(tmp_path, "blame", f"{file}:1")).code == 1
