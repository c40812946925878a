"""By which names code elsewhere mentions the package of a file."""

from pathlib import Path

import pytest

from serena_central.projects.superrepo.mentions import mentions


@pytest.mark.parametrize(
    ("files", "path", "language", "names"),
    [
        ({"backend/go.mod": "// x\nmodule example.com/a/v2 // y\n"}, "backend/store/x.go", "go", ["example.com/a/v2"]),
        ({"go.mod": "go 1.21\n"}, "x.go", "go", []),
        ({"package.json": '{"name": "@x/ui"}'}, "src/a/b.ts", "typescript", ["@x/ui", "module"]),
        ({"package.json": "[{]"}, "a.js", "javascript", []),
        ({"Cargo.toml": '[package]\nname = "match-engine"\n'}, "src/lib.rs", "rust", ["match_engine"]),
        ({"Cargo.toml": '[package]\nname = "a"\n[lib]\nname = "b"\n'}, "src/lib.rs", "rust", ["b", "a"]),
        ({"Cargo.toml": "package = 3\n"}, "src/lib.rs", "rust", []),
        ({"src/shop/__init__.py": "", "src/shop/sub/__init__.py": ""}, "src/shop/sub/x.py", "python", ["shop"]),
        ({}, "space/shop/x.py", "python", ["x", "space"]),
        ({}, "tool.py", "python", ["tool"]),
        ({"__init__.py": ""}, "tool.py", "python", ["tool", "module"]),
        ({"__init__.py": ""}, "__init__.py", "python", ["module"]),
        ({}, "a.cpp", "cpp", []),
    ],
)
def test_names_come_from_the_nearest_manifest(
    tmp_path: Path, files: dict[str, str], path: str, language: str, names: list[str]
) -> None:
    root = tmp_path / "module"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert mentions(root, path, language) == names
