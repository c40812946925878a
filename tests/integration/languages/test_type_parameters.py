"""Bounds of type parameters are no bases, whose methods a type might override."""

from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

FILES = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "target": "es2022", "module": "esnext"}}',
    "box.ts": """\
class Box<T extends Error, U extends Map<string, Error>> {
  constructor(readonly inside: T | U) {}
  idle(): number {
    return 1;
  }
}
class Fault<T> extends Error {
  inside?: T;
  idle(): number {
    return 1;
  }
}
console.log(new Box(new Fault<string>()).inside);
""",
}


async def test_a_method_is_deleted_where_only_type_arguments_name_types_of_libraries(tmp_path: Path) -> None:
    root = written(tmp_path / "boxes", FILES)
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="Fault/idle", relative_path="box.ts")
        assert "override" in text_of(refused), refused
        deleted = await ask.result("safe_delete_symbol", name_path="Box/idle", relative_path="box.ts")
    assert not deleted["isError"], text_of(deleted)
    assert (root / "box.ts").read_text() == FILES["box.ts"].replace("  idle(): number {\n    return 1;\n  }\n", "", 1)
