"""Everyday words that name a symbol where no server of its language reads: notebooks, Cython, components, strings."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "lib.py": """\
def load(): ...


def fast(): ...


def plot(): ...


def call(): ...


def run(): ...


class Model:
    title = 1

    def train(self): ...

    def stop(self): ...
""",
    "look.ipynb": """\
{"cells": [{"cell_type": "code", "source": [
    "from lib import load, Model\\n",
    "import lib as other\\n",
    "other.plot(load())\\n",
    "Model().train()"
]}]}
""",
    "quick.pyx": "from lib import (\n    fast,\n)\n",
    "jobs.ini": "module = lib\nfunction = run\n",
    "main.py": """\
import subprocess

subprocess.run(["python", "-c", "from lib import call; call()"])
print("{0.title}".format(subprocess))
""",
    "view.ts": "export function load() {}\n\nexport function show() {}\n",
    "page.vue": '<script>\nimport { show as it } from "./view";\n</script>\n',
}


@pytest.mark.parametrize(
    ("name_path", "file", "why"),
    [
        ("load", "lib.py", "it is named in 'look.ipynb'"),
        ("plot", "lib.py", "it is named in 'look.ipynb'"),
        ("Model/train", "lib.py", "it is named in 'look.ipynb'"),
        ("fast", "lib.py", "it is named in 'quick.pyx'"),
        ("call", "lib.py", "Its name occurs in a string in main.py:2"),
        ("Model/title", "lib.py", "Its name occurs in a string in main.py:3"),
        ("show", "view.ts", "it is named in 'page.vue'"),
    ],
)
async def test_an_everyday_word_means_the_symbol_where_its_module_is_imported(
    tmp_path: Path, name_path: str, file: str, why: str
) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        refused = await ask.result("safe_delete_symbol", name_path=name_path, relative_path=file)
    assert why in text_of(refused), text_of(refused)


async def test_files_of_other_languages_that_hold_the_word_are_told_when_the_symbol_is_deleted(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "page.vue"}
    async with asker(tmp_path, written(tmp_path / "shop", files)) as ask:
        deleted = await ask.result("safe_delete_symbol", name_path="run", relative_path="lib.py")
        assert "run still occurs in files of other languages: jobs.ini" in text_of(deleted), text_of(deleted)
        deleted = await ask.result("safe_delete_symbol", name_path="Model/stop", relative_path="lib.py")
        assert "still occurs" not in text_of(deleted), text_of(deleted)
