import json
import re
from pathlib import Path

import msgspec
import pytest

from serena_central.core.errors import ConfigError
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.catalogue.page import page
from serena_central.lsp.catalogue.registry import load

LANGUAGES = '[python]\ntitle = "Python"\nserver = "mine"\nfiles = { python = ["*.py"] }\n'
SERVER = 'name = "mine"\ntitle = "Mine"\nlanguages = ["python"]\nlaunch = { command = ["{bin:mine}"] }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "servers").mkdir()
    (tmp_path / "languages.toml").write_text(LANGUAGES)
    (tmp_path / "servers" / "mine.toml").write_text(SERVER)
    return tmp_path


FILES = {
    "src/a.py": ("python", "python"),
    "a.PY": ("python", "python"),
    "SConstruct": ("python", "python"),
    "stub.d.ts": ("typescript", "typescript"),
    "x/y.tsx": ("typescript", "typescriptreact"),
    "m.mjs": ("typescript", "javascript"),
    "go.mod": ("go", "go.mod"),
    "lib.rs": ("rust", "rust"),
    "a.c": ("cpp", "c"),
    "a.C": ("cpp", "cpp"),
    "a.h": ("cpp", "cpp"),
    "a.m": ("cpp", "objective-c"),
    "solver.F90": ("fortran", "fortran"),
    "model.R": ("r", "r"),
    "Dockerfile": ("dockerfile", "dockerfile"),
    "deploy/Dockerfile.dev": ("dockerfile", "dockerfile"),
    "web.dockerfile": ("dockerfile", "dockerfile"),
    "docker-compose.dev.yml": ("compose", "dockercompose"),
    "compose.yaml": ("compose", "dockercompose"),
    "ci.yml": ("yaml", "yaml"),
    "CMakeLists.txt": ("cmake", "cmake"),
    "notes.txt": (None, None),
    "Makefile": ("make", "makefile"),
    "BUILD.bazel": ("starlark", "starlark"),
    "Gemfile": ("ruby", "ruby"),
    "Jenkinsfile": ("groovy", "groovy"),
    "x.component.html": ("angular", "html"),
    "x.html": ("html", "html"),
    "tsconfig.json": ("json", "jsonc"),
    "tsconfig.build.json": ("json", "jsonc"),
    "package.json": ("json", "json"),
    "top.v": ("verilog", "verilog"),
    "top.sv": ("verilog", "systemverilog"),
    "main.app.src": ("erlang", "erlang"),
    "README": (None, None),
    ".py": ("python", "python"),
    "python": (None, None),
    "dir.py/file": (None, None),
}


@pytest.mark.parametrize("path", FILES)
def test_a_file_has_the_language_of_its_name(path: str) -> None:
    language, identifier = FILES[path]
    assert catalogue().language_of(path) == language
    if language:
        assert catalogue().identifier_of(path, [language]) == identifier


def test_a_file_whose_name_says_nothing_is_of_the_servers_first_language() -> None:
    assert catalogue().identifier_of("bin/run", ["python"]) == "python"
    assert catalogue().identifier_of("bin/run", ["of a user's own"]) == "of a user's own"


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("#!/usr/bin/python3", "python"),
        ("#!/usr/bin/env python3\n", "python"),
        ("#!/usr/bin/env -S PYTHONPATH=x python3 -u", "python"),
        ("#! /usr/bin/env node", "typescript"),
        ("#!/bin/sh", "bash"),
        ("#!/usr/bin/env unheard-of", None),
        ("#!", None),
        ("import os", None),
    ],
)
def test_a_script_has_the_language_of_its_first_line(line: str, language: str | None) -> None:
    assert catalogue().language_of_shebang(line) == language


CORE = {"python": "ty", "typescript": "typescript", "go": "gopls", "rust": "rust-analyzer", "cpp": "clangd"}

PLACEHOLDERS = re.compile(r"\{([a-z]+)(?::[^}]*)?\}")

PINNED = {
    "pip": re.compile(r"^[\w.-]+(\[[\w,-]+\])?==\d[\w.]*$"),
    "npm": re.compile(r"^(@[\w.-]+/)?[\w.-]+@\d[\w.-]*$"),
    "go": re.compile(r"^[\w.-]+(/[\w.-]+)+@v\d[\w.-]*$"),
    "cargo": re.compile(r"^[\w-]+@\d[\w.]*$"),
    "apt": re.compile(r"^[a-z0-9.+-]+$"),
}


def test_there_are_at_least_eighty_languages_and_the_core_ones_keep_their_servers() -> None:
    known = catalogue()
    assert len(known.languages) >= 80
    for language, server in CORE.items():
        assert known.languages[language].server == server


