"""Symbols that are used without being named: by composed names, by registries of subclasses, and by C++ itself."""

from pathlib import Path

import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "formats.py": (
        "def _format_csv(x): return x\n\n\ndef _format_json(x): return x\n\n\ndef _idle_one(x): return x\n\n\n"
        'def form(kind, x):\n    return globals()[f"_format_{kind}"](x)\n'
    ),
    "main.py": 'from formats import form\n\n_idle_ = 1\nprint(form("csv", 1), _idle_)\n',
}


async def test_what_a_composed_name_may_mean_is_kept(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", FILES)
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="_format_csv", relative_path="formats.py")
        assert "a string in formats.py:10 holds the beginning of its name, _format_" in text_of(refused)
        found = await ask.ask("find_unused_symbols")
        assert [one["name_path"] for one in found["unused"]] == ["_idle_one"]
        deleted = await ask.result("safe_delete_symbol", name_path="_idle_one", relative_path="formats.py")
    assert not deleted["isError"], text_of(deleted)


COMPOSED = {
    "talk.py": """\
class Talk:
    def greet_handler(self): ...

    def bye_reply(self): ...

    def doNod(self): ...

    def seen_by(self): ...

    def run(self, kind):
        getattr(self, kind + "_handler")()
        getattr(self, f"{kind}_reply")()
        getattr(self, "do" + kind.title())()
        print("was seen" + kind, {"do": kind}["do"], f"seen by {kind}", kind + " by")


Talk().run("greet")
""",
    "talk.ts": """\
class Speech {
  handleMove() {}
  showMap() {}
  tell_all() {}
  petsVisitor() {}
  likeNobody() {}
  run(kind: string) {
    const self = this as any;
    self[`handle${kind}`]();
    self["show" + kind]();
    self[`tell_${kind}`]();
    self[kind + "Visitor"]();
  }
}
new Speech().run("Move");
""",
}


@pytest.mark.parametrize(
    ("name_path", "line0", "part"),
    [
        ("Talk/greet_handler", 10, "the end of its name, _handler,"),
        ("Talk/bye_reply", 11, "the end of its name, _reply,"),
        ("Talk/doNod", 12, "the beginning of its name, do,"),
        ("Speech/tell_all", 10, "the beginning of its name, tell_,"),
        ("Speech/handleMove", 8, "the beginning of its name, handle,"),
        ("Speech/showMap", 9, "the beginning of its name, show,"),
        ("Speech/petsVisitor", 11, "the end of its name, Visitor,"),
    ],
)
async def test_what_a_name_may_mean_that_is_composed_of_its_end_or_its_first_word_is_kept(
    tmp_path: Path, name_path: str, line0: int, part: str
) -> None:
    root = written(tmp_path / "shop", {**COMPOSED, "tsconfig.json": "{}"})
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path=name_path)
        assert f":{line0} is {part}" in text_of(refused), text_of(refused)
        renamed = await ask.result("rename_symbol", name_path=name_path, new_name="other", dry_run=True)
        assert f":{line0} is {part}" in text_of(renamed), text_of(renamed)
        found = await ask.ask("find_unused_symbols")
    assert [one["name_path"] for one in found["unused"]] == ["Talk/seen_by", "Speech/likeNobody"]


PLUGINS = """\
class Plugin:
    registry = {}

    def __init_subclass__(cls):
        Plugin.registry[cls.__name__.lower()] = cls


class _Table(Plugin): ...


class _Csv(_Table): ...


class _Idle: ...


class _Alone(_Idle): ...


print(Plugin.registry)
"""


async def test_a_class_that_its_base_registers_is_kept(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", {"plugins.py": PLUGINS})
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="_Csv", relative_path="plugins.py")
        assert "__init_subclass__" in text_of(refused)
        found = await ask.ask("find_unused_symbols")
        assert [one["name_path"] for one in found["unused"]] == ["_Alone"]
        deleted = await ask.result("safe_delete_symbol", name_path="_Alone", relative_path="plugins.py")
    assert not deleted["isError"], text_of(deleted)


LISTED = {
    "made.py": """\
KNOWN = {}


class Registering(type):
    def __init__(cls, name, bases, members):
        KNOWN[name] = cls


class Made(metaclass=Registering): ...


class _Csv(Made): ...
""",
    "asked.py": "class Asked: ...\n\n\nclass _Xml(Asked): ...\n\n\nclass _Idle: ...\n\n\nclass _Own(_Idle): ...\n",
    "main.py": "from asked import Asked\nfrom made import KNOWN\n\nprint(KNOWN, Asked.__subclasses__())\n",
}


