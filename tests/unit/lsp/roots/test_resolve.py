"""The policies of the catalogue's entries, and the two resolvers that know a toolchain's own rules."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import msgspec.structs
import pytest

from serena_central.core.errors import NoServerRoot
from serena_central.core.nofollow import read_following
from serena_central.lsp.catalogue import Roots, catalogue
from serena_central.lsp.roots import Manifests, ServerRoot, server_root
from tests.support.fakes import FAKE_SPEC


def touch(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(("policy", "expected"), [("nearest", "a/b"), ("topmost", "a"), ("project", "")])
def test_the_policy_chooses_among_the_folders_with_a_marker(tmp_path: Path, policy: str, expected: str) -> None:
    touch(tmp_path, "a/m.toml", "a/b/m.toml", "a/b/c/x.py")
    spec = msgspec.structs.replace(FAKE_SPEC, roots=msgspec.convert({"markers": [["m.toml"]], "policy": policy}, Roots))
    folder = tmp_path / expected
    assert server_root(spec, tmp_path, tmp_path / "a/b/c/x.py") == ServerRoot(folder, folder)


def test_a_stronger_marker_further_up_beats_a_weaker_one_near_the_file(tmp_path: Path) -> None:
    touch(tmp_path, "a/strong.x", "a/b/weak", "a/b/x.py")
    spec = msgspec.structs.replace(FAKE_SPEC, roots=Roots(markers=(("*.x",), ("weak",)), policy="nearest"))
    assert server_root(spec, tmp_path, tmp_path / "a/b/x.py").root == tmp_path / "a"


def test_markers_above_the_project_and_files_outside_mean_the_project(tmp_path: Path) -> None:
    touch(tmp_path, "m", "p/x.py", "other/x.py")
    spec = msgspec.structs.replace(FAKE_SPEC, roots=Roots(markers=(("m",),), policy="nearest"))
    assert server_root(spec, tmp_path / "p", tmp_path / "p/x.py").root == tmp_path / "p"
    assert server_root(spec, tmp_path / "p", tmp_path / "other/x.py").root == tmp_path / "p"


def go(boundary: Path, file: str) -> ServerRoot:
    return server_root(catalogue().server("gopls"), boundary, boundary / file)


def test_modules_of_a_project_share_a_server_in_which_each_is_a_folder(tmp_path: Path) -> None:
    touch(tmp_path, "one/go.mod", "one/sub/x.go", "two/go.mod", "two/x.go")
    alone = {"GOWORK": "off"}
    assert go(tmp_path, "one/sub/x.go") == ServerRoot(tmp_path, tmp_path / "one", alone)
    assert go(tmp_path, "two/x.go") == ServerRoot(tmp_path, tmp_path / "two", alone)


def test_a_go_file_in_no_module_has_no_server(tmp_path: Path) -> None:
    touch(tmp_path, "go.mod", "project/lost/x.go", "project/one/go.mod")
    with pytest.raises(NoServerRoot, match=r"no go\.mod .* up to .*project\. `go mod init`"):
        go(tmp_path / "project", "lost/x.go")


def test_the_go_work_that_uses_a_module_is_its_root(tmp_path: Path) -> None:
    touch(tmp_path, "one/go.mod", "one/x.go", "two/go.mod", "two/x.go", "ws/three/go.mod", "ws/three/x.go")
    touch(tmp_path, "go.work", text='go 1.26\nuse (\n\t./one // the first\n\t"./ws/three"\n)\n')
    together = ServerRoot(tmp_path, tmp_path, {"GOWORK": str(tmp_path / "go.work")})
    assert go(tmp_path, "one/x.go") == together
    assert go(tmp_path, "ws/three/x.go") == together
    assert go(tmp_path, "two/x.go") == ServerRoot(tmp_path, tmp_path / "two", {"GOWORK": "off"})
    touch(tmp_path, "ws/go.work", text="use ./three\n")
    assert go(tmp_path, "ws/three/x.go").root == tmp_path / "ws"


def test_a_go_work_is_of_the_workspace_that_it_makes(tmp_path: Path) -> None:
    touch(tmp_path, "one/go.mod")
    touch(tmp_path, "go.work", text="use ./one\n")
    assert go(tmp_path, "go.work") == go(tmp_path, "one/x.go")


def test_the_module_graph_leads_to_replaced_used_and_copied_modules(tmp_path: Path) -> None:
    project = tmp_path / "project"
    touch(project, "go.mod", text="module x\n\nreplace x/far => ../far\n// replace x/gone => ../gone\n")
    touch(project, "vendor/modules.txt", "work/app/go.mod")
    assert go(project, "x.go").reads == {tmp_path / "far", project / "vendor"}
    touch(project, "work/go.work", text="use (\n\t./app\n\t../../used\n)\n\nreplace x/other => ../../other\n")
    touch(tmp_path, "used/go.mod", text="module used\n\nreplace x/deep => ./deep\n")
    expected = {tmp_path / "used", tmp_path / "other", tmp_path / "used/deep"}
    assert go(project, "work/app/x.go").reads == expected


def test_a_go_work_outside_the_project_does_not_count(tmp_path: Path) -> None:
    touch(tmp_path, "one/go.mod", "one/x.go")
    touch(tmp_path, "go.work", text="use ./one\n")
    assert go(tmp_path / "one", "x.go") == ServerRoot(tmp_path / "one", tmp_path / "one", {"GOWORK": "off"})


@pytest.mark.parametrize("folder", ["vendor/a", "testdata/a", "node_modules/a", ".cache/a", "sub/testdata"])
def test_modules_of_others_and_of_tests_are_not_the_projects(tmp_path: Path, folder: str) -> None:
    touch(tmp_path, "go.mod", f"{folder}/go.mod", f"{folder}/x.go")
    assert go(tmp_path, f"{folder}/x.go").folder == tmp_path


def cargo(boundary: Path, file: str) -> Path:
    found = server_root(catalogue().server("rust-analyzer"), boundary, boundary / file)
    assert found.root == found.folder
    return found.root


def packages(root: Path, *folders: str) -> None:
    for folder in folders:
        name = folder.replace("/", "-")
        text = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n'
        touch(root, f"{folder}/Cargo.toml", text=text)
        touch(root, f"{folder}/src/lib.rs")


def test_a_rust_file_belongs_to_the_workspace_around_its_package(tmp_path: Path) -> None:
    packages(tmp_path, "ws/crates/a", "single")
    touch(tmp_path, "ws/Cargo.toml", text='[workspace]\nmembers = ["crates/*"]\n')
    assert cargo(tmp_path, "ws/crates/a/src/lib.rs") == tmp_path / "ws"
    assert cargo(tmp_path, "single/src/lib.rs") == tmp_path / "single"
    touch(tmp_path, "rust-project.json")
    assert cargo(tmp_path, "ws/crates/a/src/lib.rs") == tmp_path


def test_a_manifest_that_can_not_be_read_is_a_package_of_its_own(tmp_path: Path) -> None:
    touch(tmp_path, "a/src/lib.rs")
    touch(tmp_path, "a/Cargo.toml", text="[package\n")
    assert cargo(tmp_path, "a/src/lib.rs") == tmp_path / "a"
    (tmp_path / "a/Cargo.toml").write_bytes(b"\xff\xfe")
    assert cargo(tmp_path, "a/src/lib.rs") == tmp_path / "a"


def test_cargo_says_the_same(tmp_path: Path) -> None:
    packages(tmp_path, "ws/crates/a", "ws/own", "ws/out", "ws/out/kept", "far")
    touch(
        tmp_path,
        "ws/Cargo.toml",
        text='[workspace]\nmembers = ["crates/*", "out/kept", "../far"]\nexclude = ["out", "own"]\nresolver = "2"\n',
    )
    far = tmp_path / "far/Cargo.toml"
    far.write_text(far.read_text() + 'workspace = "../ws"\n')
    for package in ("ws/crates/a", "ws/own", "ws/out", "ws/out/kept", "far"):
        command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"]
        told = subprocess.run(command, cwd=tmp_path / package, check=True, capture_output=True).stdout
        assert cargo(tmp_path, f"{package}/src/lib.rs") == Path(json.loads(told)["workspace_root"]), package


def test_a_workspace_outside_the_project_does_not_count(tmp_path: Path) -> None:
    packages(tmp_path, "ws/crates/a")
    touch(tmp_path, "ws/Cargo.toml", text='[workspace]\nmembers = ["crates/*"]\n')
    assert cargo(tmp_path / "ws/crates", "a/src/lib.rs") == tmp_path / "ws/crates/a"


def test_the_manifests_of_a_go_work_are_read_once_for_all_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = [f"staging/m{number}" for number in range(20)]
    for module in modules:
        others = "".join(f"replace x/{other} => ../../{other}\n" for other in modules)
        touch(tmp_path, f"{module}/go.mod", text=f"module x/{module}\n{others}")
    touch(tmp_path, "go.work", text="use (\n" + "".join(f"\t./{module}\n" for module in modules) + ")\n")
    touch(tmp_path, "alone/go.mod", text="module alone\nreplace x => ../staging/m0\n")
    read: list[Path] = []

    def noted(path: Path) -> bytes:
        read.append(path)
        return read_following(path)

    monkeypatch.setattr("serena_central.lsp.roots.go.read_following", noted)
    spec, manifests = catalogue().server("gopls"), Manifests()
    for folder in [*modules, "alone"]:
        for part in range(10):
            server_root(spec, tmp_path, tmp_path / folder / f"part{part}/x.go", manifests)
    times = Counter(path for path in read if path.exists())
    assert len(times) == len(modules) + 2
    assert max(times.values()) <= 2  # the go.work: what it uses, and what it replaces
