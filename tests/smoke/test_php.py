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


async def test_a_property_is_renamed_where_it_stands_with_and_without_its_sigil(tmp_path: Path) -> None:
    box = (
        "<?php\nclass Box {\n    public int $size = 1;\n    public static int $made = 0;\n"
        "    public function __construct(private string $label) { self::$made++; }\n"
        "    public function grow(): string { return $this->label . ++$this->size; }\n}\n"
    )
    use = (
        "<?php\n$box = new Box('x');\necho $box->size, Box::$made, \"{$box->size}\";\n"
        "function f($any) { return $any->size; }\n"
    )
    root = written(tmp_path / "shop", {"composer.json": "{}", "box.php": box, "use.php": use})
    async with asking(tmp_path, root) as ask:
        deleted = await ask.result("safe_delete_symbol", name_path="Box/$size", relative_path="box.php")
        assert "cannot rule out references in use.php:3" in text_of(deleted)
        wrong = await ask.result("rename_symbol", name_path="Box/$size", relative_path="box.php", new_name="width")
        assert "Pass '$width'" in text_of(wrong)
        for name in ("size", "made", "label"):
            named = {"name_path": f"Box/${name}", "relative_path": "box.php", "new_name": f"$new_{name}"}
            renamed = await ask.result("rename_symbol", **named)
            assert not renamed["isError"], renamed
            if name == "size":
                assert "cannot resolve (check each): use.php:3" in str(renamed["content"])
    for name in ("size", "made", "label"):
        box, use = (text.replace(f"${name}", f"$new_{name}").replace(f">{name}", f">new_{name}") for text in (box, use))
    assert (root / "box.php").read_text() == box
    assert (root / "use.php").read_text() == use.replace("$any->new_size", "$any->size")


GREETS = (
    "<?php\nnamespace Shop;\n\ntrait Greets {\n    protected string $greeting = 'Hello';\n"
    "    public function greet(): string { return $this->greeting; }\n}\n"
)
ITEM = (
    "<?php\nnamespace Shop;\n\nclass Item implements \\Countable {\n    use Greets;\n"
    "    public function count(): int { return 1; }\n    public function __get($name) { return $name; }\n"
    "    private function idle() { return array_map(function ($x) { return $x; }, []); }\n}\n"
)


async def test_what_the_language_or_a_base_calls_is_kept_and_so_is_a_file_s_namespace(tmp_path: Path) -> None:
    files = {
        "composer.json": "{}",
        "src/Greets.php": GREETS,
        "src/Item.php": ITEM,
        "use.php": "<?php\necho new Shop\\Item;\n",
    }
    root = written(tmp_path / "shop", files)
    async with asking(tmp_path, root) as ask:
        for name, why in (
            ("Item/count", "it may be an override"),
            ("Item/__get", "the language calls it by its name"),
            ("Shop", "where all that follows it in the file belongs"),
        ):
            deleted = await ask.result("safe_delete_symbol", name_path=name, relative_path="src/Item.php")
            assert why in text_of(deleted), deleted
        namespace = {"name_path": "Shop", "relative_path": "src/Item.php", "new_name": "Store"}
        assert "renames no namespaces" in text_of(await ask.result("rename_symbol", **namespace))
        assert {path: (root / path).read_text() for path in files} == files
        unused = json.loads((await ask.result("find_unused_symbols"))["content"][0]["text"])["unused"]
        assert [(one["name_path"], one["confidence"]) for one in unused if "Item" in one["relative_path"]] == [
            ("Item/idle", "high")
        ]
        trait = {"name_path": "Greets", "relative_path": "src/Greets.php", "new_name": "Welcomes"}
        renamed = await ask.result("rename_symbol", **trait)
        assert "src/Greets.php is still called Greets" in str(renamed["content"])
        greeting = {"name_path": "Welcomes/$greeting", "relative_path": "src/Greets.php", "new_name": "$words"}
        assert not (await ask.result("rename_symbol", **greeting))["isError"]
    assert (root / "src/Greets.php").read_text() == GREETS.replace("greeting", "words").replace("Greets", "Welcomes")
    assert (root / "src/Item.php").read_text() == ITEM.replace("Greets", "Welcomes")
