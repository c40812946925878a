"""What a search for symbols covers: no build products, and a word on data that it leaves out."""

from pathlib import Path

import anyio
import pytest

from tests.integration.test_by_syntax import ask
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


async def test_build_products_ask_for_no_language_where_nothing_ignores_them(tmp_path: Path) -> None:
    root = write(
        tmp_path / "shop",
        **{
            ".git/HEAD": "",
            "cart.py": "class Cart: ...\n",
            "BUILD": "how to build: make\n",
            "obj/main.o.d": "obj/main.o: main.c \\\n  main.h\n",
            "target/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
            "target/debug/deps/shop-0.d": "/w/target/debug/deps/shop-0.d: src/lib.rs\n",
            "target/debug/build/gen/out/gen.rs": "pub fn cart() {}\n",
            "out/CMakeCache.txt": "",
            "out/CMakeFiles/3.25/CMakeCCompiler.cmake": "set(CART 1)\n",
        },
    )
    (root / "bazel-out").symlink_to(root / "out")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            project = await central.projects.open(root)
            assert await project.languages_in_use() == {"python"}
            assert [(one.language, one.success) for one in await project.warm()] == [("python", True)]
            found, note = await ask(central, root, "find_symbol", name_path_pattern="Cart")
            assert ([one["relative_path"] for one in found], note) == (["cart.py"], "")


async def test_an_empty_answer_says_which_data_was_not_searched(tmp_path: Path) -> None:
    root = write(
        tmp_path / "shop",
        **{
            ".git/HEAD": "",
            "cart.py": "class Cart: ...\n",
            "conf/a.json": '{"port": 1}\n',
            "conf/b.json": '{"port": 1}\n',
            "conf/c.yml": "port: 1\n",
            "conf/go.mod": "module port\n",  # holds no symbols, so nothing of it is left out
        },
    )
    said = (
        "Not searched: data, markup and languages with few files: 2 JSON, 1 YAML. To search one, set "
        "relative_path to one of its files, or name its language in the project's setting `languages`."
    )
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert await ask(central, root, "find_symbol", name_path_pattern="port") == ([], said)
            assert await ask(central, root, "find_symbol", name_path_pattern="port", relative_path="conf") == ([], said)
            assert await ask(central, root, "get_symbols_overview", relative_path="conf") == ({}, said)
            assert await ask(central, root, "find_all_symbols", relative_path="conf") == ({}, said)
            (found,), note = await ask(central, root, "find_symbol", name_path_pattern="Cart")
            assert (found["relative_path"], note) == ("cart.py", "")
            _, note = await ask(central, root, "find_symbol", name_path_pattern="none", relative_path="cart.py")
            assert "Not searched" not in note


async def test_a_pattern_with_a_line_break_is_found_or_told_how_to_be(tmp_path: Path) -> None:
    root = write(tmp_path / "shop", **{".git/HEAD": "", "cart.py": "def total():\n    return 0\n"})
    async with running_parts(tmp_path) as central:
        for pattern in ("total():\n    return", "total.*\\n    return", "total[\\s\\S]*?return"):
            found, note = await ask(central, root, "search_for_pattern", substring_pattern=pattern)
            assert (found, "Pass multiline: true" in note) == ({}, True), pattern
        text = "total():\n    return"
        found, note = await ask(central, root, "search_for_pattern", substring_pattern=text, literal=True)
        assert (list(found), note) == (["cart.py"], "")


async def test_what_tools_have_built_is_said_of_an_empty_answer(tmp_path: Path) -> None:
    tag = "Signature: 8a477f597d28d172789f06886806bc55\n"
    files = {".git/HEAD": "", "a.py": "", "cache/CACHEDIR.TAG": tag, "cache/b.py": "class Cart: ...\n"}
    root = write(tmp_path / "shop", **files)
    async with running_parts(tmp_path) as central:
        found, note = await ask(central, root, "find_symbol", name_path_pattern="Cart")
    assert (found, "Skipped: 'cache/', marked as build output" in note) == ([], True)


@pytest.mark.parametrize("setting", ["languages: [pythn]", "encoding: latin-9x", "encoding: hex"])
async def test_a_misspelt_setting_hides_nothing(tmp_path: Path, setting: str) -> None:
    files = {".git/HEAD": "", ".serena/project.yml": f"{setting}\n", "cart.py": "class Cart: ...\n"}
    root = write(tmp_path / "shop", **files)
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            (found,), _ = await ask(central, root, "find_symbol", name_path_pattern="Cart")
            assert found["relative_path"] == "cart.py"
