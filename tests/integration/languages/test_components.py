"""Components of Vue beside modules of TypeScript, with the real servers of both: each knows uses of the other's."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from serena_central.projects.navigation import symbol_references
from tests.integration.languages.test_renamed_members import written
from tests.support.fake_server import DEFAULT_CAPABILITIES
from tests.support.fakes import FAKE_SERVER
from tests.support.languages import Asker, asker
from tests.support.mcp import text_of
from tests.support.scripted import REFERENCES, RENAME, SYMBOLS

pytestmark = pytest.mark.anyio

SHOP = """\
export interface Item { label: string }

export function useCart() {
  const items: Item[] = [];
  return { items };
}

export function priceOf(item: Item): number { return item.label.length; }
"""

ROW = """\
<script setup lang="ts">
import type { Item } from "./shop";
import { priceOf, useCart } from "./shop";
const { items } = useCart();
const first: Item = items[0];
function shown(): number { return priceOf(first); }
function idle(): number { return 1; }
</script>

<template>
  <p :title="first.label">{{ shown() }}</p>
</template>
"""

MODULE = {
    "package.json": '{"type": "module"}',
    "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "esnext", "moduleResolution": "bundler"}}',
    "src/shop.ts": SHOP,
}

AGAIN = """\
export { priceOf } from "./shop";
"""

OTHER = """\
<script setup lang="ts">
import { priceOf } from "./again";
const price = priceOf({ label: "x" });
</script>
"""

FILES = {**MODULE, "src/Row.vue": ROW}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine a real server may take longer to start than a find waits for it."""
    monkeypatch.setattr(symbol_references, "BESIDE_S", 120.0)


async def lines_of_uses(ask: Asker, name_path: str) -> set[str]:
    """Of a symbol of the module."""
    return {use.rpartition(":")[0] for use in await ask.uses(name_path, "src/shop.ts")}


