"""Modules of a package that is slow to import come without it, and the package when somebody wants it."""

import subprocess
import sys
from pathlib import Path

import pytest

from serena_central.core.late_imports import import_modules_alone

MODULES = {
    "__init__.py": "print('slow runs'); from slow.other import thing; __all__ = ['thing']; own = 1\n",
    "other.py": "thing = 'a thing'\n",
    "part.py": "import slow.inner.leaf\nvalue = 2\n",
    "inner/__init__.py": "print('inner runs'); from slow.part import value\n",
    "inner/leaf.py": "leaf = 3\n",
    "broken/__init__.py": "import sys\nif not hasattr(sys, 'mended'): raise ValueError('broken')\nown = 4\n",
    "broken/part.py": "value = 5\n",
}


def run(folder: Path, code: str) -> str:
    for name, text in MODULES.items():
        file = folder / "slow" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    begin = "from serena_central.core.late_imports import import_modules_alone\n"
    environment = {"PYTHONPATH": f"{folder}:{Path(__file__).parents[3]}"}
    return subprocess.check_output([sys.executable, "-c", begin + code], env=environment, text=True)


@pytest.mark.parametrize(
    "code",
    [
        "print(slow.own)",
        "from slow import thing; print(slow.own)",
        "from slow import *; print(slow.own)",
        "print(slow.part.value and slow.own)",
    ],
)
def test_a_packages_own_code_runs_once_when_it_is_asked_for_a_name(tmp_path: Path, code: str) -> None:
    begin = "import_modules_alone('slow', 'slow.inner')\nimport slow.part\nprint(slow.inner.leaf.leaf)\n"
    assert run(tmp_path, f"{begin}{code}\nprint(type(slow).__name__)") == "3\nslow runs\n1\nmodule\n"
    assert run(tmp_path, f"{begin}print(slow.inner.value)") == "3\ninner runs\n2\n"


def test_names_that_a_package_does_not_have_are_errors_before_and_after(tmp_path: Path) -> None:
    asked = "print(hasattr(slow, '__wrapped__'), hasattr(slow, 'missing'), hasattr(slow, 'missing'))"
    begin = "import_modules_alone('slow')\nimport slow.other\n"
    assert run(tmp_path, begin + asked) == "slow runs\nFalse False False\n"


def test_a_package_that_fails_is_tried_again(tmp_path: Path) -> None:
    code = """
import sys
import_modules_alone('slow', 'slow.broken')
import slow.broken.part
try:
    slow.broken.own
except ValueError as error:
    print(error)
sys.mended = True
print(slow.broken.own, slow.broken.part.value)
"""
    assert run(tmp_path, code) == "broken\n4 5\n"


def test_what_was_imported_before_stays_as_it_is() -> None:
    before = sys.modules["json"]
    import_modules_alone("json")
    assert sys.modules["json"] is before
    with pytest.raises(ImportError):
        import_modules_alone("no_such_package_anywhere")
