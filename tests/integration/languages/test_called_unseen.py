"""What nothing in the text refers to and is used all the same: called through foreign traits and interfaces, by names
in manifests and templates, or handed its value by position. It is not called unused, and not deleted without a word.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.languages.test_analysis import parsed
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

RUST = {
    "Cargo.toml": '[package]\nname = "seen"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": """\
use std::{error::Error, fmt};

#[derive(Debug)]
struct Outer;

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outer")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        None
    }
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        println!("released");
    }
}

impl<T> From<Vec<T>> for Guard
where
    T: Copy,
{
    fn from(_: Vec<T>) -> Guard {
        Guard
    }
}

impl Guard {
    fn never_called(&self) {}
}

fn main() {
    let _g: Guard = vec![1].into();
    let e: Box<dyn Error> = Box::new(Outer);
    println!("{e}");
}
""",
}

GO = {
    "go.mod": "module example.com/seen\n\ngo 1.21\n",
    "start_amd64.s": "TEXT ·start(SB), 0, $0\n\tCALL ·helper(SB)\n\tRET\n",
    "main.go": """\
package main

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"net/http"
)

type temp float64

func (t temp) String() string { return "warm" }

type queue []int

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i] < q[j] }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(int)) }
func (q *queue) Pop() any          { return nil }

type fault struct{}

func (fault) Error() string { return "x" }
func (fault) Unwrap() error { return nil }

type zero struct{}

func (zero) Read(p []byte) (int, error) { return 0, io.EOF }

type page struct{}

func (page) ServeHTTP(w http.ResponseWriter, r *http.Request) {}
func (page) neverCalled()                                     {}
func (page) MarshalJSON() ([]byte, error)                     { return nil, nil }

//export called
func called() {}

func helper() {}

type label struct{ text string }

type box struct {
	label
}

func (b box) upper() string { return b.text }

func main() {
	var b box
	fmt.Println(b.upper())
	heap.Init(&queue{})
	fmt.Println(temp(3), errors.Is(fault{}, nil))
	io.ReadAll(zero{})
	http.Handle("/", page{})
}
""",
}

PYTHON = {
    "shape.py": """\
import typing
from typing import Protocol


class Acting(Protocol):
    def act(self) -> int: ...


class Moving(typing.Protocol[int]):
    def move(self) -> int: ...


class Both:
    def act(self) -> int:
        return 1

    def move(self) -> int:
        return 1

    def write(self, text):
        pass

    def never_called(self):
        pass


def use(one: Acting, other: Moving):
    return one.act() + other.move()


print(use(Both(), Both()), file=Both())
""",
}

TYPESCRIPT = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "target": "es2020", "noEmit": true}, "include": ["src"]}\n',
    "package.json": '{"name": "seen", "private": true, "version": "1.0.0"}\n',
    "src/a.ts": """\
