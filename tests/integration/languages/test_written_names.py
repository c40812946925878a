"""Symbols are found by the names that people write, whether a language server or the syntax tells of them; and where
nothing is found, the answer says what may be meant, or why."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import running_central
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FILES = {
    "Cargo.toml": '[package]\nname = "frames"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n',
    "src/lib.rs": """\
pub mod lazy;
pub trait Collect { fn collect(&self) -> usize; fn twice(&self) -> usize { 2 } }
""",
    "src/lazy.rs": """\
use crate::Collect;
pub struct LazyFrame<T> { rows: Vec<T> }
impl<T: Clone> LazyFrame<T> { pub fn scan(rows: Vec<T>) -> Self { LazyFrame { rows } } }
impl<T> Collect for LazyFrame<T> where T: Clone { fn collect(&self) -> usize { self.rows.len() } }
pub struct Other;
impl Collect for Other { fn collect(&self) -> usize { 0 } }
""",
    "go.mod": "module example.com/frames\n\ngo 1.21\n",
    "web/server.go": """\
package web

type Server struct{}
type List[T any] struct{ items []T }

func (s *Server) Serve() int         { return 1 }
func (s Server) Close()              {}
func (l *List[T]) Push(item T)       { l.items = append(l.items, item) }
func Serve(handler func() int) int   { return handler() }
""",
    "go-frames/frames.go": "// Package frames stacks.\npackage stacks // of frames\n\nfunc Pile() int { return 1 }\n",
    "compile_flags.txt": "-std=c++17\n",
    "shapes.cpp": """\
namespace geo {
template <typename T> class Box { public: T area(int scale); void clear() {} };
class Cycle { public: Cycle(int r); ~Cycle(); bool operator==(const Cycle &other) const; double around() const; };
}
template <typename T> T geo::Box<T>::area(int scale) { return scale; }
double geo::Cycle::around() const { return 1; }
""",
    "tsconfig.json": '{"compilerOptions": {"target": "es2022"}, "include": ["*.ts"]}\n',
    "parser.ts": """\
