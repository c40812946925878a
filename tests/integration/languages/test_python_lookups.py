"""What code of Python looks up by a name that it does not write, and names in doctests and type comments."""

from pathlib import Path

import pytest

from tests.integration.languages.test_loaded_by_name import refusal
from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "own.py": "import sys\n\n\ndef in_own(): ...\n\n\nprint(globals()[sys.argv[1]]())\n",
    "fixed.py": 'def in_fixed(): ...\n\n\ndef listed(): ...\n\n\nprint(globals()["listed"], "eval(x)", model.eval())\n',
    "handlers.py": "def in_handlers(): ...\n\n\nclass Handler: ...\n",
    "aliased.py": "def in_aliased(): ...\n",
    "plain.py": "def in_plain(): ...\n\n\ndef named(): ...\n",
    "user.py": """\
import inspect
import sys

import aliased as short
import handlers
import plain

print(getattr(handlers, sys.argv[1]), inspect.getmembers(short, inspect.isfunction), getattr(plain, "named"))
""",
    "classes.py": '''\
class Base:
    def dispatch(self, name):
        return getattr(self, name.lower())()

    def fixed(self):
        return getattr(self, "dispatch")


class Derived(Base):
    def restart(self): ...


class Plain:
    kept: int

    def idle(self):
        """Does nothing.

        >>> doubled(2)
        4
        """
        return getattr(self, f"kept_{self}")


class Fields:
    width = 1

    def sized(self): ...

    def __str__(self):
        return str(vars(self))


def doubled(x):
    """Doubles.

    >>> doubled(2)
    4
    """
    return 2 * x


def tripled(x):
    """Triples.

    >>> tripled(2)
    6
    """
    return 3 * x


class order: ...


ORDERS = []  # type: list[order]
print(Derived(), Plain(), Fields(), ORDERS)
''',
    "evaluated.py": "import sys\n\n\ndef in_evaluated(): ...\n\n\nprint(eval(sys.argv[1], None, {}))\n",
    "given.py": """\
import sys


def in_given(): ...


names = {"a,)": 1}
exec(compile(sys.argv[1], "(", "exec"), names)
exec(sys.argv[1], {"sys": sys})
print(eval(sys.argv[1], names, names), "given" in globals(), __import__(sys.argv[1], globals(), locals()))
""",
    "framed.py": "import sys\n\n\ndef in_framed(): ...\n\n\nprint(eval(sys.argv[1], sys._getframe().f_globals))\n",
    "default.py": "def in_default(): ...\n\n\ndef run(code: str, names: dict | None = None): exec(code, names)\n",
    "ignored.py": "def in_ignored(): ...\n\n\nprint(1)  # type: ignore[call]  # unlike in_ignored\n",
    "handed.py": "import code\n\n\ndef in_handed(): ...\n\n\ncode.interact(local={**globals(), 'a': 1})\n",
    **{
        f"{name}.py": f"import builtins, sys\n\n\ndef in_{name}(): ...\n\n\n{line}\n"
        for name, line in {
            "builtin": "print(builtins.eval(sys.argv[1]))",
            "mapped": "print(list(map(eval, sys.argv)))",
            "assigned": "evaluate = eval",
            "placed": "print(locals()[sys.argv[1]])",
            "function": "def get(f): return f.__globals__[sys.argv[1]]",
            "frame": "print(sys._getframe().f_globals.get(sys.argv[1]))",
            "named": "own = sys.modules[__name__]\nprint(getattr(own, sys.argv[1]))",
            "passed": "print(sys.modules[__name__])",
            "asked": "print(sys.argv[1] in(globals()), hasattr(sys.modules[__name__], sys.argv[1]))",
            "imported": "print(__import__(sys.argv[1], globals()))",
            "setting": "globals()[sys.argv[1]] = 1\nsetattr(sys.modules[__name__], sys.argv[1], 2)",
            "held": "own = sys.modules[__name__]\nown.ready = True\nsys.modules[__name__] = own",
            "inner": "def get(x):\n    return locals()[x]",
            "other": "def test(eval): print(map(eval, sys.argv))\n\n\neval = test",
        }.items()
    },
    "plugins/__init__.py": "",
    "plugins/one.py": "class Plugin: ...\n",
    "others/__init__.py": "",
    "others/one.py": "class Other: ...\n",
    "load.py": """\
import importlib
import pkgutil

import plugins

for module in pkgutil.iter_modules(plugins.__path__):
    print(importlib.import_module(module.name))
""",
}


async def test_what_code_looks_up_by_a_computed_name_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        own = {"in_own": "own.py:6", "in_evaluated": "evaluated.py:6", "in_handed": "handed.py:6"}
        own |= {"in_framed": "framed.py:6", "in_default": "default.py:3"}
        for name, place in (own | {"in_handlers": "user.py:7", "in_aliased": "user.py:7"}).items():
            assert f"{place} looks up symbols of its module" in await refusal(ask, name), name
        for name, line0 in {
            **dict.fromkeys(("builtin", "mapped", "assigned", "placed", "function", "frame", "passed"), 6),
            "named": 7,
        }.items():
            assert f"{name}.py:{line0} looks up symbols of its module" in await refusal(ask, f"in_{name}"), name
        for name in ("asked", "imported", "setting", "held", "inner", "other"):
            assert not await refusal(ask, f"in_{name}"), name
        for name, place in {"Derived/restart": "classes.py:2", "Fields/width": "classes.py:30"}.items():
            assert f"{place} looks up members of {name.split('/')[0]}" in await refusal(ask, name), name
        assert "load.py:5, which loads all modules of its package" in await refusal(ask, "Plugin")
        for name in ("in_fixed", "in_given", "in_ignored", "in_plain", "Plain/idle", "Fields/sized", "Other"):
            assert not await refusal(ask, name), name
        renamed = await ask.result("rename_symbol", name_path="in_handlers", new_name="other", dry_run=True)
        assert "looks up symbols of its module" in text_of(renamed)


async def test_what_a_doctest_or_a_type_comment_names_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        assert "the doctest in classes.py:18 names it" in await refusal(ask, "doubled")
        assert "the type comment in classes.py:54 names it" in await refusal(ask, "order")
        assert not await refusal(ask, "tripled")


async def test_who_stores_objects_by_the_name_of_their_class_is_told(tmp_path: Path) -> None:
    files = {
        "shop.py": "class Order: ...\n\n\nclass Basket: ...\n\n\ndef load(): ...\n",
        "stored.py": "import os, pickle\n\nprint(os, pickle)\n",
    }
    async with asker(tmp_path, written(tmp_path / "shop", files)) as ask:
        said = "stored.py:0 imports pickle, which stores objects"
        assert said in text_of(await ask.result("safe_delete_symbol", name_path="Order", dry_run=True))
        assert said in text_of(await ask.result("rename_symbol", name_path="Basket", new_name="Cart", dry_run=True))
        assert said not in text_of(await ask.result("safe_delete_symbol", name_path="load", dry_run=True))


async def test_a_long_line_of_blanks_behind_a_bracket_holds_nobody_up(tmp_path: Path) -> None:
    files = {"shop.py": "def order(): ...\n", "blank.py": f"# shop: getattr({' ' * 300_000}\n"}
    async with asker(tmp_path, written(tmp_path / "shop", files)) as ask:
        assert not await refusal(ask, "order")
