"""A repository in a folder that the project around it ignores: ty would take that project for its own, and search none
of the repository's files."""

from collections import Counter
from pathlib import Path

import pytest

from serena_central.core.text import Position
from serena_central.projects.project import Project
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

FILES, USES = 6, 50
"""More uses than are examined one by one where a language server does not say them."""

PROJECT = '[project]\nname = "outer"\nversion = "1"\n'

CALLED = {f"shop/use_{number}.py": USES + 1 for number in range(FILES)}
"""By file, its import and its calls of `pay`."""


def write(folder: Path, files: dict[str, str]) -> None:
    """A repository with these files."""
    (folder / ".git").mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


CALLS = "from shop.cart import pay\n\n\ndef run():\n" + "    pay()\n" * USES


def write_shop(root: Path, more: dict[str, str] | None = None) -> None:
    uses = dict.fromkeys(CALLED, CALLS)
    write(root, {"shop/__init__.py": "", "shop/cart.py": "def pay():\n    return 1\n", **uses, **(more or {})})


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    """Where a repository lies that the project around it ignores."""
    write(tmp_path / "outer", {"pyproject.toml": PROJECT, ".gitignore": "build/\n"})
    return tmp_path / "outer" / "build" / "inner"


async def called(project: Project) -> Counter[str]:
    """Root-relative path → how many uses of `pay` ty finds in it, before it is shown any file."""
    file, place = project.root / "shop" / "cart.py", Position(0, 4)
    found = await project.languages.ask(
        "shop/cart.py", lambda server: server.references(file, place, include_declaration=False, candidates=[])
    )
    return Counter(one.path.relative_to(project.root).as_posix() for one in found)


async def test_references_in_a_repository_that_the_outer_project_ignores_are_complete(
    tmp_path: Path, inner: Path
) -> None:
    write_shop(inner)
    async with running_parts(tmp_path) as central:
        arguments = {"project": str(inner), "name_path": "pay", "relative_path": "shop/cart.py"}
        answer = await central.caller.call(session_of(central), "find_referencing_symbols", arguments)
        assert not [block for block in answer.blocks if "not examined" in block]
        project = await central.projects.open(inner)
        assert await called(project) == CALLED
        orders = project.languages.orders
        assert all(orders.key_now(order) == order.key for order in orders.current())  # it is kept at new settings


async def test_so_they_are_where_the_outer_project_is_configured_for_ty_and_goes_before_the_own(
    tmp_path: Path, inner: Path
) -> None:
    (tmp_path / "outer" / "pyproject.toml").write_text(PROJECT + "[tool.ty.rules]\n")
    write_shop(inner, {"pyproject.toml": PROJECT})
    async with running_parts(tmp_path) as central:
        assert await called(await central.projects.open(inner)) == CALLED


async def test_what_the_repository_ignores_itself_is_not_searched(tmp_path: Path, inner: Path) -> None:
    ignored = dict.fromkeys(("made/use.py", "node_modules/x/use.py", ".venv/lib/use.py", "venv/lib/use.py"), CALLS)
    write_shop(inner, {".gitignore": "made/\n", **ignored})
    async with running_parts(tmp_path) as central:
        assert await called(await central.projects.open(inner)) == CALLED


async def test_a_project_that_comes_to_the_root_is_ty_s_from_then_on(tmp_path: Path, inner: Path) -> None:
    write_shop(inner)
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(inner)
        assert await called(project) == CALLED
        before = project.languages.meaning("shop/cart.py")
        (inner / "pyproject.toml").write_text(f"{PROJECT}[tool.ty.src]\nexclude = ['shop/use_*']\n")
        await project.fresh()
        assert await called(project) == {}
        assert project.languages.meaning("shop/cart.py") != before


async def test_a_root_that_the_outer_project_holds_has_its_settings(tmp_path: Path) -> None:
    """A package of a monorepo, which finds another one by them."""
    paths = '[tool.ty.environment]\nextra-paths = ["libraries"]\n'
    write(tmp_path / "outer", {"pyproject.toml": PROJECT + paths, "libraries/lib.py": "found = 1\n"})
    root = tmp_path / "outer" / "packages" / "inner"
    write(root, {"use.py": "import lib\n\nprint(lib.found, lib.missing)\n"})
    assert "has no member `missing`" in await problems(tmp_path, root)


async def test_ty_is_started_again_for_an_outer_project_that_comes_or_goes(tmp_path: Path) -> None:
    calls = CALLS.replace("shop.cart", "inner.shop.cart")
    write(tmp_path / "outer", {"pyproject.toml": PROJECT, "use.py": calls})
    root = tmp_path / "outer" / "inner"
    write_shop(root, {"pyproject.toml": PROJECT})
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        pay = await project.find_one("pay")

        async def outside() -> int:
            await project.fresh()
            return (await project.navigation.references.uses(pay)).outside

        assert await outside() == 0
        before, state = project.languages.meaning("shop/cart.py"), project.state
        (tmp_path / "outer" / "pyproject.toml").write_text(PROJECT + "[tool.ty.rules]\n")
        assert await outside() == USES + 1
        assert project.languages.meaning("shop/cart.py") != before
        assert project.state != state
        (tmp_path / "outer" / "pyproject.toml").write_text(PROJECT)
        assert await outside() == 0


async def test_so_it_is_not_where_the_outer_project_ignores_the_root(tmp_path: Path, inner: Path) -> None:
    paths = '[tool.ty.environment]\nextra-paths = ["libraries"]\n'
    (tmp_path / "outer" / "pyproject.toml").write_text(PROJECT + paths)
    write(inner, {"use.py": "import lib\n"})
    assert "Cannot resolve imported module `lib`" in await problems(tmp_path, inner)


async def problems(tmp_path: Path, root: Path) -> str:
    async with running_parts(tmp_path) as central:
        arguments = {"project": str(root), "relative_path": "use.py"}
        answer = await central.caller.call(session_of(central), "get_diagnostics_for_file", arguments)
        return answer.blocks[0]
