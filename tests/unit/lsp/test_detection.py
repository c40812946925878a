"""Which language a file is where its name alone does not decide: markers near it, its first line, the settings."""

from pathlib import Path

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.detection import Detection


def detection(root: Path, *only: str) -> Detection:
    return Detection(root, catalogue(), only)


@pytest.mark.parametrize(
    ("path", "marker", "near", "elsewhere"),
    [
        ("sub/a.ts", "sub/deno.json", "deno", "typescript"),
        ("sub/deep/a.ts", "deno.jsonc", "deno", "typescript"),
        ("sub/a.m", "sub/model.mlx", "matlab", "cpp"),
        ("a.v", "_CoqProject", "coq", "verilog"),
        ("a.v", "v.mod", "vlang", "verilog"),
        ("play/site.yml", "ansible.cfg", "ansible", "yaml"),
        ("docker-compose.yml", "ansible.cfg", "compose", "compose"),
        ("a.inc", "project.lpi", "pascal", None),
    ],
)
def test_markers_near_a_file_decide(tmp_path: Path, path: str, marker: str, near: str, elsewhere: str | None) -> None:
    assert detection(tmp_path).language_of(path) == elsewhere
    (tmp_path / marker).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / marker).touch()
    assert detection(tmp_path).language_of(path) == near


def test_the_nearest_marker_wins(tmp_path: Path) -> None:
    (tmp_path / "proofs").mkdir()
    (tmp_path / "v.mod").touch()
    (tmp_path / "proofs" / "_CoqProject").touch()
    known = detection(tmp_path)
    assert known.language_of("a.v") == "vlang"
    assert known.language_of("proofs/a.v") == "coq"


def test_the_settings_decide_before_markers(tmp_path: Path) -> None:
    assert detection(tmp_path, "matlab").language_of("a.m") == "matlab"
    assert detection(tmp_path, "python").language_of("a.m") is None


def test_a_new_marker_counts_at_once_and_says_which_others_may_change(tmp_path: Path) -> None:
    known = detection(tmp_path)
    assert [known.language_of(path) for path in ("a.ts", "a.py")] == ["typescript", "python"]
    assert list(known.changed(["a.ts"])) == []
    assert known.language_of("a.ts") == "typescript"
    (tmp_path / "deno.json").touch()
    assert list(known.changed(["deno.json"])) == ["a.ts"]
    assert known.language_of("a.ts") == "deno"
    (tmp_path / "deno.json").unlink()
    assert list(known.changed(["deno.json", "a.ts"])) == []
    assert known.language_of("a.ts") == "typescript"


def test_a_script_is_known_by_its_first_line_until_it_changes(tmp_path: Path) -> None:
    script = tmp_path / "manage"
    script.write_text("#!/usr/bin/env python3\nprint()\n")
    known = detection(tmp_path)
    assert known.language_of("manage") == "python"
    script.write_text("#!/bin/bash\n")
    assert known.language_of("manage") == "python"
    known.changed(["manage"])
    assert known.language_of("manage") == "bash"
    assert detection(tmp_path, "go").language_of("manage") is None


def test_only_files_whose_names_say_nothing_are_read(tmp_path: Path) -> None:
    for name in ("tool", "tool.xyz", "LICENSE", "a.py"):
        (tmp_path / name).write_text("#!/usr/bin/env ruby\n")
    known = detection(tmp_path)
    known.remember(known.read_scripts(["tool", "tool.xyz", "a.py", "gone"]))
    assert known.language_of("tool") == "ruby"
    assert known.language_of("tool.xyz") is None
    assert known.language_of("a.py") == "python"
    assert known.language_of("gone") is None


def test_data_is_searched_where_the_settings_name_it(tmp_path: Path) -> None:
    assert detection(tmp_path).is_searched("python")
    assert not detection(tmp_path).is_searched("json")
    assert detection(tmp_path, "json").is_searched("json")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("/w/target/debug/libshop.rlib: /w/src/lib.rs\n\n/w/src/lib.rs:\n", None),
        ("build/main.o: src/main.c \\\n  src/main.h\n", None),
        ("# made by a tool\nmain.o main.d : main.c\n", None),
        ("target/with\\ space/x.o: a.c\n", None),
        ("a/" * 1000, "d"),
        ("", None),
        ("#!/usr/sbin/dtrace -s\nsyscall:::entry {}\n", None),
        ("module shop.cart;\n", "d"),
        ("import std.stdio : writeln;\n", "d"),
        ("// http://example.com: a page\nint total;\n", "d"),
        ("/** Cart: what is bought. */\nmodule cart;\n", "d"),
        ("@safe:\nint total;\n", "d"),
        ("extern(C): int total;\n", "d"),
        ("#!/usr/bin/env rdmd\nvoid main() {}\n", "d"),
    ],
)
def test_what_compilers_write_for_make_is_no_d(tmp_path: Path, text: str, language: str | None) -> None:
    (tmp_path / "main.d").write_text(text)
    assert detection(tmp_path).language_of("main.d") == language
    known = detection(tmp_path)
    known.remember(known.read_scripts(["main.d", "other.py"]))
    (tmp_path / "main.d").unlink()
    assert known.language_of("main.d") == language
    known.changed(["main.d"])
    assert known.language_of("main.d") is None


def test_a_file_named_build_is_bazels_in_a_workspace_of_bazel_alone(tmp_path: Path) -> None:
    assert [detection(tmp_path).language_of(path) for path in ("BUILD", "a/BUILD", "WORKSPACE")] == [None] * 3
    assert detection(tmp_path).language_of("rules.bzl") == "starlark"
    (tmp_path / "MODULE.bazel").touch()
    assert detection(tmp_path).language_of("a/BUILD") == "starlark"


def test_what_is_known_of_one_file_is_used_for_others_only_where_it_holds_for_them(tmp_path: Path) -> None:
    """Every pattern of the catalogue as a name, in one folder after the other, twice, as a loop over a tree asks."""
    (tmp_path / "near").mkdir()
    for marker in ("deno.json", "ansible.cfg", "v.mod"):
        (tmp_path / "near" / marker).touch()
    patterns = [pattern for language in catalogue().languages.values() for pattern in language.patterns]
    forms = [pattern.replace("*", stem) for pattern in patterns for stem in ("a", "a.b", "A.spec", "compose.x")]
    names = [*forms, "README", "x.ts.c", "docker-compose.yml", "a.component.html", "a.blade.php"]
    known = detection(tmp_path)
    for folder in ("near/", "", "near/", "far/"):
        for name in names:
            assert known.kind_of(folder + name) == detection(tmp_path).kind_of(folder + name), folder + name
