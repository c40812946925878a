"""Symbols that are used at run time without being named: by composed names, and by registries of subclasses."""

from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

FILES = {
    "formats.py": (
        "def _format_csv(x): return x\n\n\ndef _format_json(x): return x\n\n\ndef _idle_one(x): return x\n\n\n"
        'def form(kind, x):\n    return globals()[f"_format_{kind}"](x)\n'
    ),
    "main.py": 'from formats import form\n\n_idle_ = 1\nprint(form("csv", 1), _idle_)\n',
}


async def test_what_a_composed_name_may_mean_is_kept(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", FILES)
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="_format_csv", relative_path="formats.py")
        assert "a string in formats.py:10 holds the beginning of its name, _format_" in text_of(refused)
        found = await ask.ask("find_unused_symbols")
        assert [one["name_path"] for one in found["unused"]] == ["_idle_one"]
        deleted = await ask.result("safe_delete_symbol", name_path="_idle_one", relative_path="formats.py")
    assert not deleted["isError"], text_of(deleted)


PLUGINS = """\
class Plugin:
    registry = {}

    def __init_subclass__(cls):
        Plugin.registry[cls.__name__.lower()] = cls


class _Table(Plugin): ...


class _Csv(_Table): ...


class _Idle: ...


class _Alone(_Idle): ...


print(Plugin.registry)
"""


async def test_a_class_that_its_base_registers_is_kept(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", {"plugins.py": PLUGINS})
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="_Csv", relative_path="plugins.py")
        assert "__init_subclass__" in text_of(refused)
        found = await ask.ask("find_unused_symbols")
        assert [one["name_path"] for one in found["unused"]] == ["_Alone"]
        deleted = await ask.result("safe_delete_symbol", name_path="_Alone", relative_path="plugins.py")
    assert not deleted["isError"], text_of(deleted)
