"""PHP's functions and classes have the same name in any case, and what is used without its name is kept: with its real
language server. `make smoke` runs it.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.installers.install import install
from tests.integration.languages.test_renamed_members import written
from tests.smoke.test_servers import HOME, PIP_AND_NPM
from tests.support.languages import Asker, asker
from tests.support.mcp import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FILES = {
    "composer.json": "{}",
    "lib.php": (
        "<?php\nfunction deploy() { return 1; }\nclass Cart {\n    public function total() { return 1; }\n"
        "    public function spare() { return 2; }\n}\n"
    ),
    "use.php": (
        "<?php\nrequire 'lib.php';\necho DEPLOY();\n$c = new CART();\necho $c->TOTAL();\n"
        "function f($x) { return $x->Spare(); }\n// DEPLOY in a comment\n"
    ),
}


@asynccontextmanager
async def asking(folder: Path, root: Path) -> AsyncGenerator[Asker]:
    with anyio.fail_after(600):
        await install(catalogue().server("intelephense"), Places(HOME), methods=PIP_AND_NPM, tell=print)
        more = folder / "more"
        more.mkdir()
        (more / "intelephense").symlink_to(Places(HOME).servers / "intelephense")
        async with asker(folder, root, more=more) as ask:
            yield ask


async def test_references_in_another_case_are_found_listed_and_renamed(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", FILES)
    async with asking(tmp_path, root) as ask:
        for name, line in (("deploy", 2), ("Cart", 3), ("Cart/total", 4)):
            deleted = await ask.result("safe_delete_symbol", name_path=name, relative_path="lib.php")
            assert f"referenced in use.php:{line}" in text_of(deleted), deleted
        found = await ask.result("find_referencing_symbols", name_path="Cart/spare", relative_path="lib.php")
        assert "use.php:5 in f" in str(found["content"])
        renamed = await ask.result("rename_symbol", name_path="deploy", relative_path="lib.php", new_name="ship")
        assert "comments: use.php:6" in str(renamed["content"])
    assert (root / "use.php").read_text() == FILES["use.php"].replace("DEPLOY()", "ship()")


async def test_what_is_called_in_another_case_is_not_unused(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", FILES)
    (root / "lib.php").write_text(
        FILES["lib.php"] + "function idle() { return 3; }\nfunction own() { return OWN(); }\n"
    )
    async with asking(tmp_path, root) as ask:
        answer = await ask.result("find_unused_symbols")
    found = json.loads(answer["content"][0]["text"])["unused"]
    assert [(one["name_path"], one["confidence"]) for one in found] == [
        ("idle", "high"),
        ("own", "medium"),
        ("f", "high"),
    ]
    assert "Cart/spare" in str(answer["content"][1:])
