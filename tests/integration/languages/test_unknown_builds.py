"""C without a compilation database: what the language server makes of macros that it can't know is not believed."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.projects import project
from serena_central.projects.languages import syntax_access
from serena_central.projects.navigation.possible_references import Limits
from serena_central.projects.navigation.symbol_views import Uses
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FUNCTION = """
static int __init setup_{n}_{f}(struct super_block *sb, gfp_t flags)
{{
	return IS_ERR(sb) ? PTR_ERR(sb) : 0;
}}

static noinline __cold long start_{n}_{f}(unsigned int fd)
{{
	return setup_{n}_{f}(NULL, GFP_KERNEL);
}}
EXPORT_SYMBOL(start_{n}_{f});
"""

ZIP = """
#define ZEXPORT
typedef struct z_stream_s {{ int avail; void *state; }} z_stream;

int ZEXPORT first_{n}(strm, flush)
z_stream FAR *strm;
int flush;
{{
    unsigned FAR *order;
    static const unsigned short lengths[3] = {{
        16, 17, 18}};
    if (strm == Z_NULL LOST)
        return flush;
#ifdef GUNZIP
    if ((strm->avail & 2) &&
#else
    if (
#endif
        strm->avail) {{
        flush = 1;
    }}
    return flush;
}}

int ZEXPORT second_{n}(strm)
z_stream FAR *strm;
{{
    z_stream FAR *copy;
    if (strm->state != Z_NULL) ZFREE(strm, strm->state);
    return 0;
}}

local int third_{n}(z_stream FAR *strm)
{{
    return second_{n}(strm);
}}
"""
"""Macros before names, and parameters as K&R declared them: a grammar loses its way in it, clangd does not."""

MACROS = """
static int __init fourth_{n}(struct super_block *sb, gfp_t flags)
{{
	return IS_ERR(sb) ? PTR_ERR(sb) : 0;
}}

static noinline __cold long fifth_{n}(unsigned int fd)
{{
	return fourth_{n}(NULL, GFP_KERNEL);
}}
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    root = tmp_path / "kernel"
    (root / ".git").mkdir(parents=True)
    for n in range(12):
        functions = "".join(FUNCTION.format(n=n, f=f) for f in range(8))
        (root / f"driver{n}.c").write_text(f"#include <linux/module.h>\n{functions}")
    return root


async def names(asked: Asker, path: str) -> tuple[set[str], str]:
    """Functions of a file, and the notes of the answer."""
    result = await asked.result("get_symbols_overview", relative_path=path)
    answer, *notes = (part["text"] for part in result["content"])
    found: dict[str, list[Any]] = json.loads(answer)
    return {name for name in found.get("Function", ()) if isinstance(name, str)}, "\n".join(notes)


def defined(n: int) -> set[str]:
    return {f"{what}_{n}_{f}" for what in ("setup", "start") for f in range(8)}


async def test_symbols_are_read_by_syntax_and_uses_that_the_server_makes_up_are_possible_references(
    tmp_path: Path, kernel: Path
) -> None:
    async with asker(tmp_path, kernel) as asked:
        said = ""
        for n in range(12):
            found, notes = await names(asked, f"driver{n}.c")
            assert found == defined(n), n
            said += notes
        assert said.count("Symbols are those of clangd and of the syntax (tree-sitter) together") == 1
        result = await asked.result("find_referencing_symbols", name_path="setup_3_4")
        notes = "\n".join(part["text"] for part in result["content"][1:])
        assert "Possible references" in notes
        assert "driver3.c" in notes


async def test_places_that_the_server_did_not_come_to_are_possible_references_by_syntax(
    tmp_path: Path, kernel: Path
) -> None:
    (kernel / "driver3.h").write_text("/* setup_3_4 */\n#define CALLS setup_3_4(NULL, 0)\n")
    async with asker(tmp_path, kernel) as asked:
        navigation = asked.project.navigation
        examined = await navigation.possible.examine(await asked.project.find_one("setup_3_4"), Uses(), Limits(0, 0))
        assert {place.path: why for place, why in examined.possible.items()} == {
            "driver3.c": "not asked",
            "driver3.h": "not asked",
        }
        assert (len(examined.comments), examined.unexamined) == (1, [])


async def test_the_server_is_asked_again_when_it_can_know_the_build(tmp_path: Path, kernel: Path) -> None:
    async with asker(tmp_path, kernel) as asked:
        for n in range(12):
            await names(asked, f"driver{n}.c")
        (kernel / "linux").mkdir()
        (kernel / "linux" / "module.h").write_text(
            "#define __init\n#define noinline\n#define __cold\n#define GFP_KERNEL 0\n#define IS_ERR(x) (!(x))\n"
            "#define PTR_ERR(x) 1\n#define EXPORT_SYMBOL(x) extern int made_by_##x\n#define NULL ((void *)0)\n"
            "typedef int gfp_t;\nstruct super_block;\n"
        )
        entries = [
            {"directory": str(kernel), "file": f"driver{n}.c", "arguments": ["cc", "-I.", "-c", f"driver{n}.c"]}
            for n in range(12)
        ]
        (kernel / "compile_commands.json").write_text(json.dumps(entries))
        found, _ = await names(asked, "driver3.c")
        assert found == defined(3)
        assert asked.project.languages.instead("driver3.c") is None
        entry = asked.project.index.entry("driver3.c")
        assert entry is not None
        assert entry.source.startswith("clangd ")


async def test_of_many_files_none_waits_for_the_server_and_the_sample_decides(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax_access, "MANY_FILES", 12)
    monkeypatch.setattr(project, "COMPARED_AFTER_S", 0)
    async with asker(tmp_path, kernel) as asked:
        found, notes = await names(asked, "driver3.c")
        assert found == defined(3)
        assert "Symbols come from syntax" in notes
        with anyio.fail_after(30):
            while not all(compared.decided for compared in asked.project.languages.builds.comparisons.values()):
                await anyio.sleep(0.1)
        assert set(asked.project.languages.builds.read_instead()) == {"clangd"}
        entry = asked.project.index.entry("driver3.c")
        assert entry is not None
        assert entry.source.startswith("by syntax c")


async def test_what_either_source_knows_of_a_file_stays_known_when_it_is_edited(tmp_path: Path) -> None:
    root = tmp_path / "zip"
    (root / ".git").mkdir(parents=True)
    for n in range(12):
        (root / f"inflate{n}.c").write_text(ZIP.format(n=n))
        (root / f"macros{n}.c").write_text("".join(MACROS.format(n=f"{n}_{m}") for m in range(4)))
    async with asker(tmp_path, root) as asked:
        known = {f"{name}_3" for name in ("first", "second", "third")}
        macros = {f"{name}_3_{m}" for name in ("fourth", "fifth") for m in range(4)}
        for n in range(12):
            assert len((await names(asked, f"inflate{n}.c"))[0]) == 3, n
            assert len((await names(asked, f"macros{n}.c"))[0]) == 8, n
        for file, functions in (("inflate3.c", known), ("macros3.c", macros)):
            with (root / file).open("a") as text:
                text.write("/* one more comment */\n")
            assert (await names(asked, file))[0] == functions
        result = await asked.result("get_symbols_overview", relative_path="inflate3.c")
        assert "Variable" not in json.loads(result["content"][0]["text"])
