"""Modules that use another one by path, and that no server loads together with it."""

from pathlib import Path

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.roots import server_root, users_elsewhere


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def users(root: Path, server: str, file: str) -> list[str]:
    spec = catalogue().server(server)
    files = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    place = server_root(spec, root, root / file)
    return [folder.relative_to(root).as_posix() for folder in users_elsewhere(spec, root, place, files)]


def go_modules(root: Path, replaced: str) -> None:
    write(
        root,
        {
            "lib/go.mod": "module x/lib\n",
            "app/go.mod": f"module x/app\n\nrequire x/lib v0.0.0\n\n{replaced}\n",
            "app/vendor/own/go.mod": "module x/own\n\nreplace x/lib => ../../../lib\n",
            "other/go.mod": "module x/other\n\nreplace x/third => ../third\n// replace x/lib => ../lib\n",
        },
    )


@pytest.mark.parametrize(
    "replaced",
    ["replace x/lib => ../lib", "replace x/lib v1.0.0 => ../lib // near", "replace (\n\tx/lib => ../lib/\n)"],
)
def test_a_module_that_replaces_another_one_by_its_folder_uses_it(tmp_path: Path, replaced: str) -> None:
    go_modules(tmp_path, replaced)
    assert users(tmp_path, "gopls", "lib/x.go") == ["app"]
    assert users(tmp_path, "gopls", "app/x.go") == []


def test_modules_that_a_go_work_joins_are_no_users_elsewhere(tmp_path: Path) -> None:
    go_modules(tmp_path, "replace x/lib => ../lib")
    write(tmp_path, {"go.work": "use (\n\t./lib\n\t./app\n)\n"})
    assert users(tmp_path, "gopls", "lib/x.go") == []
    write(tmp_path, {"third/go.mod": "module x/third\n\nreplace x/lib => ../lib\n"})
    assert users(tmp_path, "gopls", "lib/x.go") == ["third"]


@pytest.mark.parametrize(
    "dependency",
    [
        '[dependencies]\nlib = { path = "../lib" }',
        '[dev-dependencies.lib]\npath = "../lib"',
        "[target.'cfg(unix)'.dependencies]\nlib = { path = \"../lib\" }",
    ],
)
def test_a_package_of_another_workspace_that_depends_by_path_uses_it(tmp_path: Path, dependency: str) -> None:
    write(
        tmp_path,
        {
            "lib/Cargo.toml": '[package]\nname = "lib"\n[lib]\npath = "src/lib.rs"\n',
            "app/Cargo.toml": f'[package]\nname = "app"\n{dependency}\n',
            "other/Cargo.toml": '[package]\nname = "other"\n[lib]\npath = "../lib/src/lib.rs"\n',
            "broken/Cargo.toml": "[package",
        },
    )
    assert users(tmp_path, "rust-analyzer", "lib/src/lib.rs") == ["app"]
    write(tmp_path, {"Cargo.toml": '[workspace]\nmembers = ["lib", "app"]\n'})
    assert users(tmp_path, "rust-analyzer", "lib/src/lib.rs") == []
