"""What is certain of a broken reference is what no code of the project and no package could make right."""

from pathlib import Path

import pytest

from serena_central.analysis.certainty import PythonFile, Within, is_certain_elsewhere, is_certain_in_restricted_go
from serena_central.core.text import Text
from serena_central.symbols.syntax.python_structure import structure


def within(root: Path, files: dict[str, str], gone: tuple[str, ...] = ()) -> Within:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Within(root, set(files), gone, lambda path: Text(path.read_text()), lambda text: structure(text.encode()))


REMOVED = ("removed.py", "grouped/removed.py")

NAME = "Name `lost` used when not defined"


@pytest.mark.parametrize(
    ("text", "line0", "certain"),
    [
        ("lost\n", 0, True),
        ("try:\n    lost\nexcept NameError:\n    pass\n", 1, False),
        ("try:\n    lost\nexcept (TypeError, NameError):\n    pass\n", 1, False),
        ("try:\n    lost\nexcept Exception:\n    pass\n", 1, False),
        ("try:\n    lost\nexcept:\n    pass\n", 1, False),
        ("try:\n    lost\nexcept KeyError:\n    pass\n", 1, True),
        ("try:\n    pass\nexcept NameError:\n    lost\n", 3, True),
        ("from elsewhere import *\nlost\n", 1, False),
        ("globals().update(x=1)\nlost\n", 1, False),
        ("lost\nthis is (no Python\n", 0, False),
        ("lost\nprint 'of Python 2'\n", 0, False),
        ("try:\n    lost\nexcept builtins.NameError:\n    pass\n", 1, False),
        ("try:\n    lost\nexcept* NameError:\n    pass\n", 1, False),
        ("try:\n    lost\nexcept KeyError, TypeError:\n    pass\n", 1, True),
        ("try:\n    lost\nexcept KeyError, NameError:\n    pass\n", 1, False),
        ("try:\n    lost\nfinally:\n    pass\n", 1, True),
        ("type Pair[T] = tuple[T, T]\nlost\n", 1, True),
        ("class Box[T = int]:\n    kept: T = lost\n", 1, True),
        ("lost\nprint(f'{a['b']}', t'{c!r}')\n", 0, True),
    ],
)
def test_an_undefined_name_is_certain_where_nothing_can_define_it(
    tmp_path: Path, text: str, line0: int, *, certain: bool
) -> None:
    files = within(tmp_path, {"a.py": text})
    assert PythonFile("a.py", files).is_certain("undefined name", line0, NAME) is certain


@pytest.mark.parametrize(
    ("path", "text", "certain"),
    [
        ("shop/a.py", "import requests\n", False),
        ("shop/a.py", "from shop.gone import x\n", True),
        ("shop/a.py", "from .gone import x\n", True),
        ("shop/a.py", "from . import gone\n", True),
        ("shop/a.py", "from .stone import Missing\n", True),
        ("shop/a.py", "from .stone import (\n    Missing,\n)\n", True),
        ("shop/a.py", "from .stone import Named\n", False),
        ("shop/a.py", "from .dynamic import anything\n", False),
        ("shop/a.py", "from .native import fast\n", False),
        ("shop/a.py", "from . import template\n", False),
        ("shop/stone.py", "import stone\nfrom stone import x\n", False),
        ("run/a.py", "from beside import lost\n", True),
        ("main.py", "from lib.gone import x\n", True),
        ("shop/a.py", "from . import gone; type X = int\n", True),
        ("shop/a.py", "import shop.stone, shop . gone as other\n", True),
        ("shop/a.py", "import shop.stone as gone\n", False),
        ("main.py", "import removed\n", True),
        ("main.py", "import grouped.removed\n", True),
        ("examples/celery/tasks.py", "from celery.result import x\n", False),
    ],
)
def test_an_import_is_certain_where_it_means_the_project_itself(
    tmp_path: Path, path: str, text: str, *, certain: bool
) -> None:
    project = {
        "shop/__init__.py": "",
        "shop/stone.py": "class Named: ...\n",
        "shop/dynamic.py": "def __getattr__(name): ...\n",
        "shop/native.pyx": "",
        "shop/template.html": "",
        "run/beside.py": "",
        "src/lib/__init__.py": "",
    }
    files = within(tmp_path, project | {path: text}, REMOVED)
    assert PythonFile(path, files).is_certain("unresolved import", 0, "") is certain
    guarded = "try:\n    " + text.replace("\n", "\n    ") + "\nexcept ImportError:\n    pass\n"
    files = within(tmp_path, project | {path: guarded}, REMOVED)
    assert not PythonFile(path, files).is_certain("unresolved import", 1, "")


