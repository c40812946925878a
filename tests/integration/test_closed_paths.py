"""What a rule closes is not quoted by others either: not by a language server's prose, nor by what was kept before."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from tests.support.browser import visiting
from tests.support.central import RunningCentral, running_central, session_of

pytestmark = pytest.mark.anyio

FILES = {
    "app/__init__.py": "",
    "app/hidden.py": (
        "from typing import Final\n\nTOKEN: Final = 'canary-4711'\n\n\n"
        'class Base:\n    def pay(self, canary_amount: int) -> int:\n        """A canary song."""\n        return 1\n'
    ),
    "app/shop.py": (
        "from app.hidden import TOKEN, Base\n\n\nclass Till(Base):\n    def pay(self, other: int) -> int:\n"
        "        return 2\n\n\nprice: int = TOKEN\nkept = TOKEN\n"
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
async def running(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path) as running:
        yield running


def close(root: Path) -> None:
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text(json.dumps({"permissions": {"deny": ["Read(app/hidden.py)"]}}))


async def call(running: RunningCentral, root: Path, tool: str, **arguments: Any) -> str:
    central = running.central
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    return "\n".join(answer.blocks)


async def told(running: RunningCentral, root: Path) -> dict[str, str]:
    """What a language server says about the open file."""
    path = "app/shop.py"
    return {
        "diagnostics": await call(running, root, "get_diagnostics_for_file", relative_path=path),
        "context": await call(running, root, "get_symbol_context", relative_path=path, name_path="kept"),
        "edit": await call(
            running, root, "insert_after_symbol", relative_path=path, name_path="kept", body="more: int = TOKEN\n"
        ),
    }


async def test_a_language_server_quotes_no_closed_file(running: RunningCentral, root: Path) -> None:
    before = await told(running, root)
    assert all("canary" in said for said in before.values()), before
    close(root)
    (root / "app/shop.py").write_text(FILES["app/shop.py"])
    after = await told(running, root)
    assert [where for where, said in after.items() if "canary" in said or "4711" in said] == []
    # What the open file holds, and what is the message's own, is still said.
    assert "is not assignable to `int`" in after["diagnostics"]
    assert "`Base.pay`" in after["diagnostics"]


async def test_what_was_kept_before_a_rule_is_not_shown_after_it(running: RunningCentral, root: Path) -> None:
    change: dict[str, Any] = {"relative_path": "app/hidden.py", "needle": "return 1", "repl": "return 3"}
    made = await call(running, root, "replace_content", **change, mode="literal")
    edit = json.loads(made)["edit"]
    job = running.central.analysis_runs.start(root, "graph")
    with anyio.fail_after(60):
        while not job.done:
            await anyio.sleep(0.02)
    pages = [f"/edits/{edit}", f"/projects/one/graph?root={quote(str(root))}"]
    async with visiting(running) as visitor, running.http() as http:
        before = [await visitor.see(page) for page in pages]
        assert all("hidden.py" in page for page in before)
        close(root)
        after = [await visitor.see(page) for page in pages]
        after.append((await http.get("/api/v1/edits")).text)
    after.append(await call(running, root, "summarize_changes"))
    assert not [text for text in after if "hidden.py" in text or "return 3" in text]
    assert "closed by permission rules" in after[0]
