"""What a Rust library offers to other crates is not unused, wherever its files lie; with the real rust-analyzer."""

import json
from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import CARGO, written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

FILES = {
    "Cargo.toml": CARGO.format("offered") + '\n[lib]\npath = "code/entry.rs"\n\n[workspace]\nmembers = ["plain"]\n',
    "code/entry.rs": (
        'pub mod kinds;\n\ninclude!("table.in.rs");\n\n'
        "pub fn offered_function() -> u32 {\n    1\n}\n\nfn hidden_function() -> u32 {\n    2\n}\n"
    ),
    "code/kinds.rs": (
        "pub enum Kind {\n    Lonely,\n    Wide { breadth: u32 },\n}\n\nenum Private {\n    Alone,\n}\n\n"
        "pub trait Measured {\n    const UNIT: u32;\n}\n"
    ),
    "code/table.in.rs": "pub fn included_function() -> u32 {\n    3\n}\n",
    "plain/Cargo.toml": CARGO.format("plain"),
    "plain/src/lib.rs": '#[path = "../shared/part.rs"]\npub mod part;\n',
    "plain/shared/part.rs": "pub fn part_function() -> u32 {\n    4\n}\n",
    "plain/src/bin/tool.rs": "fn main() {}\n\npub fn tool_function() -> u32 {\n    5\n}\n",
    "plain/examples/show.rs": "fn main() {}\n\npub fn shown_function() -> u32 {\n    6\n}\n",
}

OFFERED = {
    "offered_function": "code/entry.rs",
    "included_function": "code/table.in.rs",
    "part_function": "plain/shared/part.rs",
    "Kind/Lonely": "code/kinds.rs",
    "Kind/Wide/breadth": "code/kinds.rs",
    "Measured/UNIT": "code/kinds.rs",
}

OTHERS = {
    "hidden_function": "code/entry.rs",
    "Private/Alone": "code/kinds.rs",
    "shown_function": "plain/examples/show.rs",
    "tool_function": "plain/src/bin/tool.rs",
}


async def test_what_a_library_offers_is_neither_unused_nor_deleted(tmp_path: Path) -> None:
    root = written(tmp_path / "offered", FILES)
    async with asker(tmp_path, root, {"included_optional_tools": ["find_unused_symbols"]}) as client:
        unused = text_of(await client.result("find_unused_symbols"))
        for name, file in OFFERED.items():
            refused = text_of(await client.result("safe_delete_symbol", name_path=name, relative_path=file))
            assert "It may be referenced from elsewhere: it is exported" in refused, name
        for name, file in OTHERS.items():
            deleted = await client.result("safe_delete_symbol", name_path=name, relative_path=file)
            assert not deleted["isError"], text_of(deleted)
    found = {one["name_path"] for one in json.loads(unused.splitlines()[0])["unused"]}
    assert found >= {"hidden_function", "shown_function", "tool_function"}
    assert not found & OFFERED.keys()


ENTRIES = """\
#[cfg_attr(not(feature = "plain"), no_mangle)]
extern "C" fn started() {}

#[doc(hidden)] #[no_mangle]
extern "C" fn stopped() {}

#[cfg_attr(
    not(feature = "plain"),
    no_mangle,
)]
extern "C" fn resumed() {}

#[cfg_attr(
    feature = "plain",
    inline,
)]
fn idle() {}
"""
"""What is called by the names that linkers see, and what is not."""


async def test_what_an_attribute_hands_to_the_linker_is_not_deleted(tmp_path: Path) -> None:
    files = {"Cargo.toml": CARGO.format("entered") + "\n[features]\nplain = []\n", "src/lib.rs": ENTRIES}
    root = written(tmp_path / "entered", files)
    async with asker(tmp_path, root) as client:
        for name in ("started", "stopped", "resumed"):
            refused = text_of(await client.result("safe_delete_symbol", name_path=name, relative_path="src/lib.rs"))
            assert "It may be referenced from elsewhere: it is decorated" in refused, name
        deleted = await client.result("safe_delete_symbol", name_path="idle", relative_path="src/lib.rs")
    assert not deleted["isError"], text_of(deleted)


DOCTESTS = {
    "Cargo.toml": CARGO.format("tested"),
    ".serena/project.yml": "validation:\n  exported: report\n",
    "src/lib.rs": """\
/// ```
/// assert_eq!(tested::Helper::assist(), 3);
/// hidden();
/// ```
/// It does not idle.
pub struct Other;
pub struct Helper;
impl Helper {
    pub fn assist() -> i32 { 3 }
    pub fn idle() {}
    fn hidden() {}
}
pub fn used() -> (Other, Helper) { (Other, Helper) }
""",
}


async def test_what_a_doctest_names_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "tested", DOCTESTS)) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="assist")
        assert "the doctest in src/lib.rs:1 names it" in text_of(refused), text_of(refused)
        for name in ("idle", "hidden"):
            deleted = await ask.result("safe_delete_symbol", name_path=name, dry_run=True)
            assert not deleted["isError"], text_of(deleted)
