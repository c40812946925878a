"""Third-party imports are resolved in the environment of the project, never in the one that this server runs in."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from serena_central.app import Central
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Central]:
    async with running_parts(tmp_path / "home") as central:
        yield central


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\ndependencies = ["anyio"]\n')
    (root / "cart.py").write_text("import anyio\n\n\ndef pay():\n    return anyio.only_here\n")
    return root


def make_environment(folder: Path) -> None:
    """With a package that says of itself where it is from."""
    packages = folder / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (packages / "anyio.py").write_text("only_here = 1\n")


async def diagnosed(central: Central, root: Path) -> tuple[str, list[str]]:
    arguments = {"project": str(root), "relative_path": "cart.py"}
    answer = await central.caller.call(session_of(central), "get_diagnostics_for_file", arguments)
    text, *notes = answer.blocks
    return text, [line for block in notes for line in block.splitlines()]


async def test_what_this_server_has_installed_is_missing_in_a_project_without_an_environment(
    central: Central, root: Path
) -> None:
    text, notes = await diagnosed(central, root)
    assert "Cannot resolve imported module `anyio`" in text
    assert any("no Python environment was found" in note and "setting `python`" in note for note in notes)
    assert (await diagnosed(central, root))[1] == []


@pytest.mark.parametrize("name", [".venv", "venv"])
async def test_an_environment_counts_as_soon_as_it_is_made(central: Central, root: Path, name: str) -> None:
    await diagnosed(central, root)
    make_environment(root / name)
    text, notes = await diagnosed(central, root)
    assert "anyio" not in text
    assert notes == [f"ty resolves third-party imports in {root / name} (of the project)."]


async def test_the_setting_names_an_environment_by_its_interpreter(
    central: Central, root: Path, tmp_path: Path
) -> None:
    make_environment(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "bin").mkdir()
    (tmp_path / "elsewhere" / "bin" / "python").write_text("#!/bin/sh\ntouch " + str(tmp_path / "was-run"))
    (tmp_path / "elsewhere" / "bin" / "python").chmod(0o755)
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(json.dumps({"python": str(tmp_path / "elsewhere/bin/python")}))
    text, notes = await diagnosed(central, root)
    assert "anyio" not in text
    assert f"ty resolves third-party imports in {tmp_path / 'elsewhere'} (the setting `python`)." in notes
    assert not (tmp_path / "was-run").exists()
