from pathlib import Path

import pytest

from serena_central.projects.navigation.common_names import BehindHolder, as_argument, behind_import, is_unusual
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("name", "expected"),
    [("order", False), ("Order", False), ("run", False), ("a_b", False)]
    + [(name, True) for name in ("orderLine", "OrderLine", "order_line", "Order2", "Order_Line", "ORDER", "_Order")],
)
def test_a_name_that_is_no_everyday_word_is_unusual(name: str, expected: bool) -> None:
    assert is_unusual(name) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [('x.getMethod("run")', True), ("getattr(x, 'run')", True), ('  "run",', True), ('x("run", String.class)', True)]
    + [(line, False) for line in ('say("run it")', '{"run": 1}', 'x["run"]', 'name = "run"', "x(\"run')")],
)
def test_a_name_alone_in_a_string_that_a_call_takes_is_an_argument(line: str, expected: bool) -> None:
    assert (as_argument("run").search(line) is not None) is expected


async def test_a_line_of_prose_with_a_thousand_words_that_begin_imports_does_not_take_long(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/shop.py").write_text("def load() -> None: ...\n")
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(tmp_path / "root")
        imports = behind_import(await project.find_one("load", "shop.py"))
    prose = "it came from a friend " * 100_000
    assert not imports(prose)
    assert imports(f"{prose}\nimport shop as s; s.load()")
    assert not imports(f"{prose}\nimport shopping as s; s.load()")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(text, True) for text in ("shop.load", "my/shop:load()", "Cart . load", "{% if a.load %}", "CALL ·load(SB)")]
    + [("from my.shop import (\n    one,\n    load,\n)", True), ("shop" + " " * 40 + ".load", True)]
    + [
        (text, False)
        for text in ("a load of shop", "workshop.load", "shop.loads", "import shop, load", "a.load }}", "")
    ],
)
async def test_a_name_stands_behind_its_holder(tmp_path: Path, text: str, *, expected: bool) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/shop.py").write_text("class Cart:\n    def load(self): ...\n")
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(tmp_path / "root")
        behind = BehindHolder(await project.find_one("Cart/load", "shop.py"))
    assert behind.stands_in(text) is expected
    assert [f"x {text} "[:end].endswith("load") for end in behind.ends(f"x {text} ")] == [True] * expected
