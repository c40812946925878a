"""What is said of a symbol whose name stands in a file that nobody reads: why, and what would help."""

from pathlib import Path

import pytest

from tests.integration.languages.test_loaded_by_name import refusal
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "package.json": '{"name": "shop", "private": true}',
    "tsconfig.json": "{}",
    "a.ts": "export class Cart {\n    totalOfCart() { return 1; }\n    emptied() { return 2; }\n}\nnew Cart();\n",
    "Page.svelte": '<script setup lang="ts">\nimport { other } from "./other";\nother.totalOfCart();\n</script>\n',
    "page.html": '<button onclick="pay(1)">Pay</button><script>start();</script> We pay and halt (early).\n',
    "b.js": "function pay() {}\nfunction start() {}\nfunction halt() {}\n",
}


async def test_a_file_that_nobody_reads_is_named_with_what_is_missing(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        said = await refusal(ask, "Cart/totalOfCart")
        assert "Page.svelte" in said
        assert "svelte-language-server" in said
        assert "in time" not in said


async def test_a_function_that_a_page_calls_is_kept_however_everyday_its_name(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FILES)) as ask:
        for name in ("pay", "start"):
            assert "it is named in 'page.html'" in await refusal(ask, name), name
        assert not await refusal(ask, "halt")
