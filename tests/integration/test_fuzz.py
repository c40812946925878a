"""No arguments, however odd, make a tool fail in a way that is not told in words."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from serena_central.core.errors import SerenaCentralError
from serena_central.tools.catalogue import CATALOGUE
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

ROUNDS = 100
"""Calls of each tool: the whole takes some seconds."""

ODD: list[Any] = [
    None, True, -1, 0, 10**30, 0.5, float("nan"), "", " ", ".", "..", "/", "~", "*", "shop.py", "Shop/sell", "Shop[0]",
    "(", "(.*)*$", "\x00", "\ud800", "\u202e", "x" * 5000, "é🙂", [], ["", 3], ["*"], {}, {"a": [{}]}, "name[99]",
    "../../etc/passwd", "/dev/zero", "no such file", "bin.dat", "[", "{a,b", "**/*", "class", "Shop", "folder", "pipe",
]  # fmt: skip


def arguments(chance: random.Random, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Mostly known names with any value, now and then none, now and then a name that nobody knows."""
    chosen = {name: chance.choice(ODD) for name in properties if chance.random() < 0.7}
    if chance.random() < 0.1:
        chosen[chance.choice(["nobody", "", "project "])] = chance.choice(ODD)
    return chosen


@pytest.mark.parametrize("name", CATALOGUE.names())
async def test_odd_arguments_are_answered_or_refused_in_words(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "shop"
    (root / "folder").mkdir(parents=True)
    (root / "shop.py").write_text("class Shop:\n    def sell(self): ...\n    def sell(self, price): ...\n")
    (root / "bin.dat").write_bytes(b"\0\1\2")
    chance = random.Random(name)  # the same calls each time
    tool = CATALOGUE.get(name)
    assert tool is not None
    async with running_parts(tmp_path, {"tool_timeout_s": 10}) as central:
        session = session_of(central, working_folder=str(root))
        (root / ".git").mkdir()
        for _ in range(ROUNDS):
            given = arguments(chance, tool.schema["properties"])
            if tool.on_project and chance.random() < 0.8:
                given["project"] = str(root)
            try:
                answer = await central.caller.call(session, name, given)
            except SerenaCentralError as error:
                said = str(error)
            else:
                said = "\n".join(answer.blocks)
            assert said.encode("utf-8", "replace"), given
        assert await central.caller.call(session, "list_dir", {"project": str(root), "relative_path": "."})
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