async def test_components_and_modules_know_uses_of_each_other(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", FILES)
    module, component = root / "src/shop.ts", root / "src/Row.vue"
    async with asker(tmp_path, root, {"trusted_roots": [str(root)]}) as ask:
        assert await lines_of_uses(ask, "priceOf") == {"src/Row.vue:2", "src/Row.vue:5"}
        assert {"src/Row.vue:1", "src/Row.vue:4"} < await lines_of_uses(ask, "Item")
        module.write_text(f"// A line more.\n{SHOP}")
        refused = await ask.result("safe_delete_symbol", name_path="priceOf", relative_path="src/shop.ts")
        assert "It is referenced in src/Row.vue:2" in text_of(refused), text_of(refused)
        renamed = await ask.result("rename_symbol", name_path="priceOf", relative_path="src/shop.ts", new_name="costOf")
        assert module.read_text() == f"// A line more.\n{SHOP}".replace("priceOf", "costOf"), text_of(renamed)
        assert component.read_text() == ROW.replace("priceOf", "costOf"), text_of(renamed)
        assert "in files of other languages" not in str(renamed["content"])
        changed = "function shown(): number { return 2 * costOf(first); }"
        await ask.result("replace_symbol_body", name_path="shown", relative_path="src/Row.vue", body=changed)
        await ask.result("safe_delete_symbol", name_path="idle", relative_path="src/Row.vue")
        assert component.read_text() == ROW.replace("function idle(): number { return 1; }\n", "").replace(
            "return priceOf", "return 2 * priceOf"
        ).replace("priceOf", "costOf")


async def test_a_component_keeps_the_name_under_which_a_module_exports_a_renamed_symbol_again(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", {**FILES, "src/again.ts": AGAIN, "src/Other.vue": OTHER})
    async with asker(tmp_path, root, {"trusted_roots": [str(root)]}) as ask:
        renamed = await ask.result("rename_symbol", name_path="priceOf", relative_path="src/shop.ts", new_name="costOf")
    assert (root / "src/again.ts").read_text() == 'export { costOf as priceOf } from "./shop";\n', text_of(renamed)
    assert (root / "src/Other.vue").read_text() == OTHER
    assert (root / "src/Row.vue").read_text() == ROW.replace("priceOf", "costOf")


async def test_components_that_are_not_looked_into_are_named(tmp_path: Path) -> None:
    """Their server would execute what the project brings, which nobody trusts."""
    async with asker(tmp_path, written(tmp_path / "shop", FILES), {"trusted_roots": []}) as ask:
        found = await ask.result("find_referencing_symbols", name_path="priceOf", relative_path="src/shop.ts")
        deleted = await ask.result("safe_delete_symbol", name_path="Item/label", relative_path="src/shop.ts")
    assert "label also occurs in 'src/Row.vue', not looked into: " in text_of(deleted), text_of(deleted)
    said = found["content"][1]["text"]
    assert "priceOf also occurs in 'src/Row.vue', not looked into: " in said
    assert "To trust it: serena-central trust" in said


PACKAGES = {
    "package.json": '{"private": true, "workspaces": ["lib", "app"]}',
    "lib/package.json": '{"name": "@shop/lib", "type": "module", "exports": {".": "./shop.ts"}}',
    "lib/tsconfig.json": MODULE["tsconfig.json"],
    "lib/shop.ts": SHOP,
    "app/package.json": '{"type": "module"}',
    "app/tsconfig.json": MODULE["tsconfig.json"],
    "app/Row.vue": ROW.replace("./shop", "@shop/lib"),
}


async def test_a_component_of_a_package_uses_another_package_of_its_workspace(tmp_path: Path) -> None:
    """Which its server does not list: for it, each tsconfig.json makes a project of its own."""
    root = written(tmp_path / "shop", PACKAGES)
    (root / "node_modules/@shop").mkdir(parents=True)
    (root / "node_modules/@shop/lib").symlink_to("../../lib")
    async with asker(tmp_path, root, {"trusted_roots": [str(root)]}) as ask:
        uses = await ask.uses("priceOf", "lib/shop.ts")
        assert {use.rpartition(":")[0] for use in uses} == {"app/Row.vue:2", "app/Row.vue:5"}
        renamed = await ask.result("rename_symbol", name_path="priceOf", relative_path="lib/shop.ts", new_name="costOf")
    assert (root / "app/Row.vue").read_text() == PACKAGES["app/Row.vue"].replace("priceOf", "costOf"), text_of(renamed)
    assert (root / "lib/shop.ts").read_text() == SHOP.replace("priceOf", "costOf")


CALLS = 'import { priceOf } from "./shop";\npriceOf({ label: "x" });\n'
WHERE = {"name_path": "priceOf", "relative_path": "src/shop.ts"}
RESTARTABLE = ["restart_language_server"]


def put_fake_vue(tmp_path: Path, **script: Any) -> Path:
    """A folder of servers with a scripted one for Vue, as `asker` takes it."""
    program = tmp_path / "more/vue-language-server/2.0.0/node_modules/.bin/vue-language-server"
    program.parent.mkdir(parents=True, exist_ok=True)
    script = {"answers": {SYMBOLS: []}, "capabilities": {**DEFAULT_CAPABILITIES, "renameProvider": True}, **script}
    fake = [sys.executable, "-I", "-S", str(FAKE_SERVER), json.dumps(script)]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(fake)}\n")
    program.chmod(0o755)
    return tmp_path / "more"


async def test_a_component_s_server_that_hangs_holds_up_no_answer_about_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symbol_references, "BESIDE_S", 1.0)
    monkeypatch.setattr(symbol_references, "BESIDE_RENAMING_S", 1.0)
    monkeypatch.setattr(symbol_references, "BESIDE_AGAIN_S", 0.5)
    root = written(tmp_path / "shop", {**FILES, "src/use.ts": CALLS})
    more = put_fake_vue(tmp_path, hang_on=[REFERENCES, RENAME])
    settings = {"trusted_roots": [str(root)], "included_optional_tools": RESTARTABLE}
    async with asker(tmp_path, root, settings, more=more) as ask:
        for waited in ("1 s", "0.5 s", "0.25 s", "1 s"):  # it is started afresh before the last
            if waited == "1 s":
                await ask.result("restart_language_server")
            found = str((await ask.client.call("find_referencing_symbols", **WHERE))["content"])
            assert "src/use.ts" in found
            assert f"not looked into: the language server vue-language-server did not answer within {waited}" in found
        assert "did not answer within" in text_of(await ask.client.call("safe_delete_symbol", **WHERE))
        for waited in ("1 s", "0.5 s"):
            said = text_of(await ask.client.call("rename_symbol", **WHERE, new_name="costOf"))
            assert "Nothing was changed: priceOf also occurs in 'src/Row.vue', not looked into: the lang" in said
            assert f"vue-language-server did not answer within {waited}" in said
        assert (root / "src/shop.ts").read_text() == SHOP
        forced = await ask.client.call("rename_symbol", **WHERE, new_name="costOf", force=True)
        assert "Not renamed everywhere: priceOf also occurs in 'src/Row.vue', not looked into: " in str(forced)
    assert (root / "src/shop.ts").read_text() == SHOP.replace("priceOf", "costOf")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({"crash_on": [REFERENCES, RENAME]}, "exited unexpectedly"),
        ({"garbage_on": {REFERENCES: "framing"}}, "a header without Content-Length"),
        ({"garbage_on": {REFERENCES: "shape", RENAME: "shape"}}, "a place without a uri"),
        ({"errors": {REFERENCES: [-32603] * 9, RENAME: [-32603] * 9}}, "'as scripted' (-32603)"),
        ({"answers": {SYMBOLS: [], REFERENCES: None, RENAME: None}}, "does not know priceOf in src/shop.ts:7"),
        ({"answers": {SYMBOLS: [], REFERENCES: [], RENAME: None}}, "does not know priceOf in src/shop.ts:7"),
        ({"exit_at_start": 3}, "exited with code 3"),
    ],
    ids=["crash", "noise", "shape", "error", "null", "nothing", "start"],
)
async def test_nothing_is_renamed_or_deleted_without_the_word_of_a_component_s_server(
    tmp_path: Path, script: dict[str, Any], reason: str
) -> None:
    root = written(tmp_path / "shop", FILES)
    settings = {"trusted_roots": [str(root)], "pool.read_retries": 0, "pool.restart_delay_s": 0.01}
    async with asker(tmp_path, root, settings, more=put_fake_vue(tmp_path, **script)) as ask:
        said = text_of(await ask.client.call("rename_symbol", **WHERE, new_name="costOf"))
        assert said.startswith("Nothing was changed: priceOf also occurs in 'src/Row.vue', not looked into: "), said
        assert reason in said
        deleted = text_of(await ask.client.call("safe_delete_symbol", **WHERE))
        assert "priceOf also occurs in 'src/Row.vue', not looked into: " in deleted
        found = str((await ask.client.call("find_referencing_symbols", **WHERE))["content"])
        assert "Possibly incomplete: priceOf also occurs in 'src/Row.vue', not looked into: " in found
    assert (root / "src/shop.ts").read_text() == SHOP


async def test_a_rename_says_why_components_keep_a_name_whose_server_does_not_run(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", FILES)
    async with asker(tmp_path, root, {"trusted_roots": []}) as ask:
        renamed = str(await ask.result("rename_symbol", **WHERE, new_name="costOf"))
    assert "Not renamed everywhere: priceOf also occurs in 'src/Row.vue', not looked into: " in renamed
    assert "To trust it: serena-central trust" in renamed
    assert (root / "src/shop.ts").read_text() == SHOP.replace("priceOf", "costOf")
