"""References that come in pages: one question to the language server for all, until something changes."""

import json
import re
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import pytest

from serena_central.files.text import FileText
from serena_central.projects.navigation.consistency import TRIES
from serena_central.projects.navigation.project_places import ProjectPlaces
from serena_central.projects.navigation.symbol_references import SymbolReferences
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

USES = 12


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncGenerator[Asker]:
    root = tmp_path / "pages"
    root.mkdir()
    (root / "shop.py").write_text("def price():\n    return 1\n")
    uses = "".join(f"def use{number:02}():\n    return price()\n" for number in range(USES))
    (root / "uses.py").write_text(f"from shop import price\n{uses}")
    async with asker(tmp_path, root) as made:
        yield made


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Symbols that the language server was asked about."""
    found: list[str] = []
    references = SymbolReferences.of

    async def counting(self: SymbolReferences, hit: Any, within: str = "") -> Any:
        found.append(hit.name_path)
        return await references(self, hit, within)

    monkeypatch.setattr(SymbolReferences, "of", counting)
    return found


async def page(asked: Asker, *, once: bool = False, **arguments: Any) -> tuple[list[int], str, str]:
    """Lines of a page's references, the cursor of the next one, and the notes; `once`: of the first answer, even if it
    asks to be called again."""
    call = asked.client.call if once else asked.result
    answer = await call("find_referencing_symbols", name_path="price", limit=5, **arguments)
    first, *notes = (part["text"] for part in answer["content"])
    assert not answer["isError"], first
    says, _, text = first.rpartition("\n")
    cursor = re.search(r'cursor="([^"]+)"', says)
    shown = [one for kinds in json.loads(text).values() for uses in kinds.values() for one in uses]
    found = [re.search(r"^  > *(\d+):", one["content_around_reference"], re.MULTILINE) for one in shown]
    return [int(match[1]) for match in found if match], cursor[1] if cursor else "", f"{says}\n" + "\n".join(notes)


async def test_all_pages_are_of_one_question(asked: Asker, questions: list[str]) -> None:
    lines, cursor, _ = await page(asked)
    while cursor:
        more, cursor, notes = await page(asked, cursor=cursor)
        lines += more
        assert "new list" not in notes
    assert lines == [0, *range(2, 2 * USES + 1, 2)]
    assert questions == ["price"]


async def test_a_page_after_a_change_is_of_a_new_list_and_says_so(asked: Asker, questions: list[str]) -> None:
    _, cursor, _ = await page(asked)
    text = (asked.root / "uses.py").read_text()
    (asked.root / "uses.py").write_text(text.replace("import price\n", "import price\nfirst = price()\n"))
    lines, _, notes = await page(asked, cursor=cursor)
    assert "new list, because files have changed" in notes
    assert f"{USES + 2} references" in notes
    assert lines == [9, 11, 13, 15, 17]
    assert questions == ["price", "price"]


async def test_the_first_page_is_never_an_old_one_nor_another_sessions(asked: Asker, questions: list[str]) -> None:
    _, cursor, _ = await page(asked)
    await page(asked)
    async with asked.central.raw("handshake") as other:
        asked.client = other
        await other.call("activate_project", project=str(asked.root))
        _, _, notes = await page(asked, cursor=cursor)
    assert "not kept any more" in notes
    assert questions == ["price"] * 3


@pytest.mark.parametrize("times", [1, 100])
async def test_a_file_that_changes_before_its_lines_are_read_is_asked_about_again(
    asked: Asker, questions: list[str], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    readings, left = ProjectPlaces.readings, times

    async def changing(self: ProjectPlaces, paths: Iterable[str]) -> dict[str, FileText]:
        nonlocal left
        if left:
            left -= 1
            file = asked.root / "uses.py"
            file.write_text("first = 1\n" + file.read_text())
        return await readings(self, paths)

    monkeypatch.setattr(ProjectPlaces, "readings", changing)
    lines, _, notes = await page(asked, once=True)
    if times == 1:
        assert lines == [1, 3, 5, 7, 9]
        assert "kept changing" not in notes
        assert questions == ["price"] * 2
    else:
        assert "uses.py kept changing" in notes
        assert questions == ["price"] * TRIES
