"""By syntax, symbols have the name paths that the language server gives them later."""

from pathlib import Path

import anyio
import pytest

from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.symbols.syntax.outline import outline
from tests.integration.languages.cases import CASES, Case
from tests.support.languages import asker, copy_of

pytestmark = pytest.mark.anyio

SAMPLES = {
    "cpp": {
        "src/scopes.cpp": """\
typedef unsigned char uint8_t;
namespace snappy {
namespace internal {
class Env { public: virtual ~Env(); int size() const { return 1; } void Do(); private: char* scratch_; };
static inline int HashBytes(int bytes) { return bytes; }
}  // namespace internal
class Sink;
struct Sink { virtual void Append(const char* b, int n) = 0; bool Ok(); virtual ~Sink(); char* Get(char* s); };
template <typename A> class Scattered : public Sink { public: explicit Scattered(int a) : a_(a) {} int a_; bool Do(); };
namespace { const int kBlock = 1; void Helper() {} }
}
bool snappy::Sink::Ok() { return true; }
void snappy::internal::Env::Do() {}
namespace snappy {
Sink::~Sink() {}
char* Sink::Get(char* s) { return s; }
internal::Env::~Env() {}
template <typename A> inline bool Scattered<A>::Do() { return true; }
namespace a::b { void deep(); }
namespace a::b::c { void deeper(); }
extern "C" { void c_fn(); }
enum class Color { Red };
bool operator==(const Sink& a, const Sink& b);
struct { int anon; } g_thing;
using Callback = void (*)(int);
typedef struct Pt { int x; } Pt;
union U { int i; float f; };
template <> class Scattered<char> { int w; };
using internal::Env;
struct Later;
struct Held { static int count; void (*called)(int); int sum() { struct Local { int a; }; return 0; } };
int Held::count = 1;
}
"""
    },
    "go": {
        "shapes/scopes.go": """\
package shapes

type other struct{}
type Command struct {
	Use  string
	a, b int
	*other
	fn func(cmd *Command, x int) error
}
type Option[T any] interface {
	Get() T
	number
}
type number interface{ ~int | ~string }
type Opt[T any] struct{ v T }

func (c *Command) Run(x int) error { return nil }
func (o *Opt[T]) Set()             {}
func (Command) anon()              {}

type (
	A int
	B = string
	M map[string]struct{ K int }
)

const (
	first, second = iota, 1
	_, _
)

var inner = struct{ N int }{1}
var fnv = func() { type loc struct{ q int }; _ = loc{} }
var _ = (*Command)(nil)

func init() {}
func init() {}

type Nested struct {
	In struct{ Deep int }
	P  *struct{ Q int }
}

func body() {
	type local struct{ x int }
	const c = 1
	var v = struct{ Z int }{c}
	_ = v
}
"""
    },
    "rust": {
        "crates/shapes/src/square.rs": """\
pub struct Square(pub f64);
pub struct Tile;
impl crate::Shape for Square {
    fn area(&self) -> f64 { 1.0 }
}
pub trait Read<'de> { fn peek(&mut self) -> Option<u8>; }
pub struct Deserializer<R> { read: R }
impl<'de, R: Read<'de>> Deserializer<R> {
    fn peek_or_null(&mut self) -> u8 { self.read.peek().unwrap_or(0) }
    pub const MAX: usize = 1;
}
impl<'a, 'de, R: Read<'de>> Iterator for &'a mut Deserializer<R> {
    type Item = u8;
    fn next(&mut self) -> Option<u8> { Some(self.peek_or_null()) }
}
pub mod inner { pub struct Deep; impl Deep { pub fn go(&self) {} } }
pub enum E { A { x: u8 }, B(u8) }
pub static S: u8 = 1;
"""
    },
    "typescript": {
        "src/scopes.ts": """\
export class Store {
  #secret = 1;
  constructor(private readonly items: string[], readonly limit = 10, plain = 1) {}
  get size() { return this.items.length; }
  each(visit: (one: string) => void) {
    const seen = { count: 0, "last one": () => { function deep() { const far = 1; return far; } return deep(); } };
    const step = (one: string) => { const twice = one + one; visit(twice); };
    this.items.forEach((one) => { function inside() { return one; } step(inside()); });
    class Local { here = 1; go() {} }
    return [seen, new Local()];
  }
}
export const settings = { level: 1, show: () => { const x = 1; return x; }, nested: { deep: function () {} } };
export const { first, second: other, ...rest } = settings as any;
export const Made = class { run() {} };
export const typed: (one: string) => void = (one) => { const local = one; console.log(local); };
declare global { interface Window { mine: number } }
export interface Shape { area(): number; readonly name: string; [key: string]: unknown }
export interface Called { (x: number): string; new (x: number): Shape }
export enum Level { Low, "very high" = 2 }
export namespace Outer.Inner { export const value = 1; }
[1].map(function named(one) { const local = one; return local; });
export default function () { const hidden = 1; return hidden; }
""",
        "src/scopes.js": """\
var app = exports = module.exports = {};
app.use = function use(fn) { var offset = 0; app.slice(function () { var gone = offset; return gone; }); return fn; };
app.get = (path) => { const local = path; return local; };
app.set = function () { return { one: 1, two: () => 2 }; };
function View(name) { this.name = name; var opts = { a: 1 }; return opts; }
View.prototype.lookup = function lookup(name) { return name; };
View.prototype.render = function (name) { return name; };
for (const key of [1]) { console.log(key); }
""",
    },
}
IDENTIFIERS = {
    ".py": "python",
    ".go": "go",
    ".rs": "rust",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".c": "c",
    ".ts": "typescript",
}
IDENTIFIERS |= {".tsx": "typescriptreact", ".js": "javascript"}


def names(file: FileSymbols) -> set[str]:
    return {file.name_path(place) for place in range(len(file.symbols))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.language)
async def test_the_syntax_gives_the_servers_name_paths(case: Case, tmp_path: Path) -> None:
    root = copy_of(case.language, tmp_path, compile_commands=case.compile_commands)
    samples = SAMPLES.get(case.language, {})
    for path, text in samples.items():
        (root / path).write_text(text)
    server: set[tuple[str, str]] = set()
    syntax: set[tuple[str, str]] = set()
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            project = asked.project
            await project.fresh()
            paths = [path for path in project.tree.files if Path(path).suffix in IDENTIFIERS]
            assert {*samples} <= {*paths}
            assert await project.indexer.ensure(paths) == []
            for path in paths:
                own, _ = outline(IDENTIFIERS[Path(path).suffix], (root / path).read_bytes())
                server |= {(path, name) for name in names(project.index.file(path))}
                syntax |= {(path, name) for name in names(flatten(own))}
    different = server ^ syntax
    assert len(server) > 5
    assert len(different) <= len(server) // 100, sorted(different)


async def test_a_method_in_rust_is_found_by_its_type(tmp_path: Path) -> None:
    root = copy_of("rust", tmp_path)
    (path,) = SAMPLES["rust"]
    (root / path).write_text(SAMPLES["rust"][path])
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            for name in ("Deserializer/peek_or_null", "/Deserializer/next", "Deep/go"):
                (found,) = await asked.ask("find_symbol", name_path_pattern=name)
                assert found["relative_path"] == path