async def test_a_class_that_a_metaclass_is_told_of_or_whose_base_is_asked_for_it_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", LISTED)) as ask:
        for name in ("_Csv", "_Xml"):
            refused = await ask.result("safe_delete_symbol", name_path=name)
            assert "told of its subclasses (__init_subclass__, metaclass) or asked for them" in text_of(refused), (
                text_of(refused)
            )
        found = await ask.ask("find_unused_symbols")
    assert [one["name_path"] for one in found["unused"]] == ["_Own"]


SHAPES = """\
#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

struct Point {
  Point(int x, int y) : x(x), y(y) {}
  ~Point() {}
  bool operator==(const Point& other) const { return x == other.x && y == other.y; }
  int x;
  int y;
};

struct ByX {
  bool operator()(const Point& a, const Point& b) const { return a.x < b.x; }
  void idle() {}
};

struct Bag {
  std::vector<int> items;
  std::vector<int>::const_iterator begin() const { return items.begin(); }
  std::vector<int>::const_iterator end() const { return items.end(); }
};

struct Kind {
  static const int rank = 3;
};

template <typename T>
int rank_of(const T&) {
  return T::rank;
}

__attribute__((constructor)) void prepare() {}

}  // namespace

namespace std {
template <>
struct hash<Point> {
  size_t operator()(const Point& point) const { return point.x; }
};
}  // namespace std

int main() {
  std::vector<Point> points;
  points.emplace_back(1, 2);
  std::sort(points.begin(), points.end(), ByX());
  std::unordered_map<Point, int> seen;
  seen.emplace(std::make_pair(points[0], rank_of(Kind())));
  int sum = 0;
  for (int item : Bag()) sum += item;
  return sum;
}
"""


async def test_what_cpp_uses_without_naming_it_is_kept(tmp_path: Path) -> None:
    root = written(tmp_path / "shapes", {"compile_flags.txt": "-std=c++11\n", "shapes.cpp": SHAPES})
    reasons = {
        "Point/Point": "constructors and destructors are called without their name",
        "Point/~Point": "constructors and destructors are called without their name",
        "ByX/operator()": "operators are called without their name",
        "Point/operator==": "operators are called without their name",
        "Bag/begin": "libraries call it by its name",
        "std/hash<Point>": "a specialization is chosen by its arguments",
        "prepare": "it is decorated",
    }
    async with asker(tmp_path, root) as ask:
        for name, reason in reasons.items():
            refused = await ask.result("safe_delete_symbol", name_path=name, relative_path="shapes.cpp")
            assert f"It may be referenced from elsewhere: {reason}." in text_of(refused), (name, text_of(refused))
        dependent = await ask.result("safe_delete_symbol", name_path="Kind/rank", relative_path="shapes.cpp")
        assert "The language server cannot rule out references in shapes.cpp:34 in" in text_of(dependent)
        idle = await ask.result("safe_delete_symbol", name_path="ByX/idle", relative_path="shapes.cpp")
    assert not idle["isError"], text_of(idle)


SPECIALIZED = """\
template <class T> constexpr int rank_of = 0;
template <> constexpr int rank_of<int> = 5;
template <class T> int conv(T t) { return t; }
template <> int conv<int>(int t) { return t + 1; }
template <class T> struct Trait;
template <> struct Trait<int> { static int go() { return 1; } };
namespace deep {
template <class T> struct Part {};
struct Host { template <class T> static constexpr int size_of = 1; };
}
template <class T> struct deep::Part<T*> { static int go() { return 1; } };
template <> constexpr int deep::Host::size_of<int> = 3;
template <class T> constexpr int rank = 0;
int main() {
  return conv(1) + rank_of<int> + Trait<int>::go() + deep::Part<int*>::go() + deep::Host::size_of<int>;
}
"""


async def test_a_template_of_cpp_is_kept_while_it_is_specialized(tmp_path: Path) -> None:
    root = written(tmp_path / "ranks", {"compile_flags.txt": "-std=c++17\n", "ranks.cpp": SPECIALIZED})
    places = {"/rank_of": 1, "/conv": 3, "Trait": 5, "deep/Part": 10, "Host/size_of": 11}
    async with asker(tmp_path, root) as ask:
        for name, line0 in places.items():
            refused = await ask.result("safe_delete_symbol", name_path=name)
            assert f"it is specialized in ranks.cpp:{line0}." in text_of(refused), (name, text_of(refused))
        idle = await ask.result("safe_delete_symbol", name_path="/rank")
        assert not idle["isError"], text_of(idle)
        found = await ask.ask("find_unused_symbols")
        assert found["unused"] == []
        renamed = await ask.result("rename_symbol", name_path="rank_of<int>", new_name="other")
    assert "It is renamed with its template" in text_of(renamed)


CLOSED = """\
static int closed;

static void close_it(int *fd) { closed += *fd; }

int run(void) {
  int fd __attribute__((cleanup(close_it))) = 1;
  return fd + closed;
}
"""

