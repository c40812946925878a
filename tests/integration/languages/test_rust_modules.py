"""Rust modules that have files, or a folder, of their own: renamed and deleted with the real rust-analyzer."""

from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import CARGO, written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

FOLDERS = {
    "Cargo.toml": CARGO.format("drawn"),
    "src/lib.rs": "mod map;\nmod shapes;\n\npub use map::core::depth;\npub use shapes::circle::area;\n",
    "src/map.rs": "pub mod core;\n",
    "src/map/core.rs": "pub fn depth() -> u32 {\n    crate::shapes::unit()\n}\n",
    "src/shapes/mod.rs": "pub mod circle;\n\npub fn unit() -> u32 {\n    1\n}\n",
    "src/shapes/circle.rs": "pub fn area() -> u32 {\n    super::unit() * crate::map::core::depth()\n}\n",
    "src/shapes/units.txt": "mm\n",
}
"""`shapes` is a folder; `map` is a file with a folder beside it."""


async def test_a_renamed_module_takes_its_folder_along_there_and_back(tmp_path: Path) -> None:
    root = written(tmp_path / "drawn", FOLDERS)
    before = _below(root / "src")
    async with asker(tmp_path, root) as client:
        shapes = await client.result(
            "rename_symbol", name_path="shapes", relative_path="src/lib.rs", new_name="figures"
        )
        assert not shapes["isError"], text_of(shapes)
        chart = await client.result("rename_symbol", name_path="map", relative_path="src/lib.rs", new_name="chart")
        assert not chart["isError"], text_of(chart)
        after = _below(root / "src")
        async with client.central.http() as http:
            for edit in (await http.get("/api/v1/edits")).json()["edits"]:
                undone = await http.post(f"/api/v1/edits/{edit['id']}/undo")
                assert undone.is_success, undone.text
    assert after.keys() == {
        *("lib.rs", "chart.rs", "chart", "chart/core.rs"),
        *("figures", "figures/mod.rs", "figures/circle.rs", "figures/units.txt"),
    }
    assert after["lib.rs"] == (
        "mod chart;\nmod figures;\n\npub use chart::core::depth;\npub use figures::circle::area;\n"
    )
    assert "crate::figures::unit()" in (after["chart/core.rs"] or "")
    assert "crate::chart::core::depth()" in (after["figures/circle.rs"] or "")
    assert _below(root / "src") == before


def _below(folder: Path) -> dict[str, str | None]:
    """The files and folders in a folder; None for a folder's text."""
    return {
        path.relative_to(folder).as_posix(): path.read_text() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


async def test_a_folder_with_a_file_that_git_ignores_is_not_renamed(tmp_path: Path) -> None:
    root = written(tmp_path / "drawn", FOLDERS | {".gitignore": "generated.rs\n"})
    (root / "src/shapes/generated.rs").write_text("pub fn side() -> u32 {\n    1\n}\n")
    async with asker(tmp_path, root) as client:
        refused = await client.result(
            "rename_symbol", name_path="shapes", relative_path="src/lib.rs", new_name="figures"
        )
    assert refused["isError"]
    assert "src/shapes/generated.rs, which is ignored" in text_of(refused)
    assert (root / "src/shapes/mod.rs").exists()


async def test_a_renamed_module_leaves_the_file_that_an_attribute_names(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": CARGO.format("named"),
        "src/lib.rs": '#[path = "parts/shared.rs"]\nmod shared;\n\npub use shared::tag;\n',
        "src/parts/shared.rs": "pub fn tag() -> u32 {\n    1\n}\n",
    }
    root = written(tmp_path / "named", files)
    async with asker(tmp_path, root) as client:
        renamed = await client.result(
            "rename_symbol", name_path="shared", relative_path="src/lib.rs", new_name="common"
        )
    assert not renamed["isError"], text_of(renamed)
    assert (root / "src/lib.rs").read_text() == ('#[path = "parts/shared.rs"]\nmod common;\n\npub use common::tag;\n')
    assert (root / "src/parts/shared.rs").exists()


FILES = {
    "Cargo.toml": CARGO.format("shown") + "\n[features]\nmore = []\n",
    "src/lib.rs": (
        'mod display;\nmod entry;\nmod idle;\n\n/// Later.\n#[cfg(feature = "more")]\nmod extra;\n\n'
        '#[cfg_attr(windows, path = "sys/windows.rs")]\n#[cfg_attr(unix, path = "sys/unix.rs")]\nmod platform;\n\n'
        "mod outer {\n    mod inner;\n}\n\n"
        "pub struct Version(pub u32);\n\npub fn shown(version: &Version) -> String {\n    version.to_string()\n}\n"
    ),
    "src/display.rs": (
        "use crate::Version;\nuse std::fmt;\n\nimpl fmt::Display for Version {\n"
        "    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {\n        self.0.fmt(out)\n    }\n}\n"
    ),
    "src/entry.rs": '#[no_mangle]\npub extern "C" fn start() {}\n',
    "src/idle.rs": "//! Nothing yet.\n\n/* mod later; */\n",
    "src/extra.rs": "impl Default for crate::Version {\n    fn default() -> Self {\n        Self(1)\n    }\n}\n",
    "src/sys/unix.rs": "impl Drop for crate::Version {\n    fn drop(&mut self) {}\n}\n",
    "src/sys/windows.rs": "impl Drop for crate::Version {\n    fn drop(&mut self) {}\n}\n",
    "src/outer/inner.rs": "impl Copy for crate::Version {}\n",
}
"""Modules that nothing names, with what is used without a name."""


async def test_a_module_is_not_deleted_while_its_file_holds_code(tmp_path: Path) -> None:
    root = written(tmp_path / "shown", FILES)
    expected = {
        "display": ["src/display.rs"],
        "entry": ["src/entry.rs"],
        "extra": ["src/extra.rs"],
        "platform": ["src/sys/windows.rs", "src/sys/unix.rs"],
        "outer/inner": ["src/outer/inner.rs"],
        "outer": ["src/outer/inner.rs"],
    }
    async with asker(tmp_path, root, rust_std=True) as client:
        for name, files in expected.items():
            refused = await client.result("safe_delete_symbol", name_path=name, relative_path="src/lib.rs")
            assert refused["isError"], name
            for file in files:
                assert f"It brings in {file}, whose code would no longer be compiled" in text_of(refused)
        assert (root / "src/lib.rs").read_text() == FILES["src/lib.rs"]
        deleted = await client.result("safe_delete_symbol", name_path="idle", relative_path="src/lib.rs")
    assert not deleted["isError"], text_of(deleted)
    assert (root / "src/lib.rs").read_text() == FILES["src/lib.rs"].replace("mod idle;\n", "")


async def test_code_that_a_condition_leaves_out_is_not_renamed_and_the_way_is_told(tmp_path: Path) -> None:
    root = written(tmp_path / "shown", FILES)
    async with asker(tmp_path, root) as client:
        refused = await client.result("rename_symbol", name_path="extra", relative_path="src/lib.rs", new_name="more")
    assert refused["isError"]
    assert "does not rename extra" in text_of(refused)
    assert "replace_content" in text_of(refused)
    assert (root / "src/lib.rs").read_text() == FILES["src/lib.rs"]
