"""What components of Svelte and Astro use of a module of TypeScript, with their real servers. `make smoke` runs it."""

from pathlib import Path

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.installers.install import install
from tests.integration.languages.test_components import MODULE, lines_of_uses
from tests.integration.languages.test_renamed_members import written
from tests.smoke.test_servers import HOME, PIP_AND_NPM
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SVELTE = """\
<script lang="ts">
  import { priceOf, type Item } from "./shop";
  const first: Item = { label: "x" };
  function shown() { return priceOf(first); }
</script>

<p title={first.label}>{priceOf(first)} {shown()}</p>
"""

ASTRO = """\
---
import { priceOf, type Item } from "./shop";
const first: Item = { label: "x" };
function shown() { return priceOf(first); }
---
<p title={first.label}>{priceOf(first)} {shown()}</p>
"""


@pytest.mark.parametrize(
    ("server", "path", "text"),
    [("svelte-language-server", "src/Row.svelte", SVELTE), ("astro-ls", "src/row.astro", ASTRO)],
)
async def test_what_a_component_uses_is_found_and_renamed(tmp_path: Path, server: str, path: str, text: str) -> None:
    root = written(tmp_path / "shop", {**MODULE, path: text})
    with anyio.fail_after(600):
        await install(catalogue().server(server), Places(HOME), methods=PIP_AND_NPM, tell=print)
        more = tmp_path / "more"
        more.mkdir()
        (more / server).symlink_to(Places(HOME).servers / server)
        async with asker(tmp_path, root, {"trusted_roots": [str(root)]}, more=more) as ask:
            used = [line0 for line0, line in enumerate(text.splitlines()) if "priceOf" in line]
            assert await lines_of_uses(ask, "priceOf") == {f"{path}:{line0}" for line0 in used}
            assert f"{path}:{len(text.splitlines()) - 1}" in await lines_of_uses(ask, "Item/label")
            rename = {"name_path": "priceOf", "relative_path": "src/shop.ts", "new_name": "costOf"}
            renamed = await ask.result("rename_symbol", **rename)
            assert (root / path).read_text() == text.replace("priceOf", "costOf"), text_of(renamed)
            assert "Could not determine in time" not in str(renamed["content"])


SHORTHANDS = """\
<script lang="ts">
  import { stock, mood } from "./store";
  const both = { mood };
</script>

<p class:mood title={both.mood}>{$stock}</p>
<input {mood} />
"""

STORE = """\
import { writable } from "svelte/store";
export const stock = writable(0);
export const mood = true;
"""

SVELTE_STORE = """\
declare module "svelte/store" {
  export interface Store<T> { subscribe(run: (value: T) => void): () => void; set(value: T): void }
  export function writable<T>(value: T): Store<T>;
}
"""


async def test_svelte_uses_symbols_by_names_that_are_more_than_theirs(tmp_path: Path) -> None:
    files = {**MODULE, "src/store.ts": STORE, "src/svelte.d.ts": SVELTE_STORE, "src/Row.svelte": SHORTHANDS}
    root = written(tmp_path / "shop", files)
    server = "svelte-language-server"
    with anyio.fail_after(600):
        await install(catalogue().server(server), Places(HOME), methods=PIP_AND_NPM, tell=print)
        more = tmp_path / "more"
        more.mkdir()
        (more / server).symlink_to(Places(HOME).servers / server)
        async with asker(tmp_path, root, {"trusted_roots": [str(root)]}, more=more) as ask:
            uses = await ask.uses("mood", "src/store.ts")
            assert {use.rpartition(":")[0] for use in uses} == {f"src/Row.svelte:{line0}" for line0 in (1, 2, 5, 6)}
            rename = {"relative_path": "src/store.ts", "name_path": "mood", "new_name": "humour"}
            assert "mood may name a property, too" in text_of(await ask.result("rename_symbol", **rename))
            await ask.result("rename_symbol", **{**rename, "name_path": "stock", "new_name": "goods"})
            assert (root / "src/Row.svelte").read_text() == SHORTHANDS.replace("stock", "goods")
