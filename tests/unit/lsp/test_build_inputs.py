"""Which changes a build script is run again for, by what it said and where Cargo keeps that."""

from pathlib import Path

import pytest

from serena_central.lsp.build_inputs import asks_for_a_build, built_files


@pytest.mark.parametrize(
    ("said", "inputs", "others"),
    [
        ("", ["data/a.txt", "build.rs"], ["src/lib.rs", "Cargo.toml"]),
        ("cargo:rerun-if-env-changed=CC\n", ["data/a.txt"], ["src/lib.rs"]),
        ("cargo::rerun-if-changed=./data/\r\n", ["data/a.txt", "member/data/b.txt", "build.rs"], ["x/mydata/a.txt"]),
        ("cargo:rerun-if-changed=build.rs\ncargo:rerun-if-changed=src/a.proto\n", ["src/a.proto"], ["src/b.proto"]),
        ("cargo:rerun-if-changed={root}/data\n", ["data/a.txt"], ["other.txt"]),
        ("cargo:rerun-if-changed=../proto/a.proto\n", ["proto/a.proto"], ["proto/b.proto"]),
        ("cargo:rerun-if-changed=src/..//proto\n", ["proto/a.proto"], ["other.txt"]),
        ("cargo:rerun-if-changed=build.rs\ncargo:rerun-if-changed=.\n", ["data/a.txt"], ["src/lib.rs"]),
    ],
)
def test_a_script_is_run_for_what_it_names_or_else_for_all_but_sources(
    tmp_path: Path, said: str, inputs: list[str], others: list[str]
) -> None:
    out = tmp_path / "target/debug/build/made-1/out"
    out.mkdir(parents=True)
    (out.parent / "output").write_bytes(said.replace("{root}", str(tmp_path)).encode())
    (out / "made.rs").touch()
    folders = [tmp_path, out, tmp_path / "gone/out"]
    for path in inputs:
        assert asks_for_a_build([tmp_path / path], folders, tmp_path), path
        assert not asks_for_a_build([tmp_path / path], [tmp_path], tmp_path)  # no script was run
    assert not asks_for_a_build(
        [*(tmp_path / path for path in others), out / "made.rs", out / "data"], folders, tmp_path
    )
    assert built_files(folders) == [out / "made.rs"]


def test_macros_are_built_again_for_their_packages_sources_and_not_for_what_a_build_makes(tmp_path: Path) -> None:
    out = tmp_path / "root/macros/target/debug/build/macros-1/out"
    for folder in (out, tmp_path / "root/app/src", tmp_path / "root/macros/src"):
        folder.mkdir(parents=True)
    (out.parent / "output").write_text("cargo:rerun-if-changed=build.rs")
    (tmp_path / "root/Cargo.toml").write_text("[workspace]\n")
    (tmp_path / "root/app/Cargo.toml").write_text("[lib]\n# proc-macro = true\n")
    (tmp_path / "root/macros/Cargo.toml").write_text("[lib]\nproc-macro = true\n")
    root = tmp_path / "root"
    assert asks_for_a_build([root / "macros/src/lib.rs"], [], root)
    assert not asks_for_a_build([root / "macros/src/lib.rs"], [], root / "app")
    assert not asks_for_a_build([root / "macros/README.md", root / "app/src/lib.rs"], [], root)
    assert not asks_for_a_build([out / "made.rs"], [out], root)


def test_many_changes_are_compared_with_all_that_many_scripts_name_at_once(tmp_path: Path) -> None:
    """One after another, each with each, they take minutes."""
    folders = [tmp_path / f"target/debug/build/made-{number}/out" for number in range(100)]
    for folder in folders:
        folder.mkdir(parents=True)
        names = "".join(f"cargo:rerun-if-changed=proto/{name}.proto\n" for name in range(500))
        (folder.parent / "output").write_text(names)
    changed = [tmp_path / f"texts/{number}.txt" for number in range(5000)]
    assert not asks_for_a_build(changed, folders, tmp_path)
    assert asks_for_a_build([*changed, tmp_path / "proto/7.proto"], folders, tmp_path)