WEIGHED = """\
template <class T> int weight_of(const T& t) { return t.weight(); }
struct Box { int weight() const { return 1; } };
struct Bag { int weight() const { return 2; } };
int main() { return weight_of(Box()) + weight_of(Bag()); }
"""


async def test_what_the_server_of_cpp_does_not_know_is_neither_deleted_nor_renamed_by_its_guess(tmp_path: Path) -> None:
    root = written(tmp_path / "guessed", {"compile_flags.txt": "", "closed.c": CLOSED, "weighed.cpp": WEIGHED})
    async with asker(tmp_path, root) as ask:
        closing = {"name_path": "close_it", "relative_path": "closed.c"}
        refused = text_of(await ask.result("safe_delete_symbol", **closing))
        assert "The language server cannot rule out references in closed.c:5 in run" in refused
        for symbol, place in ((closing, "closed.c:5"), ({"name_path": "Box/weight"}, "weighed.cpp:0")):
            renamed = text_of(await ask.result("rename_symbol", **symbol, new_name="other"))
            assert f"in code that the language server cannot resolve (check each): {place}" in renamed
    assert (root / "closed.c").read_text() == CLOSED.replace("void close_it", "void other")
    assert (root / "weighed.cpp").read_text() == WEIGHED.replace("Box { int weight", "Box { int other")


DEFINED = """\
typedef struct node { int value; } node;
#define VISIT(it) \\
  { node *each = (it); each->value++; }
static int count(void) { return 1; }
#define NEXT(count) ((count) + 1)

int visit(struct node *one) {
  VISIT(one)
  return NEXT(count());
}
"""


async def test_what_macros_of_c_define_is_not_taken_for_what_is_called_so(tmp_path: Path) -> None:
    root = written(tmp_path / "defined", {"compile_flags.txt": "", "defined.c": DEFINED})
    async with asker(tmp_path, root) as ask:
        renamed = text_of(await ask.result("rename_symbol", name_path="/node[1]", new_name="item"))
        await ask.result("rename_symbol", name_path="count", new_name="amount")
    assert "in code that the language server cannot resolve (check each): defined.c:2" in renamed
    expected = DEFINED.replace("} node;", "} item;").replace("int count(", "int amount(").replace("count()", "amount()")
    assert (root / "defined.c").read_text() == expected


PASTED = """\
static int op_add(int x) { return x + 1; }
static int low_op(int x) { return x - 1; }
static int opadd_idle(int x) { return x; }
#define OP(name) op_ ## name
#define RANKED(rank) rank##_op
int (*const all[])(int) = {
#include "ops.inc"
#ifdef RANKS
  RANKED(low),
#endif
};
"""


async def test_what_macros_of_c_may_put_together_is_kept_without_a_build(tmp_path: Path) -> None:
    root = written(tmp_path / "pasted", {"pasted.c": PASTED, "ops.inc": "OP(add),\n"})
    async with asker(tmp_path, root) as ask:
        for name, place in (("op_add", "pasted.c:3"), ("low_op", "pasted.c:4")):
            refused = text_of(await ask.result("safe_delete_symbol", name_path=name))
            assert f"a macro in {place} puts names together that begin or end as its own" in refused
        deleted = await ask.result("safe_delete_symbol", name_path="opadd_idle")
    assert not deleted["isError"], text_of(deleted)


EXPRESSIONS = """\
(function called() {})();
!function negated() {}();
const url = "http://localhost";
function idle() {}
// as in: this
function alone() {}
setTimeout(function handed() {}, 1);
new (class Made { run() {} })().run();
console.log({ url, key: async function keyed() {} });
"""


