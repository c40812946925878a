"""Names of C that macros put together, which a rename leaves or parts, are listed in its answer; with clangd."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

USED = """\
#define CALL(verb, arg) handle_##verb(arg)
#define GETTER(type, field) int get_##field(const type *it) { return it->field; }
#define TWICE(arg) handle_close(arg) + handle_close(arg)
#define LOG(form, ...) log_all(form, ##__VA_ARGS__)

struct point { int size; };
struct table { int (*open)(int); };
int log_all(const char *form, ...);
int handle_open(int arg) { return arg; }
int handle_close(int arg) { return arg; }
GETTER(struct point, size)

int run(struct point *it, struct table *all) {
  LOG("%d", it->size);
  return all->open(1) + TWICE(2) +
         CALL(open, 3) + get_size(it);
}
"""

PARTED = {
    "handle_open": "handle.c:15",
    "table/open": "handle.c:15",
    "point/size": "handle.c:10",
    "handle_close": "",
    "log_all": "",
}


async def test_names_that_macros_put_together_are_named(tmp_path: Path) -> None:
    root = written(tmp_path / "pasted", {"compile_flags.txt": "", "handle.c": USED})
    async with asker(tmp_path, root, {"edit_diagnostics_s": 0}) as client:
        for name, place in PARTED.items():
            renamed = text_of(await client.result("rename_symbol", name_path=name, new_name="other", dry_run=True))
            said = renamed.partition("Macros put other names together (##) with ")[2].partition("\n")[0]
            assert said.partition(" (check each): ")[2] == place, name
            assert "CALL(other" not in renamed
