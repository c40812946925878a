from pathlib import Path

import pytest

from serena_central.core.errors import ConfigError
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.catalogue.registry import load

LANGUAGES = '[python]\ntitle = "Python"\nserver = "mine"\nfiles = { python = ["*.py"] }\n'
SERVER = 'name = "mine"\ntitle = "Mine"\nlanguages = ["python"]\nlaunch = { command = ["{bin:mine}"] }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "servers").mkdir()
    (tmp_path / "languages.toml").write_text(LANGUAGES)
    (tmp_path / "servers" / "mine.toml").write_text(SERVER)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "language", "identifier"),
    [
        ("src/a.py", "python", "python"),
        ("a.PY", "python", "python"),
        ("stub.d.ts", "typescript", "typescript"),
        ("x/y.tsx", "typescript", "typescriptreact"),
        ("m.mjs", "typescript", "javascript"),
        ("go.mod", "go", "go.mod"),
        ("lib.rs", "rust", "rust"),
        ("a.c", "cpp", "c"),
        ("a.C", "cpp", "cpp"),
        ("a.h", "cpp", "cpp"),
        ("README", None, None),
        (".py", "python", "python"),
        ("python", None, None),
        ("dir.py/file", None, None),
    ],
)
def test_a_file_has_the_language_of_its_name(path: str, language: str | None, identifier: str | None) -> None:
    assert (catalogue().language_of(path), catalogue().identifier_of(path)) == (language, identifier)


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("#!/usr/bin/python3", "python"),
        ("#!/usr/bin/env python3\n", "python"),
        ("#!/usr/bin/env -S PYTHONPATH=x python3 -u", "python"),
        ("#! /usr/bin/env node", "typescript"),
        ("#!/bin/sh", None),
        ("#!", None),
        ("import os", None),
    ],
)
def test_a_script_has_the_language_of_its_first_line(line: str, language: str | None) -> None:
    assert catalogue().language_of_shebang(line) == language


def test_every_entry_is_complete() -> None:
    known = catalogue()
    assert {"ty", "pyrefly", "basedpyright", "typescript", "gopls", "rust-analyzer", "clangd"} <= set(known.servers)
    for spec in known.servers.values():
        assert spec.launch.command[0].startswith("{bin:")
        assert spec.install
        assert spec.how_to_get
        assert spec.watch.globs
        if spec.readiness.kind == "progress":
            assert spec.readiness.titles
        if spec.readiness.kind == "log":
            assert spec.readiness.pattern
        if spec.readiness.kind == "notification":
            assert spec.readiness.method
    for language in known.languages:
        assert language in known.default_server(language).languages


def test_the_default_server_comes_first() -> None:
    assert [spec.name for spec in catalogue().servers_of("python")] == ["ty", "basedpyright", "pyrefly"]
    server = catalogue().for_file("x/y.py")
    assert server
    assert server.name == "ty"
    assert catalogue().for_file("notes.txt") is None


def test_unknown_names_are_errors_that_list_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no language server; known are .*ty"):
        catalogue().server("tie")
    with pytest.raises(ConfigError, match=r"no language; known are .*python"):
        catalogue().default_server("pithon")


def test_a_sound_folder_loads(folder: Path) -> None:
    assert load(folder).server("mine").title == "Mine"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("servers/mine.toml", SERVER + "memory = 5\n", "unknown field `memory`"),
        ("servers/mine.toml", SERVER + 'memory_mb = "many"\n', r"memory_mb: Expected `int`"),
        ("servers/mine.toml", SERVER + 'deny = ["flying"]\n', r"deny\[0\]: Invalid enum value 'flying'"),
        ("servers/mine.toml", SERVER + "[", "TOML"),
        ("servers/mine.toml", SERVER.replace('"mine"', '"other"', 1), "must be the file's name"),
        ("servers/mine.toml", SERVER.replace('["python"]', '["cobol"]'), "cobol not in languages.toml"),
        ("languages.toml", LANGUAGES.replace('"mine"', '"none"'), "no server for it"),
        ("languages.toml", LANGUAGES.replace("title", "tittle"), "tittle"),
    ],
)
def test_a_mistake_is_an_error_that_names_file_and_key(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(folder)
