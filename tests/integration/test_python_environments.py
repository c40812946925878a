"""Third-party imports are resolved in the environment of the project, never in the one that this server runs in."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.analysis.analysis_runs import AnalysisRuns, Job
from serena_central.app import Application
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path / "home", {"trusted_roots": [str(tmp_path)]}) as central:
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


async def diagnosed(central: Application, root: Path) -> tuple[str, list[str]]:
    arguments = {"project": str(root), "relative_path": "cart.py"}
    answer = await central.caller.call(session_of(central), "get_diagnostics_for_file", arguments)
    text, *notes = answer.blocks
    return text, [line for block in notes for line in block.splitlines()]


async def test_what_this_server_has_installed_is_missing_in_a_project_without_an_environment(
    central: Application, root: Path
) -> None:
    text, notes = await diagnosed(central, root)
    assert "Cannot resolve imported module `anyio`" in text
    assert any("no Python environment was found" in note and "set `python`" in note for note in notes)
    assert (await diagnosed(central, root))[1] == []


@pytest.mark.parametrize("name", [".venv", "venv"])
async def test_an_environment_counts_as_soon_as_it_is_made(central: Application, root: Path, name: str) -> None:
    await diagnosed(central, root)
    make_environment(root / name)
    text, notes = await diagnosed(central, root)
    assert "anyio" not in text
    assert notes == [f"ty resolves third-party imports in {root / name} (of the project)."]


async def test_the_setting_names_an_environment_by_its_interpreter(
    central: Application, root: Path, tmp_path: Path
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


SERVERS = ("ty", "basedpyright", "pyrefly")

UNRESOLVED = re.compile(
    r'(?:Cannot resolve imported|Cannot find) module `(\w+)`|Import \\"(\w+)\\" could not be resolved'
)


def packages_in(folder: Path) -> Path:
    (packages,) = folder.glob("lib/python3*/site-packages")
    return packages


def make_usable(folder: Path) -> None:
    """An environment with an interpreter, which knows its packages and no others."""
    make_environment(folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text(
        f'#!/bin/sh\nPYTHONPATH={packages_in(folder)} exec {sys._base_executable} -S "$@"\n'
    )
    (folder / "bin" / "python").chmod(0o755)


async def unresolved(central: Application, root: Path) -> tuple[set[str], list[str]]:
    text, notes = await diagnosed(central, root)
    return {name for match in UNRESOLVED.findall(text) for name in match if name}, notes


@pytest.mark.parametrize("server", ["ty", pytest.param("basedpyright", marks=pytest.mark.slow), "pyrefly"])
async def test_what_happens_to_an_environment_counts_at_the_next_call(
    central: Application, root: Path, server: str
) -> None:
    """It is made, gets a package, loses one, and is deleted, as by `uv sync`, while its server runs."""
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(f"language_servers: {{python: {server}}}\n")
    (root / "cart.py").write_text("import anyio\nimport attrs_like\n\nprint(anyio.only_here, attrs_like.x)\n")
    # There is the environment of this server, and a Python on PATH that may have packages: neither is the project's.
    missing, notes = await unresolved(central, root)
    assert missing == {"anyio", "attrs_like"}
    assert any("no Python environment was found" in note for note in notes)

    make_usable(root / ".venv")
    missing, notes = await unresolved(central, root)
    assert missing == {"attrs_like"}
    assert notes == [f"{server} resolves third-party imports in {root / '.venv'} (of the project)."]

    (packages_in(root / ".venv") / "attrs_like.py").write_text("x = 1\n")
    (packages_in(root / ".venv") / "anyio.py").unlink()
    assert await unresolved(central, root) == ({"anyio"}, [])

    shutil.rmtree(root / ".venv")
    missing, notes = await unresolved(central, root)
    assert missing == {"anyio", "attrs_like"}
    assert any("no Python environment was found" in note for note in notes)


def uv(*arguments: str) -> None:
    program = Path(sys.executable).with_name("uv")
    subprocess.run([str(program), *arguments, "--quiet", "--offline", "--no-cache"], check=True)


async def test_an_upgraded_package_and_an_editable_install_count_at_the_next_call(
    central: Application, root: Path, tmp_path: Path
) -> None:
    (root / "cart.py").write_text("import gears\n\nprint(gears.first, gears.second, gears.third)\n")
    uv("venv", "--python", sys._base_executable, str(root / ".venv"))
    install = ("pip", "install", "--python", str(root / ".venv"), "--no-deps", "--no-build-isolation")
    wheels = tmp_path / "wheels"
    for version, text in (("1", "first = 1\n"), ("2", "first = 1\nsecond = 2\n")):
        write_wheel(wheels, version, text)
        uv(*install, "--upgrade", str(wheels / f"gears-{version}-py3-none-any.whl"))
        text, _ = await diagnosed(central, root)
        assert [name in text for name in ("`first`", "`second`", "`third`")] == [False, version == "1", True], text
    source = tmp_path / "source"
    source.mkdir()
    (source / "gears.py").write_text("first = second = third = 3\n")
    (packages_in(root / ".venv") / "gears.py").unlink()
    (packages_in(root / ".venv") / "gears.pth").write_text(f"{source}\n")  # what an editable install is
    assert "has no" not in (await diagnosed(central, root))[0]


def write_wheel(folder: Path, version: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    about = f"gears-{version}.dist-info"
    with zipfile.ZipFile(folder / f"gears-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("gears.py", text)
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: gears\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


async def test_servers_of_the_environment_that_was_do_not_stay(central: Application, root: Path) -> None:
    await diagnosed(central, root)
    make_environment(root / ".venv")
    await diagnosed(central, root)
    running = [one for one in central.pool.snapshot() if one.server == "ty" and one.state in ("idle", "in use")]
    assert len(running) == 1


@pytest.mark.parametrize("server", ["basedpyright", "pyrefly"])
async def test_an_environment_without_an_interpreter_is_said_to_be_of_no_use(
    central: Application, root: Path, server: str
) -> None:
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(f"language_servers: {{python: {server}}}\n")
    make_environment(root / ".venv")
    missing, notes = await unresolved(central, root)
    assert missing == {"anyio"}
    assert any(f"has no interpreter, which {server} requires" in note for note in notes)


# A use that is one only with the environment: who makes carts is known from there.
PLUGIN = "import cart\n\n\ndef get() -> cart.Cart:\n    return cart.Cart()\n"


@pytest.fixture
def shop(root: Path) -> Path:
    (root / "cart.py").write_text("class Cart:\n    def pay(self) -> int:\n        return 1\n")
    (root / "till.py").write_text("import plugin\n\n\ndef close() -> int:\n    return plugin.get().pay()\n")
    return root


async def uses_of_pay(central: Application, root: Path) -> int:
    arguments = {"project": str(root), "granularity": "symbol", "kinds": ["Method"], "format": "json"}
    answer = await central.caller.call(session_of(central), "dependency_graph", arguments)
    edges: list[dict[str, Any]] = json.loads(answer.blocks[0])["drawn"]["edges"]
    return sum(edge["count"] for edge in edges if edge["target"].endswith(":Cart/pay"))


def install(folder: Path) -> None:
    make_environment(folder)
    (packages_in(folder) / "plugin.py").write_text(PLUGIN)


async def test_a_graph_of_before_the_environment_changed_is_not_handed_out(central: Application, shop: Path) -> None:
    assert await uses_of_pay(central, shop) == 0
    install(shop / ".venv")
    assert await uses_of_pay(central, shop) == 1
    (packages_in(shop / ".venv") / "plugin.py").rename(packages_in(shop / ".venv") / "gone.py")
    assert await uses_of_pay(central, shop) == 0
    (packages_in(shop / ".venv") / "gone.py").rename(packages_in(shop / ".venv") / "plugin.py")
    assert await uses_of_pay(central, shop) == 1
    shutil.rmtree(shop / ".venv")
    assert await uses_of_pay(central, shop) == 0


async def test_a_graph_is_kept_over_a_restart_unless_the_environment_changed_meanwhile(
    tmp_path: Path, shop: Path
) -> None:
    install(shop / ".venv")
    async with running_parts(tmp_path / "home") as central:
        assert await uses_of_pay(central, shop) == 1
    shutil.rmtree(shop / ".venv")
    async with running_parts(tmp_path / "home") as central:
        assert await uses_of_pay(central, shop) == 0


async def analyzed(analysis_runs: AnalysisRuns, root: Path) -> Job:
    job = analysis_runs.start(root, "graph")
    with anyio.fail_after(60):
        while not job.done:
            await anyio.sleep(0.01)
    assert not job.failure
    return job


async def test_an_analysis_run_is_older_than_the_environment_that_is_there_now(
    central: Application, shop: Path
) -> None:
    analysis_runs = central.dashboard.parts.analysis_runs
    await analyzed(analysis_runs, shop)
    before = await analysis_runs.graph(shop)
    assert before is not None
    assert await analysis_runs.changed_since(before) is False
    install(shop / ".venv")
    assert await analysis_runs.changed_since(before) is True


@pytest.mark.parametrize("server", SERVERS)
async def test_the_symbols_of_a_file_do_not_depend_on_the_environment(
    central: Application, root: Path, server: str
) -> None:
    """Which is why the index is kept when it changes."""
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(f"language_servers: {{python: {server}}}\n")
    shape = root / "shape.py"
    shape.write_text(
        "import plugin\nfrom plugin import *\n\n\nclass Colour(plugin.Choice):\n    RED = 1\n\n    @plugin.attribute\n"
        "    def name(self): ...\n\n\nclass Pair(plugin.Row):\n    left: int\n\n\nItem = plugin.variable('Item')\n"
    )
    project = await central.projects.open(root)

    async def listed() -> Any:
        await project.fresh()
        return await project.languages.ask("shape.py", lambda one: one.document_symbols(shape))

    before = await listed()
    make_usable(root / ".venv")
    (packages_in(root / ".venv") / "plugin.py").write_text(
        "from enum import Enum as Choice\nfrom typing import NamedTuple as Row, TypeVar as variable\n\n"
        "attribute = property\nhidden = 1\n"
    )
    assert await listed() == before
    assert len(before) >= 3
