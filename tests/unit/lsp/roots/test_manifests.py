"""Manifests of a repository that are no files: each is as one that is not there, and nothing waits for it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from serena_central.agents.runners import codex, gemini
from serena_central.lsp import build_inputs, links
from serena_central.lsp.roots import cargo, go, neighbours
from serena_central.lsp.roots.place import ServerRoot

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "go.work": ("go.work", go.used_modules),
    "go.mod": ("go.mod", go.replaced_modules),
    "Cargo.toml": ("Cargo.toml", lambda file: cargo._manifest(file.parent)),
    "macros": ("Cargo.toml", lambda file: build_inputs._makes_macros(file.parent)),
    "build script": ("output", lambda file: build_inputs.built_files([file.parent / "out"])),
    "users": (
        "Cargo.toml",
        lambda file: [*neighbours._cargo_users(file.parent, ServerRoot(file.parent, file.parent), [file])],
    ),
    "package.json": ("package.json", links._name),
    "codex": ("config.toml", codex._configured),
    "gemini": (".gemini/settings.json", lambda file: gemini._name(file.parent.parent) != "serena"),
}


def pipe(file: Path) -> None:
    os.mkfifo(file)


def endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices in the file system")
@pytest.mark.parametrize("made", [pipe, endless])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_counts_as_missing(tmp_path: Path, reader: str, made: Callable[[Path], None]) -> None:
    name, read = READERS[reader]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    made(file)
    assert not read(file)
