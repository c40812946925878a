"""Names that libraries of Python make of a field's own, which no language server connects with it."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FILES = {
    "models.py": """\
class ForeignKey:
    def __init__(self, to, **options):
        self.to = to


class CharField:
    def __init__(self, **options):
        self.options = options


class Writer:
    pen_name = CharField()
    birth = CharField()
    award = CharField(choices=[1])
    fans = CharField()


class Book:
    writer = ForeignKey(Writer)
""",
    "views.py": """\
def listed(books):
    books = books.filter(writer__pen_name__startswith="A").order_by("-writer__birth")
    return books.filter(writer_id=3, award__in=[1]), [book.writer_id for book in books]


def count__fans(books, fans__of):
    return books.count__fans, fans__of == 3
""",
    "page.html": "{{ writer.get_award_display }}\n",
}


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Asker]:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    async with asker(tmp_path, root) as ask:
        yield ask


def said(result: dict[str, Any]) -> str:
    return " ".join(part["text"] for part in result["content"])


@pytest.mark.parametrize(
    ("name_path", "places"),
    [
        ("Writer/pen_name", "views.py:1"),
        ("Writer/birth", "views.py:1"),
        ("Writer/award", "views.py:2, page.html:0"),
        ("Book/writer", "views.py:1, views.py:2"),
    ],
)
async def test_lookups_and_names_that_django_makes_of_a_field_are_told(
    shop: Asker, name_path: str, places: str
) -> None:
    renamed = await shop.result("rename_symbol", name_path=name_path, new_name="other", dry_run=True)
    assert f"in names that libraries such as Django make of it (check each): {places}" in said(renamed)
    refused = await shop.result("safe_delete_symbol", name_path=name_path)
    assert refused["isError"], refused
    assert "Libraries make names of its own that occur in" in said(refused)


async def test_functions_and_other_values_with_such_a_name_are_no_lookups(shop: Asker) -> None:
    renamed = await shop.result("rename_symbol", name_path="Writer/fans", new_name="other", dry_run=True)
    assert "such as Django" not in said(renamed)
    deleted = await shop.result("safe_delete_symbol", name_path="Writer/fans")
    assert not deleted["isError"], deleted


async def test_a_long_word_of_many_parts_does_not_hold_up_the_server(shop: Asker) -> None:
    word = "a" + "__pen_name" * 50_000  # each part may be followed by what ends only with the word
    (shop.root / "generated.py").write_text(f"{word}()\n")
    renamed = await shop.result("rename_symbol", name_path="Writer/pen_name", new_name="other", dry_run=True)
    assert "such as Django make of it (check each): views.py:1" in said(renamed)
