"""What frameworks of Python look up by its name: in modules that no code imports, and in classes within classes."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FILES = {
    "site_conf/__init__.py": "",
    "site_conf/settings.py": "USE_TIME_ZONES = True\n_own = 1\n",
    "site_conf/commands/__init__.py": "",
    "site_conf/commands/count_books.py": """\
from django.core import (
    Base as BaseCommand,
)


class Counting(BaseCommand):
    pass


class Error(Exception): ...


def unused_function(): ...
""",
    "manage.py": 'SETTINGS = "site_conf.settings"\nprint(SETTINGS)\n',
    "Procfile": "web: gunicorn site_conf.wsgi\n",
    "site_conf/wsgi.py": "application = 1\n",
    "site_conf/versions/0001_initial.py": "def upgrade(): ...\n",
    "site_conf/imported.py": "def unused_here(): ...\n",
    "site_conf/program.py": 'def unused_in_program(): ...\n\n\nif __name__ == "__main__":\n    print("x")\n',
    "site_conf/importing.py": "from . import imported\n\nprint(imported)\n",
    "site_conf/middleware.py": """\
class Stamp:
    def process_view(self): ...

    def _own(self): ...


class Used:
    def idle(self): ...


def stamping(): ...


def mentioned(): ...


print(Used())
""",
    "names.py": """\
from site_conf.middleware import Used

NAMES = ["site_conf.middleware.Stamp", "site_conf.middleware.stamping", "middleware is mentioned"]
print(NAMES, Used)
""",
    "script.py": "def unused_in_script(): ...\n",
    "models.py": """\
from elsewhere import Model


class Book(Model):
    class Meta:
        ordering = ["title"]

    class Alone:
        other = 1


class Own:
    class Meta:
        sorting = 1
""",
    "tests.py": "class BookTest:\n    def test_it(self): ...\n",
}


async def refusal(ask: Asker, name_path: str) -> str:
    """Why a symbol is not deleted; nothing if it would be."""
    result = await ask.result("safe_delete_symbol", name_path=name_path, dry_run=True)
    return text_of(result) if result["isError"] else ""


async def test_what_a_module_defines_that_no_code_imports_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        for name in ("USE_TIME_ZONES", "Counting", "upgrade", "application"):
            assert "no code imports its file" in await refusal(ask, name), name
        for name in ("_own", "Error", "unused_function", "unused_here", "unused_in_program", "unused_in_script"):
            assert not await refusal(ask, name), name
        found = await ask.ask("find_unused_symbols")
        assert {one["name_path"] for one in found["unused"]} == {
            *("unused_function", "unused_here", "unused_in_program", "unused_in_script"),
            *("Error", "Book", "Own", "Stamp/_own", "Used/idle", "mentioned"),
        }
        renamed = await ask.result("rename_symbol", name_path="upgrade", new_name="other", dry_run=True)
        assert "no code imports its file" in text_of(renamed)


async def test_what_a_string_names_is_kept_with_its_members(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        assert "a string in names.py:2 names it" in await refusal(ask, "stamping")
        said = "no code refers to its class, of which a string in names.py:2 names it"
        assert said in await refusal(ask, "Stamp/process_view")
        for name in ("Stamp/_own", "Used/idle"):
            assert not await refusal(ask, name), name


async def test_what_a_class_within_a_class_is_made_of_may_be_read_by_a_base(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        assert "it is part of Book/Meta, which is kept: it may be an override" in await refusal(
            ask, "Book/Meta/ordering"
        )
        assert not await refusal(ask, "Own/Meta/sorting")
        assert "its file contains tests" in await refusal(ask, "BookTest")


async def test_a_root_that_is_a_package_itself_has_its_folders_name(tmp_path: Path) -> None:
    files = {
        "__init__.py": "def idle(): ...\n\n\ndef opened(): ...\n",
        "style.py": "def draw(): ...\n",
        "loaded.py": "def run(): ...\n",
        "names.py": 'NAMES = [".idle", "shop.opened", ".style", "shop.loaded"]\nprint(NAMES)\n',
        "page.html": '<link href="/style">\n',
    }
    async with asker(tmp_path, written(tmp_path / "shop", files)) as ask:
        for name in ("idle", "draw"):
            assert not await refusal(ask, name), name
        assert "a string in names.py:0 names it" in await refusal(ask, "opened")
        assert "what names.py:0 names it to" in await refusal(ask, "run")
