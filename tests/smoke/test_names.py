"""By syntax, the symbols of real packages have the name paths and kinds that the language server gives them.

`make smoke ARGS="-k both_tell_the_same -rP"` fetches the packages, installs the servers, and prints the table that
stands in benchmarks/README.md.
"""

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.files.text import read_text
from serena_central.lsp.answers import SymbolKind
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.installers.install import install
from serena_central.lsp.locate import locate
from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.symbols.syntax.outline import outline
from tests.smoke.compiled import compiled, is_complete
from tests.smoke.packages import BUILD, from_cargo, from_debian, from_go, from_npm, from_pypi
from tests.smoke.test_servers import HOME
from tests.support.fakes import running
from tests.support.servers import SERVERS_HOME, with_core_servers

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EQUAL = 0.99
"""The share of the symbols told by either that must have one path and kind for both."""


class Package(NamedTuple):
    """`get` fetches it and gives its root; `files` are what is compared, `flags` what clangd compiles them with."""

    title: str
    server: str
    get: Callable[[], Path]
    files: tuple[str, ...]
    flags: str = ""
    language: str = ""


def _leveldb() -> Path:
    return from_npm("leveldown", "6.1.1") / "deps"


_LEVELDB = ("leveldb/leveldb-1.20", "snappy/snappy", "snappy/linux")

PACKAGES = {
    "python": Package("flask 3.1.1", "ty", lambda: from_pypi("flask", "3.1.1"), ("src/**/*.py",)),
    "go": Package("cobra 1.9.1", "gopls", lambda: from_go("github.com/spf13/cobra", "1.9.1"), ("*.go",)),
    "rust": Package(
        "serde_json 1.0.140", "rust-analyzer", lambda: from_cargo("serde_json", "1.0.140"), ("src/**/*.rs",)
    ),
    "typescript": Package("zod 3.25.76", "typescript", lambda: from_npm("zod", "3.25.76"), ("src/**/*.ts",)),
    "typescriptreact": Package(
        "react-aria-components 1.7.1",
        "typescript",
        lambda: from_npm("react-aria-components", "1.7.1"),
        ("src/**/*.tsx",),
    ),
    "javascript": Package("commander 14.0.0", "typescript", lambda: from_npm("commander", "14.0.0"), ("lib/*.js",)),
    "c": Package(
        "zlib 1.3.1",
        "clangd",
        lambda: from_cargo("libz-sys", "1.1.22") / "src" / "zlib",
        ("*.[ch]",),
        "-I.\n-DHAVE_UNISTD_H\n",
    ),
    "cpp": Package(
        "leveldb 1.20 and snappy 1.1.4",
        "clangd",
        _leveldb,
        tuple(f"{folder}/**/*.{suffix}" for folder in _LEVELDB for suffix in ("cc", "h")),
        "-xc++\n-std=c++17\n-DLEVELDB_PLATFORM_POSIX\n-DOS_LINUX\n-Ileveldb/leveldb-1.20\n-Ileveldb/leveldb-1.20/include\n"
        "-Isnappy/snappy\n-Isnappy/linux\n",
    ),
    "bash": Package(
        "bats 1.12.0",
        "bash-language-server",
        lambda: from_npm("bats", "1.12.0"),
        ("*.sh", "bin/*", "lib/**/*.bash", "libexec/**/bats*"),
    ),
    "php": Package(
        "twig of Debian", "intelephense", lambda: from_debian("php-twig") / "usr/share/php/Twig", ("**/*.php",)
    ),
}


class Told(NamedTuple):
    path: str
    kind: int


NAMELESS = -1

FROM_MACRO = SymbolKind.NULL
"""What clangd calls a macro's use that defines something."""


def told_by(file: FileSymbols) -> dict[tuple[int, int], Told]:
    """Where a name stands → its path and kind. What has no name stands somewhere in its line, and what a macro makes
    nowhere: its use stands for all of it."""
    found: dict[tuple[int, int], Told] = {}
    made = set[int]()
    for place, symbol in enumerate(file.symbols):
        if symbol.container in made or (symbol.container >= 0 and file.symbols[symbol.container].kind == FROM_MACRO):
            made.add(place)
            continue
        column = NAMELESS if symbol.name.startswith("(anonymous") else symbol.name_column
        found[symbol.name_line, column] = Told(file.name_path(place), symbol.kind)
    return found


def are_equal(server: Told | None, own: Told | None) -> bool:
    """Whether both tell the same of a place. The syntax knows a macro's use as what it looks like, or not at all."""
    if server is not None and server.kind == FROM_MACRO:
        return own is None or own.path == server.path
    return server == own


def sources(root: Path, package: Package) -> Iterator[Path]:
    """Its files, but for links, and for headers that the compiler refuses by themselves: clangd guesses at these."""
    found = {path for pattern in package.files for path in root.glob(pattern)}
    for path in sorted(found):
        if path.is_file() and not path.is_symlink() and (not package.flags or is_complete(path, root)):
            yield path


async def places_with(server: str, home: Path) -> Places:
    """Where a server is installed: the core ones by `make servers`, the others now, from their registries."""
    if server == "ty" or (Places(SERVERS_HOME).servers / server).exists():
        return with_core_servers(Places(home))
    await install(catalogue().server(server), Places(HOME), tell=print)
    return Places(HOME)


@pytest.mark.parametrize("language", PACKAGES)
async def test_both_tell_the_same_of_a_real_package(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")  # a new Node.js
    package = PACKAGES[language]
    BUILD.mkdir(parents=True, exist_ok=True)
    root = package.get()
    if package.flags:
        (root / "compile_flags.txt").write_text(package.flags)
    spec = catalogue().server(package.server)
    both = files = 0
    different: list[str] = []
    with anyio.fail_after(1800):
        places = await places_with(package.server, tmp_path)
        launch = locate(spec, root, places, untrusted=None)
        server = LanguageServer(spec, root, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
        async with running(server):
            await server.ready()
            for path in sources(root, package):
                servers = told_by(flatten(await server.document_symbols(path)))
                source = compiled(path, root) if package.flags else path.read_bytes()
                own = told_by(flatten(outline(language, source)[0]))
                files += 1
                both += len(servers.keys() & own.keys())
                different += [
                    f"{path.relative_to(root)}:{at[0] + 1}: {servers.get(at)} {own.get(at)}"
                    for at in servers.keys() | own.keys()
                    if not are_equal(servers.get(at), own.get(at))
                ]
    share = 1 - len(different) / max(both, 1)
    row = f"| {language} | {package.title} | {spec.name} | {files} | {both} | {len(different)} | {share:.1%} |"
    sys.stdout.write("\n".join((*sorted(different), row, "")))
    assert both > 100
    assert share >= EQUAL, different
