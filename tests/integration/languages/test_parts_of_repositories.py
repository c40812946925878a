"""A folder inside a repository that is opened as a project of its own: code around it may use what it declares."""

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FILES = {
    "main.py": "from inner.cart import price\n\n\ndef run() -> int:\n    return price(1)\n",
    "inner/__init__.py": "",
    "inner/cart.py": (
        "def price(amount: int) -> int:\n    return amount\n\n\n"
        "def lonely(amount: int) -> int:\n    return amount\n\n\n"
        "def own(amount: int) -> int:\n    return amount\n\n\nTWICE = own(2)\n"
    ),
    "elsewhere/notes.md": "`lonely` is described here.\n",
}

EITHER_WAY = pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
"""Whether the repository around is a project that is open, too."""


def repository(folder: Path, **more: str) -> Path:
    root = folder / "repo"
    for path, text in (FILES | more).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@asynccontextmanager
async def asking(folder: Path, root: Path, part: str = "inner", *, is_open: bool) -> AsyncGenerator[Asker]:
    """About a part of the repository."""
    async with asker(folder, root / part) as asked:
        if is_open:
            await asked.result("get_symbols_overview", relative_path="main.py", project=str(root))
            around = asked.central.central.projects.opened(str(root))
            assert around is not None
            await around.warm()
        yield asked