class Fault { toString(): string { return "x"; } }
class Many { *[Symbol.iterator]() { yield 1; } }
class Plain { toJSON() { return 1; } valueOf() { return 1; } then(done: () => void) { done(); } neverCalled() {} }
interface Told { onDone(): void }
function take(told: Told) { told.onDone(); }
class Taken { onDone() {} }
take(new Taken());
console.log(`${new Fault()}`, [...new Many()], JSON.stringify(new Plain()));
""",
    "src/markup.d.ts": """declare namespace JSX {
  interface Element {}
  interface ElementAttributesProperty { given: {} }
  interface IntrinsicElements { div: {} }
}
""",
}


def written(root: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


async def unused_in(client: Asker) -> dict[str, str]:
    """Name path → confidence."""
    found = await parsed(client, "find_unused_symbols")
    return {one["name_path"]: one["confidence"] for one in found["unused"]}


async def refusal(client: Asker, name_path: str, **arguments: Any) -> str:
    """What a deletion is refused for, which leaves everything as it was."""
    result = await client.result("safe_delete_symbol", name_path=name_path, **arguments)
    assert result["isError"], result
    return result["content"][0]["text"]


@pytest.mark.parametrize(
    ("files", "unused", "kept", "why"),
    [
        pytest.param(
            RUST,
            "impl Guard/never_called",
            ["impl Drop for Guard/drop", "impl Error for Outer/source", "impl fmt::Display for Outer/fmt"],
            "it may be an override",
            id="rust",
        ),
        pytest.param(
            GO,
            "page/neverCalled",
            [
                "String",
                "Less",
                "Push",
                "Pop",
                "Error",
                "Unwrap",
                "Read",
                "ServeHTTP",
                "MarshalJSON",
                "box/label",
                "called",
                "helper",
            ],
            "",
            id="go",
        ),
        pytest.param(PYTHON, "Both/never_called", ["Both/act", "Both/move", "Both/write"], "", id="python"),
        pytest.param(
            TYPESCRIPT,
            "Plain/neverCalled",
            [
                *("Fault/toString", "Plain/toJSON", "Plain/valueOf", "Plain/then", "Many/[Symbol.iterator]"),
                *("Taken/onDone", "JSX", "JSX/Element", "JSX/ElementAttributesProperty/given", "JSX/IntrinsicElements"),
            ],
            "",
            id="typescript",
        ),
    ],
)
async def test_what_others_call_through_a_trait_or_an_interface_is_kept(
    files: Mapping[str, str], unused: str, kept: list[str], why: str, tmp_path: Path
) -> None:
    root = written(tmp_path / "seen", files)
    async with asker(tmp_path, root, rust_std=True) as client:
        assert list(await unused_in(client)) == [unused]
        before = {path: (root / path).read_text() for path in files}
        for name in kept:
            assert f"It may be referenced from elsewhere: {why}" in await refusal(client, name)
        assert {path: (root / path).read_text() for path in files} == before
        deleted = await client.result("safe_delete_symbol", name_path=unused)
        assert not deleted["isError"], deleted


ENTRIES = {
    "pyproject.toml": '[project]\nname = "seen"\nversion = "0.1"\n[project.scripts]\nseen = "entry:_start"\n',
    "serverless.yml": "functions:\n  a:\n    handler: entry.handler\n",
    "templates/page.html": "<h1>{{ page.full_title }} and a draft</h1>\n{% if page.summary %}x{% endif %}\n",
    "entry.py": """\
HEADING = "<h2>{{ page.heading }}</h2>"


class Page:
    def full_title(self):
        return "x"

    def summary(self):
        return "x"

    def heading(self):
        return "x"


def _start():
    print(Page())


def handler(event, context):
    return 1


def draft():
    return 1


def never_called():
    return 1