@pytest.mark.parametrize("language", catalogue().languages)
def test_a_language_has_files_and_a_server_or_says_why_it_has_none(language: str) -> None:
    entry = catalogue().languages[language]
    assert entry.patterns
    assert entry.title
    assert bool(entry.server) != bool(entry.without)
    assert catalogue().servers_of(language), "no server knows it"


@pytest.mark.parametrize("name", catalogue().servers)
def test_a_servers_entry_is_complete(name: str) -> None:
    spec = catalogue().servers[name]
    assert spec.languages
    assert bool(spec.launch.command) != bool(spec.launch.connect)
    assert all(part.startswith("{bin:") for part in spec.launch.command[:1])
    assert spec.watch.globs or spec.watch.by_itself
    readiness = spec.readiness
    needed = {"none": "", "progress": readiness.titles, "log": readiness.pattern, "notification": readiness.method}
    assert bool(needed[readiness.kind]) == (readiness.kind != "none")
    assert 0 < readiness.grace_s <= readiness.cap_s <= 120
    re.compile(readiness.pattern)
    texts = json.dumps([*spec.launch.command, spec.launch.env, spec.initialization_options])
    assert set(PLACEHOLDERS.findall(texts)) <= {"bin", "root", "cache", "cpus", "jobs", "modules", "tsdk"}


@pytest.mark.parametrize("name", catalogue().servers)
def test_each_way_to_install_is_pinned_or_says_where_to_go(name: str) -> None:
    spec = catalogue().servers[name]
    assert spec.install
    assert spec.how_to_get
    for recipe in spec.install:
        if form := PINNED.get(recipe.via):
            assert recipe.packages
            assert all(form.match(package) for package in recipe.packages), recipe.packages
        if recipe.via in ("pip", "npm", "go", "cargo"):
            program = next(iter(re.findall(r"\{bin:([^}]+)\}", " ".join(spec.launch.command))))
            assert recipe.binary.rpartition("/")[2] == program
            assert recipe.version
        assert recipe.via != "apt" or recipe.binary  # packages are unpacked into a folder of ours
        assert recipe.via != "manual" or recipe.url.startswith("https://")


def test_dead_names_lead_to_living_servers() -> None:
    known = catalogue()
    assert known.server("pyls").name == "ty"
    assert known.server("sumneko_lua").name == "lua-language-server"
    dead = [name for spec in known.servers.values() for name in spec.formerly]
    assert len(dead) == len(set(dead))
    assert not set(dead) & set(known.servers)


def test_other_names_of_languages_are_understood() -> None:
    assert catalogue().language("javascript") == "typescript"
    assert catalogue().language("C++") == "cpp"
    assert catalogue().language("Python") == "python"


def test_the_default_server_comes_first() -> None:
    names = [spec.name for spec in catalogue().servers_of("python")]
    assert names[0] == "ty"
    assert {"pyrefly", "basedpyright", "pyright", "zuban"} <= set(names)


def test_unknown_names_are_errors_that_list_the_known_ones_or_name_the_one_that_is_close() -> None:
    with pytest.raises(ConfigError, match=r"not a known language server.* .*ty"):
        catalogue().server("tie")
    with pytest.raises(ConfigError, match=r"not a known language\. Did you mean python\?"):
        catalogue().default_server("Pithon")
    with pytest.raises(ConfigError, match=r"not a known language\. Known languages: .* python,"):
        catalogue().default_server("qqq")


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
        ("languages.toml", LANGUAGES.replace('"mine"', '"none"'), "not a server for it"),
        ("languages.toml", LANGUAGES.replace("title", "tittle"), "tittle"),
    ],
)
def test_a_mistake_is_an_error_that_names_file_and_key(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(folder)


def test_the_page_of_languages_is_current() -> None:
    written = Path(__file__).parents[4] / "docs" / "languages.md"
    assert written.read_text(encoding="utf-8") == page(catalogue()), "run `make docs`"


@pytest.mark.parametrize("spec", catalogue().servers.values(), ids=lambda spec: spec.name)
def test_every_entry_says_what_it_executes_of_a_project(spec: ServerSpec) -> None:
    assert spec.executes is not None
    if spec.restricted is not None:
        # What it gets then is ours, not a library that might be found in the project.
        how = msgspec.json.encode([spec.launch, spec.initialization_options]).decode()
        assert "{modules}" not in how
        assert "{tsdk}" not in how


def test_what_says_nothing_is_taken_to_execute_everything(folder: Path) -> None:
    (spec,) = load(folder).servers.values()
    assert (spec.restricted, spec.executed) == (None, "code")


def test_a_restricted_mode_without_a_statement_does_not_count(folder: Path) -> None:
    (folder / "servers" / "mine.toml").write_text(f'{SERVER}[untrusted]\nlacks = "much"\n')
    (spec,) = load(folder).servers.values()
    assert spec.restricted is None
