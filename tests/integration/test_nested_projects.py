"""Two projects, one inside the other: what sessions know of a file, and who changed it, is the same in both."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import EditConflict
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

PAY = "def pay():\n    return 1\n"


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "main.py").write_text("x = 1\n")
    (inner / "cart.py").write_text(PAY)
    return tmp_path / "outer"


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as running:
        yield running


async def call(central: Application, who: str, tool: str, root: Path, **arguments: Any) -> str:
    path = "cart.py" if root.name == "inner" else "inner/cart.py"
    session = session_of(central, explicit_id=who)
    answer = await central.caller.call(session, tool, {"project": str(root), "relative_path": path} | arguments)
    return answer.blocks[0]


async def look(central: Application, who: str, root: Path) -> None:
    assert "def pay" in await call(central, who, "find_symbol", root, name_path="pay", include_body=True)


async def replace(central: Application, who: str, root: Path, value: int) -> None:
    body = f"def pay():\n    return {value}"
    await call(central, who, "replace_symbol_body", root, name_path="pay", body=body)


async def test_a_conflict_names_the_session_that_edited_through_the_other_project(
    outer: Path, central: Application
) -> None:
    await look(central, "a", outer)
    await replace(central, "b", outer / "inner", 2)
    other = session_of(central, explicit_id="b").id
    with pytest.raises(EditConflict, match=f"session {other}"):
        await replace(central, "a", outer, 3)
    assert (outer / "inner" / "cart.py").read_text() == PAY.replace("1", "2")


async def test_a_session_knows_what_it_wrote_itself_through_the_other_project(
    outer: Path, central: Application
) -> None:
    for root in (outer, outer / "inner"):
        await look(central, "a", root)
    await replace(central, "a", outer / "inner", 2)
    await replace(central, "a", outer, 3)
    assert (outer / "inner" / "cart.py").read_text() == PAY.replace("1", "3")


async def test_what_a_session_saw_through_one_project_protects_the_file_in_the_other(
    outer: Path, central: Application
) -> None:
    await look(central, "a", outer)
    await replace(central, "b", outer, 2)
    with pytest.raises(EditConflict):
        await replace(central, "a", outer / "inner", 3)
    assert (outer / "inner" / "cart.py").read_text() == PAY.replace("1", "2")