async def test_a_function_or_class_of_a_script_that_is_a_value_is_not_reported(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", {"package.json": '{"private": true}', "values.js": EXPRESSIONS})
    async with asker(tmp_path, root) as ask:
        found = await ask.ask("find_unused_symbols")
    assert [one["name_path"] for one in found["unused"]] == ["idle", "alone"]


BY_NAME_IN_GO = {
    "go.mod": "module shop\n\ngo 1.21\n",
    "main.go": """\
package main

import (
	"os"
	"reflect"
)

type reply struct {
	Count int `json:"count"`
	Named int `json:",omitempty"`
	Plain int
	own   int `json:"own"`
}

type server struct{}

func (server) Serve() {}
func (server) stop()  {}

//go:generate stringer -type day
type day int

func main() {
	// x.MethodByName(name) is as good.
	reflect.ValueOf(server{}).MethodByName(os.Args[1]).Call(nil)
	println(reply{})
}
""",
}


async def test_what_go_finds_by_its_name_when_it_runs_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", BY_NAME_IN_GO)) as ask:
        for name, said in {
            "reply/Count": "its tag gives it to libraries.",
            "reply/Named": "its tag gives it to libraries by its name.",
            "server/Serve": "main.go:24 calls exported methods that it does not name",
            "reply/Plain": "main.go:4 imports reflect, which reads exported fields by their names",
            "day": "the directive in main.go:19 names it",
        }.items():
            refused = await ask.result("safe_delete_symbol", name_path=name)
            assert said in text_of(refused), text_of(refused)
        for name in ("reply/own", "server/stop"):
            deleted = await ask.result("safe_delete_symbol", name_path=name, dry_run=True)
            assert not deleted["isError"], text_of(deleted)
        for name, is_noted in {"reply/Count": False, "reply/Named": True}.items():
            renamed = await ask.result("rename_symbol", name_path=name, new_name="Other", dry_run=True)
            assert ("its tag gives it to libraries by its name" in text_of(renamed)) == is_noted


READ_BY_NAME = "package main\n\n{}\n\ntype line struct {{\n\tCount int\n}}\n\nfunc main() {{ _ = line{{}} }}\n"


@pytest.mark.parametrize(
    ("imported", "required", "said"),
    [
        ('import j "encoding/json"\n\nvar Write = j.Marshal', "", "main.go:2 imports encoding/json, which reads"),
        (
            'import (\n\t"fmt"\n\n\t"text/template"\n)\n\nvar _, _ = fmt.Sprint, template.New',
            "",
            "main.go:5 imports text/",
        ),
        ('import "encoding/hex"\n\nvar Write = hex.EncodeToString', "require example.com/colour v1.2.3\n", None),
        (
            "",
            "require (\n\texample.com/colour v1.2.3\n\tgopkg.in/yaml.v3 v3.0.1\n)\n",
            "go.mod:6 requires gopkg.in/yaml.v3",
        ),
        ("", "require gopkg.in/yaml.v3 v3.0.1 // indirect\n", None),
    ],
    ids=["encoder", "template", "neither", "library", "library of another"],
)
async def test_a_field_of_go_is_kept_where_something_reads_fields_by_their_names(
    imported: str, required: str, said: str | None, tmp_path: Path
) -> None:
    files = {"go.mod": f"module shop\n\ngo 1.21\n\n{required}", "main.go": READ_BY_NAME.format(imported)}
    async with asker(tmp_path, written(tmp_path / "shop", files)) as ask:
        deleted = await ask.result("safe_delete_symbol", name_path="line/Count", dry_run=True)
        assert deleted["isError"] == bool(said), text_of(deleted)
        assert said is None or said in text_of(deleted), text_of(deleted)


CONVERTED = {
    "go.mod": "module shop\n\ngo 1.21\n",
    "main.go": """\
package main

import "shop/rows"

type row struct {
	count int
	name  string
}

type line struct {
	count int
	name  string
}

type alone struct {
	count int
	label string
}

type left struct {
	side int
	idle int
}

type right struct {
	side int
	idle int
}

type Held[T any] struct{ Kept T }

func held(all *rows.Held[int]) *Held[int] { return (*Held[int])(all) }

func main() {
	println(row(line{}), alone{}, left{}, right{}, held(nil))
}
""",
    "rows/rows.go": "package rows\n\ntype Held[T any] struct{ Kept T }\n",
}


async def test_a_field_of_go_is_kept_where_its_struct_is_converted(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", CONVERTED)) as ask:
        for name, path, said in (
            ("row/name", "main.go", "line has the same fields, and row may be converted to or from it in main.go:34."),
            ("line/name", "main.go", "row has the same fields, and line may be converted to or from it in main.go:34."),
            ("Held/Kept", "main.go", "Held may be converted to or from it in main.go:31."),
        ):
            refused = await ask.result("safe_delete_symbol", name_path=name, relative_path=path)
            assert said in text_of(refused), (name, text_of(refused))
        for name in ("alone/label", "left/idle", "right/idle"):
            deleted = await ask.result("safe_delete_symbol", name_path=name, dry_run=True)
            assert not deleted["isError"], text_of(deleted)


DERIVED = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": """\
#[derive(Debug, clap::Parser)]
struct Arguments {
    verbose: bool,
}

#[derive(Clone, Debug)]
struct Plain {
    quiet: bool,
}

#[derive(Deserialize)]
enum Kind {
    Small { size: u8 },
}

fn main() {}
""",
}


async def test_members_of_rust_for_which_a_derived_trait_has_code_are_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", DERIVED)) as ask:
        for name, trait in {"Arguments/verbose": "Parser", "Kind/Small": "Deserialize"}.items():
            refused = await ask.result("safe_delete_symbol", name_path=name)
            assert f"its type derives {trait}, which may use its members by their names" in text_of(refused)
        deleted = await ask.result("safe_delete_symbol", name_path="Plain/quiet")
    assert not deleted["isError"], text_of(deleted)