""",
}


async def test_what_manifests_and_templates_name_is_no_sure_finding_and_not_deleted(tmp_path: Path) -> None:
    root = written(tmp_path / "seen", ENTRIES)
    async with asker(tmp_path, root, rust_std=True) as client:
        assert await unused_in(client) == {"Page/heading": "medium", "draft": "medium", "never_called": "high"}
        assert "It may be referenced from elsewhere: it is named in 'pyproject.toml'." in await refusal(
            client, "_start"
        )
        assert "It may be referenced from elsewhere: it is named in 'serverless.yml'." in await refusal(
            client, "handler"
        )
        for name in ("Page/full_title", "Page/summary"):
            assert "It may be referenced from elsewhere: it is named in 'templates/page.html'." in await refusal(
                client, name
            )
        assert "Its name occurs in a string in entry.py:0" in await refusal(client, "Page/heading")
        assert (root / "entry.py").read_text() == ENTRIES["entry.py"]
        for name in ("draft", "never_called"):
            deleted = await client.result("safe_delete_symbol", name_path=name)
            assert not deleted["isError"], deleted


FOREIGN = {
    "Cargo.toml": RUST["Cargo.toml"],
    "src/main.rs": 'extern "C" {\n    fn add_up(x: i32) -> i32;\n}\n\nfn main() {\n    unsafe { add_up(1) };\n}\n',
    "compile_flags.txt": "",
    "c/sums.c": "int add_up(int x) { return x; }\n",
}


async def test_a_function_of_c_is_kept_for_the_rust_that_declares_it(tmp_path: Path) -> None:
    root = written(tmp_path / "foreign", FOREIGN)
    async with asker(tmp_path, root, rust_std=True) as client:
        assert "Its name occurs in 'src/main.rs', in another language" in await refusal(
            client, "add_up", relative_path="c/sums.c"
        )


FILLED = {
    "python": (
        {
            "point.py": "from dataclasses import dataclass\nfrom typing import NamedTuple\n\n\n"
            "@dataclass(frozen=True)\n"
            "class Point:\n    left: int\n    right: int = 0\n\n\n"
            "class Pair(NamedTuple):\n    one: int\n    other: int\n\n\n"
            "class Plain:\n    alone: int = 0\n\n\nprint(Point(1, 2), Pair(1, 2), Plain())\n",
        },
        ["Point/right", "Pair/other"],
        "Plain/alone",
    ),
    "typescript": (
        {
            "tsconfig.json": TYPESCRIPT["tsconfig.json"],
            "src/point.ts": "class Point {\n  alone = 1;\n  constructor(\n    public left: number,\n"
            "    public right: number,\n  ) {}\n}\nconsole.log(new Point(1, 2));\n",
        },
        ["Point/right"],
        "Point/alone",
    ),
    "go": (
        {
            "go.mod": GO["go.mod"],
            "main.go": 'package main\n\nimport "fmt"\n\ntype point struct {\n\tleft  int\n\tright int\n}\n\n'
            "type keyed struct {\n\tone   int\n\tother int\n}\n\nfunc made() keyed {\n\treturn keyed{one: 1}\n}\n\n"
            "func main() { fmt.Println([]point{{1, 2}}, made()) }\n",
        },
        ["point/right"],
        "keyed/other",
    ),
    "cpp": (
        {
            "a.cpp": "struct Point {\n  int left;\n  int right;\n};\nstruct Keyed {\n  int one;\n  int other;\n};\n"
            "int main() {\n  Point point = {1, 2};\n  Keyed keyed{.one = 1};\n"
            "  return sizeof(point) + sizeof(keyed);\n}\n",
            "compile_flags.txt": "-std=c++20\n",
        },
        ["Point/right"],
        "Keyed/other",
    ),
}


@pytest.mark.parametrize("language", FILLED)
async def test_a_field_that_is_filled_by_position_is_not_deleted(language: str, tmp_path: Path) -> None:
    files, kept, unused = FILLED[language]
    root = written(tmp_path / "seen", files)
    async with asker(tmp_path, root, rust_std=True) as client:
        for name in kept:
            assert "may receive its value as a positional argument" in await refusal(client, name)
        deleted = await client.result("safe_delete_symbol", name_path=unused)
        assert not deleted["isError"], deleted


MANGLED = {
    "vault.py": """\
class _Vault:
    __limit = 3

    def __open(self):
        return 1

    def __never_called(self):
        return 2


print(_Vault())
""",
    "thief.py": """\
from vault import _Vault


def peek(vault: _Vault, other):
    return vault._Vault__open() + other._Vault__limit


print(peek(_Vault(), _Vault()))
""",
}


async def test_a_private_member_is_known_by_the_name_that_python_gives_it_outside_of_its_class(tmp_path: Path) -> None:
    root = written(tmp_path / "seen", MANGLED)
    async with asker(tmp_path, root, rust_std=True) as client:
        assert await unused_in(client) == {"_Vault/__never_called": "high"}
        found = await client.result("find_referencing_symbols", name_path="_Vault/__open")
        assert "thief.py:4" in str(found["content"])
        for name in ("_Vault/__open", "_Vault/__limit"):
            assert "thief.py:4" in await refusal(client, name)
        renamed = await client.result("rename_symbol", name_path="_Vault/__open", new_name="__enter", dry_run=True)
        assert "__open still occurs in code that the language server cannot resolve (check each): thief.py:4" in str(
            renamed["content"]
        )
        renamed = await client.result("rename_symbol", name_path="_Vault", new_name="Vault", dry_run=True)
        assert "_Vault still occurs in code that the language server cannot resolve (check each): thief.py:4" in str(
            renamed["content"]
        )
        deleted = await client.result("safe_delete_symbol", name_path="_Vault/__never_called")
        assert not deleted["isError"], deleted
