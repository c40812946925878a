"""Members of TypeScript that a value must have to fit a type which it does not name; with the real language server."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "tsconfig.json": "{}",
    "package.json": '{"private": true}',
    "types.ts": """\
export interface Size { wide: number }
export type Deep = { deep: number };
export const area = (s: Size) => s.wide;
export const depth = (d: Deep) => d.deep;
export const run = (x: { lean(): number }) => x.lean();
""",
    "main.ts": """\
import { area, depth, run } from "./types";
class Rect {
  wide = 1;
  deep = 2;
  lean() { return 3; }
  idle = 4;
  private hidden = 5;
}
const plain = {
  wide: 1,
  deep: 2,
  lean: () => 3,
  idle: 4,
};
function outer() {
  function deep() {}
}
type Hidden = { hidden: number };
declare const unused: Hidden;
for (const one of [new Rect(), plain]) console.log(area(one), depth(one), run(one), unused, outer);
""",
}


@pytest.mark.parametrize("holder", ["Rect", "plain"])
async def test_a_member_that_a_type_may_demand_is_kept(tmp_path: Path, holder: str) -> None:
    async with asker(tmp_path, written(tmp_path / "shapes", FILES)) as ask:
        for name, line0 in {"wide": 0, "deep": 1, "lean": 4}.items():
            refused = await ask.result("safe_delete_symbol", name_path=f"{holder}/{name}")
            assert f"a type in types.ts:{line0} has a member of the same name" in text_of(refused), text_of(refused)
            renamed = await ask.result("rename_symbol", name_path=f"{holder}/{name}", new_name="other", dry_run=True)
            assert "as the name of other symbols, such as overrides: " in text_of(renamed)
            assert f"types.ts:{line0}" in text_of(renamed), text_of(renamed)
        local = await ask.result("safe_delete_symbol", name_path="outer/deep")
        assert not local["isError"], text_of(local)
        for name in ("idle", "hidden") if holder == "Rect" else ("idle",):
            deleted = await ask.result("safe_delete_symbol", name_path=f"{holder}/{name}")
            assert not deleted["isError"], text_of(deleted)
