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
        assert asks_for_a_build([tmp_path / path], folders), path
        assert not asks_for_a_build([tmp_path / path], [tmp_path])  # no script was run
    assert not asks_for_a_build([*(tmp_path / path for path in others), out / "made.rs", out / "data"], folders)
    assert built_files(folders) == [out / "made.rs"]
