"""The real language server of Bash takes in every file that it is shown, however early; what it can't know of a name is
told. `make smoke` runs it.
"""

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
from tests.support.languages import asker
from tests.support.mcp import text_of

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


async def test_a_function_whose_name_is_put_together_is_not_unused(tmp_path: Path) -> None:
    spec, places, root, more = (
        catalogue().server("bash-language-server"),
        Places(HOME),
        tmp_path / "shop",
        tmp_path / "more",
    )
    text = (
        "step_one() { echo 1; }\nmove_one() { echo 2; }\nlone() { echo 3; }\n"
        'for s in one; do "step_$s"; move_${s}; done\n'
    )
    (root / ".git").mkdir(parents=True)
    (root / "run.sh").write_text(text)
    more.mkdir()
    (more / spec.name).symlink_to(places.servers / spec.name)
    with anyio.fail_after(600):
        await install(spec, places, methods=PIP_AND_NPM, tell=print)
        async with asker(tmp_path, root, more=more) as ask:
            for beginning in ("step_", "move_"):
                deleted = await ask.result("safe_delete_symbol", name_path=f"{beginning}one", relative_path="run.sh")
                assert f"run.sh:3 a variable follows the beginning of its name, {beginning}" in text_of(deleted)
            assert not (await ask.result("safe_delete_symbol", name_path="lone", relative_path="run.sh"))["isError"]
    assert (root / "run.sh").read_text() == text.replace("lone() { echo 3; }\n", "")
