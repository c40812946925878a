"""C without a compilation database: what the language server makes of macros that it can't know is not believed."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.projects import languages, project
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
        assert said.count("Symbols are read by syntax (tree-sitter) where it tells more than clangd does") == 1
        result = await asked.result("find_referencing_symbols", name_path="setup_3_4")
        notes = "\n".join(part["text"] for part in result["content"][1:])
        assert "Possible references" in notes
        assert "driver3.c" in notes


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
    monkeypatch.setattr(languages, "MANY_FILES", 12)
    monkeypatch.setattr(project, "COMPARED_AFTER_S", 0)
    async with asker(tmp_path, kernel) as asked:
        found, notes = await names(asked, "driver3.c")
        assert found == defined(3)
        assert "Symbols are read by syntax" in notes
        with anyio.fail_after(30):
            while not all(compared.decided for compared in asked.project.languages.comparisons.values()):
                await anyio.sleep(0.1)
        assert set(asked.project.languages.read_instead()) == {"clangd"}
        entry = asked.project.index.entry("driver3.c")
        assert entry is not None
        assert entry.source.startswith("by syntax c")