def said(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"])


@EITHER_WAY
async def test_what_the_repository_around_uses_is_not_deleted(tmp_path: Path, is_open: bool) -> None:
    root = repository(tmp_path)
    async with asking(tmp_path, root, is_open=is_open) as asked:
        result = await asked.result("safe_delete_symbol", name_path="price")
        assert result["isError"]
        assert f"{root}/main.py" in said(result)
        assert is_open or f'project="{root}" opens it' in said(result)
        assert "def price" in (root / "inner/cart.py").read_text()
        for name in ("lonely", "own"):
            result = await asked.result("safe_delete_symbol", name_path=name, force=name == "own")
            assert not result["isError"], said(result)
            assert str(root / "main.py") not in said(result)
        result = await asked.result("safe_delete_symbol", name_path="price", force=True)
        assert "Deleted despite: " in said(result)
        assert f"{root}/main.py" in said(result)


@EITHER_WAY
async def test_what_the_repository_around_uses_is_renamed_there_too_or_not_at_all(
    tmp_path: Path, is_open: bool
) -> None:
    root = repository(tmp_path)
    async with asking(tmp_path, root, is_open=is_open) as asked:
        result = await asked.result("rename_symbol", name_path="price", new_name="cost")
        assert result["isError"]
        assert f"{root}/main.py" in said(result)
        assert f'project="{root}"' in said(result)
        assert "def price" in (root / "inner/cart.py").read_text()
        result = await asked.result("rename_symbol", name_path="lonely", new_name="alone")
        assert not result["isError"], said(result)
        result = await asked.result(
            "rename_symbol", name_path="price", relative_path="inner/cart.py", new_name="cost", project=str(root)
        )
        assert not result["isError"], said(result)
        assert "def cost" in (root / "inner/cart.py").read_text()
        assert "return cost(1)" in (root / "main.py").read_text()


@EITHER_WAY
async def test_what_the_repository_around_uses_is_not_unused(tmp_path: Path, is_open: bool) -> None:
    root = repository(tmp_path)
    async with asking(tmp_path, root, is_open=is_open) as asked:
        result = await asked.result("find_unused_symbols")
        answer = result["content"][0]["text"].splitlines()[-1]
        found = json.dumps(json.loads(answer))
        assert '"lonely"' in found
        assert '"price"' not in found
        if not is_open:
            assert str(root) in said(result)


@EITHER_WAY
async def test_answers_about_users_say_that_the_repository_around_was_not_asked(tmp_path: Path, is_open: bool) -> None:
    root = repository(tmp_path)
    note = f"Only 'inner' was searched, which is a part of '{root}'. project=\"{root}\" also searches the rest."
    async with asking(tmp_path, root, is_open=is_open) as asked:
        for tool in ("find_referencing_symbols", "get_symbol_context"):
            assert note in said(await asked.result(tool, name_path="price"))
        result = await asked.result(
            "find_referencing_symbols", name_path="price", relative_path="inner/cart.py", project=str(root)
        )
        assert "was searched" not in said(result)
        assert "main.py" in said(result)


@EITHER_WAY
async def test_an_edit_tells_what_it_broke_in_the_repository_around(tmp_path: Path, is_open: bool) -> None:
    root = repository(tmp_path)
    async with asking(tmp_path, root, is_open=is_open) as asked:
        result = await asked.result(
            "replace_symbol_body",
            name_path="price",
            relative_path="cart.py",
            body="def prices(amount: int) -> int:\n    return amount",
        )
        assert not result["isError"], said(result)
        assert "main.py" in said(result) if is_open else f"they are not open: {root}" in said(result)


async def test_what_the_repository_ignores_is_no_part_of_it(tmp_path: Path) -> None:
    root = repository(tmp_path, **{".gitignore": "inner/\n"})
    async with asking(tmp_path, root, is_open=False) as asked:
        assert "was searched" not in said(await asked.result("find_referencing_symbols", name_path="price"))
        assert not (await asked.result("safe_delete_symbol", name_path="price"))["isError"]


async def test_a_repository_in_a_repository_is_no_part_of_it(tmp_path: Path) -> None:
    root = repository(tmp_path)
    (root / "inner/.git").mkdir()
    async with asking(tmp_path, root, is_open=False) as asked:
        assert "was searched" not in said(await asked.result("find_referencing_symbols", name_path="price"))
        assert not (await asked.result("safe_delete_symbol", name_path="price"))["isError"]


async def test_a_part_of_a_project_without_a_repository_is_one_of_that(tmp_path: Path) -> None:
    root = repository(tmp_path)
    shutil.rmtree(root / ".git")
    async with asking(tmp_path, root, is_open=True) as asked:
        result = await asked.result("safe_delete_symbol", name_path="price")
        assert result["isError"]
        assert f"{root}/main.py" in said(result)


RENAMED = {
    "package.json": '{"name": "shop"}',
    "tsconfig.json": '{"compilerOptions": {"module": "commonjs", "strict": true, "noEmit": true}}',
    "shared/tsconfig.json": '{"compilerOptions": {"module": "commonjs", "strict": true, "noEmit": true}}',
    "shared/thing.ts": (
        "export default function makeThing(x: string): string { return x; }\n"
        "function hidden(): number { return 2; }\nexport { hidden as outer };\n"
        "function alone(): number { return 3; }\n"
        "export function $odd(): number { return 4; }\n"
    ),
    "page.ts": (
        'import build, { outer, $odd } from "./shared/thing";\nexport const all = [build("x"), outer(), $odd()];\n'
    ),
}
"""TypeScript that knows what a part of it declares under other names alone."""


@EITHER_WAY
async def test_what_the_repository_around_uses_under_another_name_is_in_use(tmp_path: Path, is_open: bool) -> None:
    root = repository(tmp_path, **RENAMED)
    async with asking(tmp_path, root, "shared", is_open=is_open) as asked:
        result = await asked.result("find_unused_symbols")
        answer = json.loads(result["content"][0]["text"].splitlines()[-1])
        assert [one["name_path"] for one in answer["unused"]] == ["alone"]
        assert "other projects may import them under another name: makeThing" in said(result)
        for name in ("makeThing", "$odd", "hidden"):
            result = await asked.result("safe_delete_symbol", name_path=name)
            assert result["isError"], name
            assert "page.ts" in said(result) or name == "hidden"
        result = await asked.result("safe_delete_symbol", name_path="alone")
        assert not result["isError"], said(result)


ROUNDABOUT = {
    "package.json": '{"name": "top", "private": true}',
    "tsconfig.json": '{"compilerOptions": {"module": "esnext", "moduleResolution": "bundler", "strict": true, '
    '"noEmit": true, "paths": {"~ui/*": ["./web/src/*"]}}}',
    "web/package.json": '{"name": "@acme/web", "private": true}',
    "web/tsconfig.json": '{"compilerOptions": {"module": "esnext", "moduleResolution": "bundler", "strict": true}}',
    "web/src/cart.ts": (
        "export function price(): number { return 1; }\nexport function $(): number { return 2; }\n"
        "export function quoted(): number { return 3; }\nexport function lonely(): number { return 4; }\n"
    ),
    "web/src/whole.ts": "export default function whole(): number { return 5; }\n",
    "page.ts": (
        'import { price, $ } from "~ui/cart";\nimport * as cart from "~ui/cart";\nimport all from "~ui/whole";\n'
        'export const sum = [price(), $(), cart["quoted"](), all()];\n'
    ),
}
"""TypeScript around a package that mentions nothing of its name, but an alias."""


@EITHER_WAY
async def test_what_is_reached_by_a_path_alias_is_in_use(tmp_path: Path, is_open: bool) -> None:
    root = repository(tmp_path, **ROUNDABOUT)
    async with asking(tmp_path, root, "web", is_open=is_open) as asked:
        result = await asked.result("find_unused_symbols")
        answer = json.loads(result["content"][0]["text"].splitlines()[-1])
        assert [one["name_path"] for one in answer["unused"]] == ["lonely"]
        for name in ("price", "$", "quoted", "whole"):
            result = await asked.result("safe_delete_symbol", name_path=name)
            assert result["isError"], name
            assert "page.ts" in said(result)
        for name in ("price", "$", "quoted"):
            result = await asked.result("rename_symbol", name_path=name, new_name="other")
            assert result["isError"], name
            assert "page.ts" in said(result)
        result = await asked.result("safe_delete_symbol", name_path="lonely")
        assert not result["isError"], said(result)


async def test_overrides_and_strings_around_are_listed_by_a_rename(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        **{
            "inner/cart.py": "class Cart:\n    def on_checkout(self) -> int:\n        return 0\n",
            "main.py": (
                "from inner.cart import Cart\n\n\nclass Own(Cart):\n    def on_checkout(self) -> int:\n"
                '        return 1\n\n\nPATCHED = "inner.cart.Cart.on_checkout"\n'
            ),
        },
    )
    async with asking(tmp_path, root, is_open=True) as asked:
        result = await asked.result("rename_symbol", name_path="Cart/on_checkout", new_name="settle", dry_run=True)
        assert not result["isError"], said(result)
        assert (
            f"on_checkout still occurs as the name of other symbols, such as overrides: '{root.name}': main.py:4"
            in said(result)
        )
        assert f"on_checkout still occurs in strings: '{root.name}': main.py:8" in said(result)
        result = await asked.result("safe_delete_symbol", name_path="Cart/on_checkout")
        assert result["isError"]
        assert f"in strings elsewhere: '{root.name}': main.py:8" in said(result)


@EITHER_WAY
async def test_files_that_rules_close_are_counted_and_not_named(tmp_path: Path, is_open: bool) -> None:
    rules = {"permissions": {"deny": ["Read(./secret/**)"]}}
    root = repository(
        tmp_path,
        **{
            "secret/user.py": "from inner.cart import lonely\n\nlonely(1)\n",
            ".claude/settings.json": json.dumps(rules),
        },
    )
    async with asking(tmp_path, root, is_open=is_open) as asked:
        for tool, more in (("safe_delete_symbol", {}), ("rename_symbol", {"new_name": "alone"})):
            result = await asked.result(tool, name_path="lonely", **more)
            assert result["isError"], tool
            assert "1 file around this project that permission rules close" in said(result)
            assert "secret" not in said(result)
        result = await asked.result("find_unused_symbols")
        answer = json.loads(result["content"][0]["text"].splitlines()[-1])
        assert answer["unused"] == []
        assert "secret" not in said(result)


async def test_a_folder_of_a_module_asks_the_other_modules(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        **{
            ".serena/project.yml": "name: both\ntype: super-repo\nmodules:\n  lib: {path: lib}\n  app: {path: app}\n",
            "lib/inner/cart.py": FILES["inner/cart.py"],
            "app/a.py": "import lib.inner.cart\n\nlib.inner.cart.lonely(1)\n",
        },
    )
    async with asking(tmp_path, root, "lib/inner", is_open=False) as asked:
        for _ in range(2):  # the first time opens the modules
            result = await asked.result("safe_delete_symbol", name_path="lonely")
            assert result["isError"], said(result)
            assert "a.py" in said(result)


async def test_a_rename_over_a_project_and_what_encloses_it_says_which_one_to_name(tmp_path: Path) -> None:
    root = repository(tmp_path)
    async with asking(tmp_path, root, is_open=True) as asked:
        result = await asked.result(
            "rename_symbol", name_path="price", new_name="cost", project=[str(root / "inner"), str(root)]
        )
        assert result["isError"]
        assert f"Name only '{root}'." in said(result)


@EITHER_WAY
async def test_what_other_languages_around_name_is_in_use(tmp_path: Path, is_open: bool) -> None:
    manifest = '[project]\nname = "shop"\nversion = "1"\n[project.scripts]\nshop = "inner.cart:total_of_cart"\n'
    code = "def total_of_cart() -> int:\n    return 1\n\n\ndef print_all_receipts() -> int:\n    return 2\n"
    files = {
        "pyproject.toml": manifest,
        "page.html": "{{ print_all_receipts }}\n",
        "inner/cart.py": code,
        "main.py": "",
    }
    root = repository(tmp_path, **files)
    async with asking(tmp_path, root, is_open=is_open) as asked:
        result = await asked.result("safe_delete_symbol", name_path="total_of_cart")
        assert result["isError"]
        assert f"It is named in '{root}/pyproject.toml', around this project." in said(result)
        result = await asked.result("safe_delete_symbol", name_path="print_all_receipts")
        assert result["isError"]
        assert f"Its name occurs in '{root}/page.html', in another language" in said(result)
        result = await asked.result("find_unused_symbols")
        answer = json.loads(result["content"][0]["text"].splitlines()[-1])
        assert [(one["name_path"], one["confidence"]) for one in answer["unused"]] == [("print_all_receipts", "medium")]
        assert "files of other languages around this project name them: total_of_cart" in said(result)
        result = await asked.result(
            "rename_symbol", name_path="total_of_cart", new_name="total", relative_path="cart.py"
        )
        assert not result["isError"], said(result)
        assert f"total_of_cart still occurs in files of other languages: {root}/pyproject.toml" in said(result)