export class Parser<T> {
  #depth = 0;
  parse(input: string): T;
  parse(input: string, depth: number): T;
  parse(input: string, depth?: number): T { this.#depth = depth ?? 0; return input as T; }
}
export namespace tools { export function run(): void {} }
""",
    "shop/__init__.py": "",
    "shop/stock/__init__.py": "",
    "shop/stock/items.py": """\
class Item:
    def price(self) -> int:
        return 1


def price() -> int:
    return 2
""",
}

FOUND = {
    "LazyFrame/scan": ["src/lazy.rs:2"],
    "LazyFrame/collect": ["src/lazy.rs:3"],
    "LazyFrame<T>/collect": ["src/lazy.rs:3"],
    "LazyFrame::scan": ["src/lazy.rs:2"],
    "<LazyFrame as Collect>::collect": ["src/lazy.rs:3"],
    "crate::lazy::LazyFrame::collect": ["src/lazy.rs:3"],
    "/Other/collect": ["src/lazy.rs:5"],
    "Collect::twice": ["src/lib.rs:1"],
    "Server/Serve": ["web/server.go:5"],
    "(*Server).Serve": ["web/server.go:5"],
    "(s *Server).Serve()": ["web/server.go:5"],
    "Server.Close": ["web/server.go:6"],
    "web.Server.Close": ["web/server.go:6"],
    "List[T].Push": ["web/server.go:7"],
    "web.Serve": ["web/server.go:8"],
    "stacks.Pile": ["go-frames/frames.go:3"],
    "frames.Pile": ["go-frames/frames.go:3"],
    "geo::Box::clear": ["shapes.cpp:1"],
    "geo::Box<int>::area": ["shapes.cpp:1", "shapes.cpp:4"],
    "Box<T>/area(int)": ["shapes.cpp:1", "shapes.cpp:4"],
    "::geo::Cycle": ["shapes.cpp:2"],
    "Cycle::operator==": ["shapes.cpp:2"],
    "geo.Cycle.~Cycle": ["shapes.cpp:2"],
    "Parser.parse": ["parser.ts:2", "parser.ts:3", "parser.ts:4"],
    "Parser<T>/parse[1]": ["parser.ts:3"],
    "Parser#parse(input: string)": ["parser.ts:2", "parser.ts:3", "parser.ts:4"],
    "Parser.#depth": ["parser.ts:1"],
    "tools.run": ["parser.ts:6"],
    "Item.price": ["shop/stock/items.py:1"],
    "shop.stock.items.Item.price": ["shop/stock/items.py:1"],
    "shop.stock.Item.price": ["shop/stock/items.py:1"],
    "items.price": ["shop/stock/items.py:5"],
    "other.items.price": [],
    "Item.price.price": [],
}

EMPTY = {
    "LazyFrame/colect": "for LazyFrame<T>/collect' (src/lazy.rs)",
    "serve_r": "No symbol matches 'serve_r'. Close matches: 'Server' (web/server.go)",
    "Cycle/area": "Close matches: 'geo/Box/area[0]' (shapes.cpp), 'geo/Box/area[1]' (shapes.cpp)",
    "Itme": "Close matches: 'Item' (shop/stock/items.py)",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "frames"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / ".gitignore").write_text("old/\n")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


async def find(asked: Asker, pattern: str, **more: Any) -> tuple[list[str], str]:
    result = await asked.result("find_symbol", name_path_pattern=pattern, **more)
    answer, *notes = (part["text"] for part in result["content"])
    assert not result["isError"], answer
    hits = [f"{one['relative_path']}:{one['body_location']['start_line']}" for one in json.loads(answer)]
    return sorted(hits), "\n".join(notes)


async def check(asked: Asker) -> None:
    assert {pattern: (await find(asked, pattern))[0] for pattern in FOUND} == FOUND
    for pattern, words in EMPTY.items():
        hits, notes = await find(asked, pattern)
        assert hits == []
        assert words in notes
    one = await asked.result("find_symbol", name_path_pattern="LazyFrame/scan", include_body=True)
    assert "Close matches" not in json.dumps(one)


async def test_what_servers_tell_is_found_by_the_names_that_people_write(tmp_path: Path, root: Path) -> None:
    async with asker(tmp_path, root) as asked:
        await check(asked)
        assert "By syntax only" not in (await find(asked, "collect"))[1]
        replaced = await asked.result(
            "replace_symbol_body",
            name_path="(*Server).Serve",
            relative_path="web/server.go",
            body="func (s *Server) Serve() int { return 2 }",
        )
        assert not replaced["isError"], replaced
        assert "return 2" in (root / "web/server.go").read_text()


async def test_what_syntax_tells_is_found_by_them_too(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    async with (
        running_central(tmp_path, {"auto_install": "off"}) as central,
        central.raw("handshake") as client,
    ):
        await client.call("activate_project", project=str(root))
        asked = Asker(central, client, root)
        await check(asked)
        assert "By syntax only" in (await find(asked, "collect"))[1]


async def test_an_empty_answer_says_why_it_is_empty(tmp_path: Path, root: Path) -> None:
    (root / "old").mkdir()
    (root / "old/gone.py").write_text("def gone() -> int:\n    return 1\n")
    async with asker(tmp_path, root) as asked:
        _, notes = await find(asked, "gone", relative_path="old")
        assert "'old' is ignored" in notes
        _, notes = await find(asked, "Item", include_kinds=["Function"])
        assert "Matches of other kinds: 1 Class." in notes
        _, notes = await find(asked, "price", relative_path="web")
        assert "price' (shop/stock/items.py)" in notes
        failed = await asked.result("find_referencing_symbols", name_path="Item/pric")
        assert "Close matches: 'Item/price' (shop/stock/items.py)" in json.dumps(failed)
