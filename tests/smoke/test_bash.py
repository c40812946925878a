"""The real language server of Bash takes in every file that it is shown, however early. `make smoke` runs it."""

from pathlib import Path

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.installers.install import install
from serena_central.lsp.locate import locate
from tests.smoke.test_servers import HOME, PIP_AND_NPM
from tests.support.fakes import running

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_files_that_it_is_asked_about_at_its_start_have_symbols(tmp_path: Path) -> None:
    spec, places = catalogue().server("bash-language-server"), Places(HOME)
    files = [tmp_path / f"{number}.ebuild" for number in range(8)]  # it does not read these by itself
    for file in files:
        file.write_text("hello() { echo 1; }\n")
    with anyio.fail_after(600):
        await install(spec, places, methods=PIP_AND_NPM, tell=print)
        launch = locate(spec, tmp_path, places, untrusted=None)
        found: dict[Path, list[str]] = {}

        async def ask(server: LanguageServer, file: Path) -> None:
            found[file] = [one.name for one in await server.document_symbols(file)]

        server = LanguageServer(spec, tmp_path, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
        async with running(server), anyio.create_task_group() as tasks:
            for file in files:
                tasks.start_soon(ask, server, file)
    assert found == {file: ["hello"] for file in files}
