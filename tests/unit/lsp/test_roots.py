from pathlib import Path

import msgspec.structs
import pytest

from serena_central.lsp.catalogue import Roots, catalogue
from serena_central.lsp.roots import server_root
from tests.support.fakes import FAKE_SPEC


def touch(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(("policy", "expected"), [("nearest", "a/b"), ("topmost", "a"), ("project", "")])
def test_the_policy_chooses_among_the_folders_with_a_marker(tmp_path: Path, policy: str, expected: str) -> None:
    touch(tmp_path, "a/m.toml", "a/b/m.toml", "a/b/c/x.py")
    spec = msgspec.structs.replace(FAKE_SPEC, roots=msgspec.convert({"markers": [["m.toml"]], "policy": policy}, Roots))
    assert server_root(spec, tmp_path, tmp_path / "a/b/c/x.py") == tmp_path / expected


def test_a_stronger_marker_further_up_beats_a_weaker_one_near_the_file(tmp_path: Path) -> None:
    touch(tmp_path, "a/strong.x", "a/b/weak", "a/b/x.py")
    spec = msgspec.structs.replace(FAKE_SPEC, roots=Roots(markers=(("*.x",), ("weak",)), policy="nearest"))
    assert server_root(spec, tmp_path, tmp_path / "a/b/x.py") == tmp_path / "a"


def test_markers_above_the_project_and_files_outside_mean_the_project(tmp_path: Path) -> None:
    touch(tmp_path, "m", "p/x.py", "other/x.py")
    spec = msgspec.structs.replace(FAKE_SPEC, roots=Roots(markers=(("m",),), policy="nearest"))
    assert server_root(spec, tmp_path / "p", tmp_path / "p/x.py") == tmp_path / "p"
    assert server_root(spec, tmp_path / "p", tmp_path / "other/x.py") == tmp_path / "p"


def test_a_go_file_belongs_to_its_module_or_to_the_workspace_that_uses_it(tmp_path: Path) -> None:
    gopls = catalogue().server("gopls")
    touch(tmp_path, "one/go.mod", "one/sub/x.go", "two/go.mod", "two/x.go", "lost/x.go")
    assert server_root(gopls, tmp_path, tmp_path / "one/sub/x.go") == tmp_path / "one"
    assert server_root(gopls, tmp_path, tmp_path / "lost/x.go") == tmp_path
    touch(tmp_path, "go.work", text='go 1.26\nuse (\n\t./one // the first\n\t"./three"\n)\n')
    assert server_root(gopls, tmp_path, tmp_path / "one/sub/x.go") == tmp_path
    assert server_root(gopls, tmp_path, tmp_path / "two/x.go") == tmp_path / "two"
    touch(tmp_path, "go.work", text="use ./two\n")
    assert server_root(gopls, tmp_path, tmp_path / "two/x.go") == tmp_path


def test_a_rust_file_belongs_to_the_workspace_around_its_package(tmp_path: Path) -> None:
    rust = catalogue().server("rust-analyzer")
    touch(tmp_path, "ws/crates/a/Cargo.toml", "ws/crates/a/src/lib.rs", "single/Cargo.toml", "single/src/main.rs")
    touch(tmp_path, "ws/Cargo.toml", text='[workspace]\nmembers = ["crates/*"]\n')
    assert server_root(rust, tmp_path, tmp_path / "ws/crates/a/src/lib.rs") == tmp_path / "ws"
    assert server_root(rust, tmp_path, tmp_path / "single/src/main.rs") == tmp_path / "single"
    touch(tmp_path, "rust-project.json")
    assert server_root(rust, tmp_path, tmp_path / "ws/crates/a/src/lib.rs") == tmp_path
