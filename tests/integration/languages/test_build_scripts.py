"""What build scripts and procedural macros of Rust make, by the real rust-analyzer: as fresh as what people write."""

from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import CARGO, written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

MADE = {
    "Cargo.toml": CARGO.format("made"),
    "build.rs": """\
use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=names/all.txt");
    let names = fs::read_to_string("names/all.txt").unwrap();
    let made: String = names.lines().map(|name| format!("pub fn {name}() {{}}\\n")).collect();
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("made.rs"), made).unwrap();
}
""",
    "names/all.txt": "one\n",
    "src/lib.rs": """\
include!(concat!(env!("OUT_DIR"), "/made.rs"));

pub fn first() {
    one();
    two();
}
""",
    ".gitignore": "/target\n",
}


async def test_a_build_script_is_run_again_when_what_it_reads_has_changed(tmp_path: Path) -> None:
    root = written(tmp_path / "made", MADE)
    async with asker(tmp_path, root, {"trusted_roots": [str(root)]}, rust_std=True) as client:

        async def is_declared(name: str) -> bool:
            answer = await client.result("find_declaration", relative_path="src/lib.rs", regex=rf"({name})\(\);")
            assert answer["isError"] or "made.rs" in text_of(answer)
            return not answer["isError"]

        assert [await is_declared("one"), await is_declared("two")] == [True, False]
        (root / "names/all.txt").write_text("two\n")
        assert [await is_declared("one"), await is_declared("two")] == [False, True]
        (root / "build.rs").write_text(MADE["build.rs"].replace("{name}()", "one() {{}} pub fn {name}()"))
        assert [await is_declared("one"), await is_declared("two")] == [True, True]


MACROS = {
    "Cargo.toml": '[workspace]\nmembers = ["app", "macros"]\nresolver = "2"\n',
    "macros/Cargo.toml": CARGO.format("macros") + "\n[lib]\nproc-macro = true\n",
    "macros/src/lib.rs": """\
use proc_macro::TokenStream;

#[proc_macro]
pub fn declare(_: TokenStream) -> TokenStream {
    "pub struct Made { pub one: i32 }".parse().unwrap()
}
""",
    "app/Cargo.toml": CARGO.format("app") + '\n[dependencies]\nmacros = { path = "../macros" }\n',
    "app/src/lib.rs": """\
macros::declare!();

pub fn first(made: Made) -> i32 {
    made.one
}

pub fn second(made: Made) -> i32 {
    made.two
}
""",
    ".gitignore": "/target\n",
}


async def test_a_procedural_macro_is_built_again_when_it_has_changed(tmp_path: Path) -> None:
    root = written(tmp_path / "made", MACROS)
    async with asker(tmp_path, root, {"trusted_roots": [str(root)]}, rust_std=True) as client:

        async def unknown() -> list[str]:
            answer = await client.result("get_diagnostics_for_file", relative_path="app/src/lib.rs")
            return [field for field in ("one", "two") if f"no field `{field}`" in text_of(answer)]

        assert await unknown() == ["two"]
        (root / "macros/src/lib.rs").write_text(MACROS["macros/src/lib.rs"].replace("one: i32", "two: i32"))
        assert await unknown() == ["one"]
