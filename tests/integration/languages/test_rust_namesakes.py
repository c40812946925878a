"""In Rust a module and a function, or a field and its getter, may have one name; with the real rust-analyzer."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import CARGO, written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "Cargo.toml": CARGO.format("graphs"),
    "src/lib.rs": "pub mod algo;\n",
    "src/algo/mod.rs": "pub mod dijkstra;\npub mod johnson;\n\npub use dijkstra::dijkstra;\n",
    "src/algo/dijkstra.rs": "pub fn dijkstra(cost: u32) -> u32 {\n    cost\n}\n",
    "src/algo/johnson.rs": (
        "use super::{dijkstra, johnson as other};\n\n"
        "pub fn johnson(cost: u32) -> u32 {\n    dijkstra(cost)\n}\n\n"
        '#[cfg(feature = "more")]\npub fn more(cost: u32) -> u32 {\n    dijkstra(cost)\n}\n\n'
        "pub fn again(cost: u32) -> u32 {\n    other::johnson(cost) + super::dijkstra::dijkstra(1)\n}\n"
    ),
    "tests/it.rs": "use graphs::algo::dijkstra;\n\n#[allow(unused)]\nfn costs() -> u32 {\n    dijkstra(1)\n}\n",
}
"""What `use` brings the module and the function: rust-analyzer takes it for the module alone."""


async def test_what_may_bring_a_function_in_beside_a_module_of_its_name_is_a_possible_reference(tmp_path: Path) -> None:
    root = written(tmp_path / "graphs", FILES)
    async with asker(tmp_path, root) as client:
        symbol = {"name_path": "dijkstra", "relative_path": "src/algo/dijkstra.rs"}
        found = text_of(await client.result("find_referencing_symbols", **symbol))
        renamed = text_of(await client.result("rename_symbol", **symbol, new_name="shortest"))
    for said in (found.partition("Possible references")[2], renamed.partition("cannot resolve")[2].partition("\n")[0]):
        assert "src/algo/johnson.rs:0" in said
        assert "src/algo/johnson.rs:8" in said
        assert "tests/it.rs:0" in said
        assert "src/algo/johnson.rs:12" not in said
        assert "src/algo/mod.rs" not in said


async def test_a_renamed_module_names_the_functions_of_its_name_that_its_use_brought_in(tmp_path: Path) -> None:
    root = written(tmp_path / "graphs", FILES)
    async with asker(tmp_path, root) as client:
        renamed = await client.result(
            "rename_symbol", name_path="dijkstra", relative_path="src/algo/mod.rs", new_name="paths"
        )
    said = text_of(renamed).partition("cannot resolve")[2].partition("\n")[0]
    assert "tests/it.rs:4" in said
    assert "src/algo/dijkstra.rs" not in said


GETTER = """\
pub struct Point {
    size: u32,
}

impl Point {
    pub fn size(&self) -> u32 {
        self.size
    }
}
"""


async def test_a_field_is_told_from_the_getter_of_its_name_by_its_whole_path(tmp_path: Path) -> None:
    root = written(tmp_path / "points", {"Cargo.toml": CARGO.format("points"), "src/lib.rs": GETTER})
    async with asker(tmp_path, root) as client:
        refused = await client.result(
            "rename_symbol", name_path="Point/size", relative_path="src/lib.rs", new_name="width"
        )
        await client.result("rename_symbol", name_path="/Point/size", relative_path="src/lib.rs", new_name="width")
    assert "one of these with a / before it" in text_of(refused)
    assert (root / "src/lib.rs").read_text() == GETTER.replace("    size:", "    width:").replace(
        "self.size", "self.width"
    )