@pytest.mark.parametrize(
    ("text", "certain"),
    [("from . import Engine\n", False), ("from . import Gone\n", True), ("from ..utils import x\n", False)],
)
def test_a_package_that_is_the_projects_root_is_read_as_one(tmp_path: Path, text: str, *, certain: bool) -> None:
    files = within(tmp_path, {"__init__.py": "class Engine: ...\n", "loader.py": text})
    assert PythonFile("loader.py", files).is_certain("unresolved import", 0, "") is certain


def test_a_member_that_python_can_make_at_any_time_is_possible(tmp_path: Path) -> None:
    files = within(tmp_path, {"a.py": "x.y\n"})
    assert not PythonFile("a.py", files).is_certain("missing member", 0, "")


@pytest.mark.parametrize(
    ("what", "code", "message", "path", "certain"),
    [
        ("missing member", "MissingFieldOrMethod", "a.B undefined", "a.go", True),
        ("unresolved import", "BrokenImport", "could not import example.com/shop/x", "a.go", True),
        ("unresolved import", "BrokenImport", "could not import github.com/x/y", "a.go", False),
        ("unresolved import", "UndeclaredImportedName", "undefined: strings.Gone", "a.go", True),
        ("missing member", "E0599", "no method", "a.rs", True),
        ("missing member", "unresolved-method", "no method", "a.rs", False),
        ("unresolved import", "2307", "Cannot find module './gone'", "a.ts", True),
        ("unresolved import", "2307", "Cannot find module 'react'", "a.ts", False),
        ("undefined name", "2304", "Cannot find name 'x'", "a.ts", True),
        ("undefined name", "2580", "Cannot find name 'process'", "a.ts", False),
        ("undefined name", "2304", "Cannot find name 'x'", "web/a.ts", False),
        ("missing member", "no_member", "no member", "a.cpp", True),
    ],
)
def test_compilers_are_believed_where_all_that_they_need_is_there(
    tmp_path: Path, what: str, code: str, message: str, path: str, *, certain: bool
) -> None:
    files = within(
        tmp_path, {"go.mod": "module example.com/shop\n", "web/package.json": '{"devDependencies": {"vitest": "1"}}'}
    )
    assert is_certain_elsewhere(what, code, message, path, files) is certain


IMPORTS = 'package b\n\nimport (\n\t"github.com/x/sqlite"\n\n\t"example.com/shop/a"\n\tq "example.com/shop/queue"\n)\n'


@pytest.mark.parametrize(
    ("message", "path", "certain"),
    [
        ("undefined: Hello", "b/b.go", True),
        ("undefined: a.Hello", "b/b.go", True),
        ("undefined: q.Hello", "b/b.go", True),
        ("undefined: queue.Hello", "b/b.go", False),
        ("undefined: sqlite.Hello", "b/b.go", False),
        ("undefined: Hello", "c/c.go", False),
        ("x.Hello undefined (type T has no field or method Hello)", "b/b.go", False),
    ],
)
def test_without_cgo_an_undefined_name_of_the_project_is_one_in_a_package_that_loads(
    tmp_path: Path, message: str, path: str, *, certain: bool
) -> None:
    texts = {"go.mod": "module example.com/shop\n", "b/b.go": IMPORTS, "c/c.go": "package c\n"}
    assert is_certain_in_restricted_go(message, path, within(tmp_path, texts), {"c"}) is certain


@pytest.mark.parametrize("imports", ['import "C"\n', 'import (\n\t"C"\n)\n'])
def test_where_a_file_of_the_project_uses_cgo_no_name_is_certain_without_it(tmp_path: Path, imports: str) -> None:
    files = within(tmp_path, {"a/a.go": "package a\n", "c/c.go": f"package c\n\n{imports}"})
    assert not is_certain_in_restricted_go("undefined: Hello", "a/a.go", files, ())
