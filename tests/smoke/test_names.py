"""By syntax, the symbols of real packages have the name paths and kinds that the language server gives them.

Packages come from their registries, at fixed versions, and stay in `build/packages`; `make smoke` runs it.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import locate
from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.symbols.syntax.outline import outline
from tests.support.fakes import running
from tests.support.servers import with_core_servers

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BUILD = Path(__file__).parents[2] / "build" / "packages"

EQUAL = 0.99
"""The share of symbols told by both that must have one path and kind."""


def python_package() -> Path:
    root = BUILD / "flask-3.1.1"
    if not root.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
        subprocess.run([*pip, "--dest", str(BUILD), "flask==3.1.1"], check=True)
        with tarfile.open(BUILD / "flask-3.1.1.tar.gz") as archive:
            archive.extractall(BUILD, filter="data")
    return root


def go_package() -> Path:
    environment = {**os.environ, "GOMODCACHE": str(BUILD / "go"), "GOFLAGS": "-modcacherw"}
    command = ["go", "mod", "download", "-json", "github.com/spf13/cobra@v1.9.1"]
    told = subprocess.run(command, check=True, capture_output=True, env=environment, cwd=BUILD)
    return Path(json.loads(told.stdout)["Dir"])


def rust_package() -> Path:
    user = BUILD / "rust"
    (user / "src").mkdir(parents=True, exist_ok=True)
    (user / "src" / "lib.rs").write_text("")
    (user / "Cargo.toml").write_text('[package]\nname = "x"\n[workspace]\n[dependencies]\nserde_json = "=1.0.140"\n')
    environment = {**os.environ, "CARGO_HOME": str(BUILD / "cargo")}
    subprocess.run(["cargo", "fetch", "--quiet"], check=True, env=environment, cwd=user)
    return next((BUILD / "cargo" / "registry" / "src").glob("*/serde_json-1.0.140"))


class Package(NamedTuple):
    server: str
    get: Callable[[], Path]
    files: str


PACKAGES = {
    "python": Package("ty", python_package, "src/**/*.py"),
    "go": Package("gopls", go_package, "*.go"),
    "rust": Package("rust-analyzer", rust_package, "src/**/*.rs"),
}


def told_by(file: FileSymbols) -> dict[tuple[int, int], tuple[str, int]]:
    """Where a name stands → its path and kind."""
    return {
        (symbol.name_line, symbol.name_column): (file.name_path(place), symbol.kind)
        for place, symbol in enumerate(file.symbols)
    }


@pytest.mark.parametrize("language", PACKAGES)
async def test_both_tell_the_same_of_a_real_package(language: str, tmp_path: Path) -> None:
    package = PACKAGES[language]
    BUILD.mkdir(parents=True, exist_ok=True)
    root = package.get()
    spec = catalogue().server(package.server)
    places = Places(tmp_path)
    with_core_servers(places)
    launch = locate(spec, root, places, untrusted=None)
    server = LanguageServer(spec, root, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
    both = 0
    different: list[str] = []
    with anyio.fail_after(600):
        async with running(server):
            await server.ready()
            for path in sorted(root.glob(package.files)):
                servers = told_by(flatten(await server.document_symbols(path)))
                own = told_by(flatten(outline(language, path.read_bytes())[0]))
                both += len(servers.keys() & own.keys())
                different += [
                    f"{path.name}: {servers.get(at)} {own.get(at)}"
                    for at in servers.keys() | own.keys()
                    if servers.get(at) != own.get(at)
                ]
    assert both > 500
    assert len(different) <= (1 - EQUAL) * both, different
