"""Every language server that pip or npm can get is installed for real, started, and asked for a file's symbols.

This asks the registries, and so is no part of `make test`: `make smoke` runs it. What was installed stays in `build/`.
"""

import os
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import InstallFailed, Unsupported
from serena_central.core.places import Places
from serena_central.files.text import read_text
from serena_central.lsp.answers import DocumentSymbol
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.installers.install import install, recipes_of
from serena_central.lsp.locate import locate
from serena_central.projects.languages.syntax_access import is_flat
from tests.smoke.samples import SAMPLES
from tests.support.fakes import running

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HOME = Path(os.environ.get("SMOKE_HOME", Path(__file__).parents[2] / "build" / "smoke-home"))

PIP_AND_NPM = ("pip", "npm")

INSTALLABLE = sorted(spec.name for spec in catalogue().servers.values() if recipes_of(spec, PIP_AND_NPM))

ELSEWHERE = {
    "fish-lsp": "starts only where the shell fish is installed",
    "graphql-lsp": "one of its dependencies asks for a version that npm does not have",
    "purescript-language-server": "needs purs, which its installer fetches from the makers' releases",
}
"""What pip and npm alone can't get, and why."""

WITHOUT_SYMBOLS = {
    "ansible-language-server", "cmake-language-server", "docker-compose-langserver",
    "sql-language-server",
}  # fmt: skip
"""Servers that don't list symbols: their entries say so in `note`."""

FLAT = {"bash-language-server", "buf", "docker-langserver", "elm-language-server", "fortls", "vscode-html"}
"""Servers that answer flat; what is edited by their word is tested in `test_flat_servers`."""

FEW = {"angular-language-server", "autotools-language-server", "docker-langserver"}
"""They answer, with names of their own or none: `FROM` for a stage of a Dockerfile."""


@pytest.mark.parametrize("name", [name for name in INSTALLABLE if name not in ELSEWHERE])
async def test_it_is_installed_and_lists_the_symbols_of_a_small_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")  # a new Node.js
    spec = catalogue().server(name)
    sample = SAMPLES[spec.languages[0]]
    file = tmp_path / sample.file
    for path, text in {sample.file: sample.text, **sample.beside}.items():
        (tmp_path / path).write_text(text)
    places = Places(HOME)
    with anyio.fail_after(600):
        try:
            await install(spec, places, methods=PIP_AND_NPM, tell=print)
        except InstallFailed as error:
            if "or newer is required" not in str(error):
                raise
            pytest.skip(str(error))
        launch = locate(spec, tmp_path, places, untrusted=None)
        server = LanguageServer(spec, tmp_path, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
        async with running(server):
            await server.ready()
            if name in WITHOUT_SYMBOLS:
                with pytest.raises(Unsupported):
                    await server.document_symbols(file)
            else:
                symbols = await server.document_symbols(file)
                assert is_flat(symbols) is (name in FLAT)
                found = list(names(symbols))
                assert name in FEW or any("hello" in one.lower() for one in found), found


def names(symbols: Sequence[DocumentSymbol]) -> Iterator[str]:
    for symbol in symbols:
        yield symbol.name
        yield from names(symbol.children)
