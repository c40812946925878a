"""Which files can use what another defines, by their import lines."""

import pytest

from serena_central.analysis.python_imports import Importers, import_statements


def importers(**files: str) -> Importers:
    """`pkg__a="…"` is the file pkg/a.py."""
    return Importers(
        {path.replace("__", "/") + ".py": import_statements(text.encode()) for path, text in files.items()}
    )


@pytest.mark.parametrize(
    "text",
    [
        "from pkg.a import Thing",
        "from .a import Thing",
        "from . import a",
        "from.import a",
        "from ..pkg.a import Thing as Other",
        "import pkg.a",
        "import os, pkg.a as short  # for this and that",
        "import os; import pkg.a",
        "import pkg.a; import os",
        "if True: from .a import Thing",
        "def f():\n    from .a import (\n        One,  # (and more)\n        Thing,\n    )",
        "from . import (  # )\n    b,\n    a,\n)",
        "from \\\n    .a import One, \\\n    Thing",
        "from .a import *",
        "\ufefffrom .a import Thing",
        "try:\r\n\tfrom .a import Thing\r\nexcept ImportError:\r\n\tpass\r\n",
        "from a import Thing",
        'thing = importlib.import_module("pkg.a").Thing',
    ],
)
def test_every_way_to_import_a_module_is_seen(text: str) -> None:
    files = importers(pkg__a="", pkg__b="", pkg__user=text)
    assert files.reach("pkg/a.py", uses=lambda path: path == "pkg/user.py", hands_on=lambda _: False)


@pytest.mark.parametrize(
    "text", ["", "from .b import Thing", "from other.a import Thing", "import pkg.b", "# import pkg.a"]
)
def test_a_file_that_imports_others_can_not_use_it(text: str) -> None:
    files = importers(pkg__a="", pkg__b="", other__a="", pkg__user=text)
    assert not files.reach("pkg/a.py", uses=lambda path: path == "pkg/user.py", hands_on=lambda _: False)


def test_a_relative_import_means_one_file_and_an_absolute_one_all_that_it_could() -> None:
    files = importers(
        one__models="", two__models="", two__user="from .models import Thing", src__one__x="import one.models"
    )
    assert not files.reach("one/models.py", uses=lambda path: path == "two/user.py", hands_on=lambda _: True)
    assert files.reach("two/models.py", uses=lambda path: path == "two/user.py", hands_on=lambda _: False)
    assert files.reach("one/models.py", uses=lambda path: path == "src/one/x.py", hands_on=lambda _: False)


def test_what_a_package_hands_on_is_reached_through_it_and_cycles_end() -> None:
    files = Importers(
        {
            "pkg/__init__.py": [b"from .a import *"],
            "pkg/a.py": [b"import pkg"],
            "user.py": [b"from pkg import Thing"],
        }
    )
    used = {"user.py"}
    assert files.reach("pkg/a.py", uses=used.__contains__, hands_on=lambda path: path.startswith("pkg/"))
    assert not files.reach("pkg/a.py", uses=used.__contains__, hands_on=lambda _: False)
    assert not files.reach("pkg/a.py", uses=lambda _: False, hands_on=lambda _: True)


@pytest.mark.parametrize(
    "text",
    [
        "from a import (\n" + "    b,  # one of many\n" * 1000,
        "from a import (\n" * 20_000,
        ":from " * 100_000 + "ximport",
    ],
)
def test_a_statement_that_nothing_ends_is_not_looked_for_in_every_way(text: str) -> None:
    """While somebody types it, and in hostile texts: comments can be divided in more ways than can be tried."""
    assert all(b"\n" not in statement for statement in import_statements(text.encode()))
