"""Packages that a project names and that are not on this machine are told, with the command that gets them."""

import json
from pathlib import Path

import pytest

from serena_central.lsp.roots.dependencies import Kind, ProjectDependencies, look


def note(kind: Kind, root: Path, folder: Path | None = None, **environ: str) -> str | None:
    return look(
        kind, root, folder or root, {"CARGO_HOME": f"{root}/.cargo", "GOMODCACHE": f"{root}/.mod", **environ}
    ).note


def write(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name.replace("_", ".")).write_text(text)
    return root


def npm(root: Path, **dependencies: str) -> Path:
    return write(root, package_json=json.dumps({"dependencies": dependencies}))


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("package-lock.json", "npm ci"),
        ("yarn.lock", "yarn install"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("README.md", "npm install"),
    ],
)
def test_npm_packages_that_are_missing_are_told_with_the_command_of_their_lock_file(
    tmp_path: Path, lock: str, command: str
) -> None:
    root = npm(tmp_path / "shop", zod="4", left="1", right="1", up="1")
    (root / lock).touch()
    assert note("npm", root) == (
        "4 npm packages not installed (left, right, up and 1 more): third-party imports from there are unknown; "
        f"`{command}` in {root} installs them."
    )
    for name in ("zod", "left", "right", "up"):
        (root / "node_modules" / name).mkdir(parents=True)
    assert note("npm", root) is None


def test_node_modules_of_a_workspace_and_of_a_folder_above_the_project_count(tmp_path: Path) -> None:
    root = npm(tmp_path / "work" / "shop", zod="4")
    inner = npm(root / "packages" / "cart", react="19")
    (root / "node_modules" / "zod").mkdir(parents=True)
    (root / "node_modules" / "react").mkdir()
    assert note("npm", root, inner / "src") is None
    (root / "node_modules" / "react").rmdir()
    (tmp_path / "work" / "node_modules" / "react").mkdir(parents=True)
    assert note("npm", root, inner) == (
        f"third-party imports are resolved in {tmp_path}/work/node_modules, which belongs to a folder above the "
        "project."
    )


def test_what_is_no_manifest_needs_nothing(tmp_path: Path) -> None:
    root = write(tmp_path, package_json="[1]", Cargo_toml="[", go_mod="\0")
    assert [note(kind, root) for kind in ("npm", "cargo", "go", "")] == [None] * 4


LOCK = """\
[[package]]
name = "shop"
version = "0.1.0"

[[package]]
name = "serde"
version = "1.0.200"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""


def test_crates_of_the_lock_file_are_looked_for_in_cargos_registry_and_in_vendor(tmp_path: Path) -> None:
    root = write(tmp_path, Cargo_toml='[workspace]\nmembers = ["cart"]\n', Cargo_lock=LOCK)
    member = write(root / "cart", Cargo_toml='[package]\nname = "cart"\n[dependencies]\nserde = "1"\n')
    said = f"1 crate not installed (serde-1.0.200): third-party imports from there are unknown; `cargo fetch` in {root}"
    assert (note("cargo", root, member / "src") or "").startswith(said)
    (tmp_path / ".cargo" / "registry" / "src" / "index" / "serde-1.0.200").mkdir(parents=True)
    assert note("cargo", root, member) is None
    assert note("cargo", root, member, CARGO_HOME=f"{tmp_path}/nowhere")
    (root / "vendor").mkdir()
    assert note("cargo", root, member, CARGO_HOME=f"{tmp_path}/nowhere") is None


def test_without_a_lock_file_the_manifests_tell_which_crates_come_from_a_registry(tmp_path: Path) -> None:
    declared = '[dependencies]\nserde = "1"\nown = { path = "../own" }\nrenamed = { package = "rand", version = "1" }\n'
    root = write(tmp_path, Cargo_toml=f'[package]\nname = "cart"\n{declared}')
    assert (note("cargo", root) or "").startswith("2 crates not installed (serde, rand)")


GO_MOD = """\
module example.com/shop

go 1.24

require github.com/spf13/Cobra v1.9.1

require (
	example.com/own v0.0.0
	golang.org/x/mod v0.20.0 // comment
	golang.org/x/sys v0.20.0 // indirect
)

replace example.com/own => ../own
"""


def test_go_modules_that_are_required_directly_are_looked_for_in_the_module_cache(tmp_path: Path) -> None:
    root = write(tmp_path, go_mod=GO_MOD)
    assert (note("go", root) or "").startswith(
        "2 Go modules not installed (github.com/spf13/Cobra v1.9.1, golang.org/x/mod v0.20.0)"
    )
    (tmp_path / ".mod" / "github.com" / "spf13" / "!cobra@v1.9.1").mkdir(parents=True)
    assert (note("go", root) or "").startswith("1 Go module not installed (golang.org/x/mod v0.20.0)")
    (root / "vendor").mkdir()
    assert note("go", root) is None


def test_what_was_missing_is_looked_for_again_when_a_folder_changed_and_its_manifest_is_told(tmp_path: Path) -> None:
    root = npm(tmp_path / "shop", zod="4")
    (root / "src").mkdir()
    dependencies, arrived = ProjectDependencies(root), list[Path]()
    dependencies.asked("typescript", "npm", "src/a.ts")
    dependencies.look(arrived.append)
    assert list(dependencies.notes) == [("typescript", root)]
    (root / "node_modules" / "zod").mkdir(parents=True)
    dependencies.look(arrived.append)
    assert list(dependencies.notes) == [("typescript", root)]  # nothing was asked since
    dependencies.asked("typescript", "npm", "src/b.ts")
    dependencies.look(arrived.append)
    assert dependencies.notes == {}
    assert arrived == [root / "package.json"]


def test_what_a_go_work_uses_or_replaces_is_there(tmp_path: Path) -> None:
    uses = "use (\n\t./app\n\t./contracts // ours\n)"
    requires = "require (\n\texample.com/contracts v0.0.0\n\texample.com/tools v1.0.0\n\texample.com/far v1.0.0\n)\n"
    files = {
        "go.work": f"go 1.21\n\n{uses}\n\nreplace example.com/tools => ./third/tools\n",
        "app/go.mod": f"module example.com/app\n\ngo 1.21\n\n{requires}",
        "contracts/go.mod": "module example.com/contracts\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = look("go", tmp_path, tmp_path / "app", {"GOMODCACHE": str(tmp_path / "cache")})
    assert "1 Go module not installed (example.com/far v1.0.0)" in (found.note or "")
