"""What the test kit builds, beside what the server answers: the same, to the letter."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from serena_central.testing import found, grouped, nothing_found, onboarding_done, onboarding_missing, symbol
from serena_central.tools.answer import Answer
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

TOTAL = "    def total(self) -> int:\n        return 0"
SOURCE = f"class Cart:\n    size = 1\n\n{TOTAL}\n"


NO_TILL = (
    "No symbol matches 'Till'. substring_matching=true also finds names that contain it. search_for_pattern finds text."
)


async def test_answers_are_built_as_the_server_makes_them(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text(SOURCE)
    total = symbol("Cart/total", "Method", "cart.py", lines=(3, 4), column=4)
    with_body = symbol("Cart/total", "Method", "cart.py", lines=(3, 4), column=4, body=TOTAL.lstrip())
    size = symbol("Cart/size", "Field", "cart.py", lines=(1, 1), column=4)
    cart = symbol("Cart", "Class", "cart.py", lines=(0, 4), children=[size, total])
    expected: list[tuple[str, Mapping[str, Any], Answer | None]] = [
        ("find_symbol", {"name_path_pattern": "total"}, found(total)),
        ("find_symbol", {"name_path_pattern": "Cart/total", "include_body": True}, found(with_body)),
        ("find_symbol", {"name_path_pattern": "Cart", "depth": 1}, found(cart)),
        ("find_symbol", {"name_path_pattern": "Till"}, nothing_found(notes=[NO_TILL])),
        ("find_symbol", {"name_path_pattern": "total", "project": "*"}, grouped({"shop": found(total)})),
        ("check_onboarding_performed", {}, onboarding_missing()),
        ("write_memory", {"memory_name": "style", "content": "plain"}, None),
        ("check_onboarding_performed", {}, onboarding_done("style")),
    ]
    async with running_parts(tmp_path) as central:
        session = session_of(central)
        answers = [
            await central.caller.call(session, tool, {"project": str(root), **arguments})
            for tool, arguments, _ in expected
        ]
    for (tool, arguments, built), answer in zip(expected, answers, strict=True):
        assert built in (None, answer), (tool, arguments)
