"""Names of C and C++ that are declared in the scope around what they belong to, which code uses without naming it."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    ".serena/project.yml": "validation:\n  exported: report\n",
    "compile_flags.txt": "",
    "colours.h": """\
enum colour { red, green };
typedef enum { small, large } size;
struct box {
  enum lid { closed, open } lid;
};
enum idle { never, nowhere };
#define ALL(X) X(first) X(second)
enum made {
#define X(name) made_##name,
  ALL(X)
#undef X
};
""",
    "use.c": '#include "colours.h"\nint main(void) { return green + large + open + made_second; }\n',
    "shape.cpp": """\
namespace shapes {
enum Kind { round, square };
struct Shape {
  enum Side { left, right };
};
enum Idle { none };
enum class Mode { on, off };
}
int main() { return shapes::square + shapes::Shape::right; }
""",
}

USED = {
    ("colour", "colours.h"): "green, which it declares, is used in use.c:1",
    ("size", "colours.h"): "large, which it declares, is used in use.c:1",
    ("/box", "colours.h"): "open, which it declares, is used in use.c:1",
    ("made", "colours.h"): "a macro declares made_",
    ("Kind", "shape.cpp"): "square, which it declares, is used in shape.cpp:8",
    ("Side", "shape.cpp"): "right, which it declares, is used in shape.cpp:8",
}


async def test_a_type_whose_enumerators_are_used_is_kept(tmp_path: Path) -> None:
    root = written(tmp_path / "shapes", FILES)
    async with asker(tmp_path, root) as ask:
        for (name, path), said in USED.items():
            refused = await ask.result("safe_delete_symbol", name_path=name, relative_path=path, dry_run=True)
            assert said in text_of(refused), (name, text_of(refused))
        found = await ask.ask("find_unused_symbols")
        unused = {one["name_path"] for one in found["unused"]}
        assert unused == {"idle", "shapes/Idle", "shapes/Mode"}
        for name, path in (("idle", "colours.h"), ("Idle", "shape.cpp"), ("Mode", "shape.cpp")):
            deleted = await ask.result("safe_delete_symbol", name_path=name, relative_path=path)
            assert not deleted["isError"], text_of(deleted)
