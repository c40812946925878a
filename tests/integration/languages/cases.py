"""What the five small projects in tests/projects hold, as their language servers must say it.

Lines and columns are 0-based; columns count characters, also behind `Größe 📏` on the same line. A place is written
`path:line:column`, a use `path:line:column symbol that holds it`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One language. `name` is its function that sums areas, defined in `file`, and used in `main` by `report`."""

    language: str
    name: str
    file: str
    main: str
    body: str
    """`path:start-end` of the definition, lines and columns."""
    references: tuple[str, ...]
    declaration: tuple[str, str]
    """A regex for a use in `main`, and the place that it leads to."""
    implementations: dict[str, tuple[str, ...]]
    """Name path of an interface or its method → `path: name path` of what implements it."""
    broken: str
    diagnostics: tuple[str, ...]
    """`line:column-end`, sorted, of the errors in `broken`."""
    incoming: dict[str, dict[str, dict[str, object]]]
    outgoing: dict[str, dict[str, object]]
    subtypes: dict[str, dict[str, object]] | None
    """Of Shape; None where the server has no type hierarchy."""
    supertypes: dict[str, dict[str, object]] | None
    """Of Tile."""
    more: str
    """A file to be written that uses `name` once more, in `more`."""
    more_text: str
    more_uses: tuple[str, ...]
    """References in it, `{path}` and `{shift}` (lines added above) to be filled."""
    unused: tuple[str, str]
    """What stands in `main` for its last use, and what takes its place."""
    declared: tuple[str, str] = ("", "")
    """A file, and a line with `{stem}` to be added at its end, that make the new file part of the whole."""
    compile_commands: tuple[str, ...] = ()


PYTHON = Case(
    language="python",
    name="total",
    file="shapes/base.py",
    main="report.py",
    body="shapes/base.py:10:0-12:48",
    references=(
        "broken.py:0:24 -",
        "broken.py:5:11 wrong",
        "report.py:0:31 -",
        "report.py:5:29 report",
        "report.py:11:10 main",
    ),
    declaration=(r"size = (total)\(", "shapes/base.py:10:0 total"),
    implementations={
        "Shape": ("shapes/square.py: Square", "shapes/square.py: Tile"),
        "Shape/area": ("shapes/square.py: Square/area", "shapes/square.py: Tile/area"),
    },
    broken="broken.py",
    diagnostics=("4:18-4:25", "5:11-5:24", "5:17-5:23"),
    incoming={
        "broken.py:3 wrong": {},
        "report.py:4 report": {"report.py:9 main": {}},
        "report.py:9 main": {},
    },
    outgoing={"shapes/base.py:10 total": {"shapes/base.py:7 area": {}, "outside sum": {}}},
    subtypes={"shapes/square.py:3 Square": {"shapes/square.py:11 Tile": {}}},
    supertypes={"shapes/square.py:3 Square": {"shapes/base.py:3 Shape": {}}},
    more="more.py",
    more_text="from shapes.base import total\n\n\ndef more() -> float:\n    return total([])\n",
    more_uses=("{path}:0:24 -", "{path}:4:11 more"),
    unused=("print(total([]))", "pass"),
)

TYPESCRIPT = Case(
    language="typescript",
    name="total",
    file="src/base.ts",
    main="src/report.ts",
    body="src/base.ts:6:0-8:1",
    references=(
        "src/View.tsx:0:9 -",
        "src/View.tsx:2:33 View",
        "src/broken.ts:0:9 -",
        "src/broken.ts:4:9 wrong",
        "src/plain.js:0:9 -",
        "src/plain.js:3:9 plain",
        "src/report.ts:0:9 -",
        "src/report.ts:4:39 report",
        "src/report.ts:10:14 main",
    ),
    declaration=(r"size = (total)\(", "src/base.ts:6:0 total"),
    implementations={
        "Shape": ("src/square.ts: Square", "src/square.ts: Tile"),
        "Shape/area": ("src/square.ts: Square/area", "src/square.ts: Tile/area"),
    },
    broken="src/broken.ts",
    diagnostics=("3:8-3:14", "4:15-4:21"),
    incoming={
        "src/View.tsx:2 View": {},
        "src/broken.ts:2 wrong": {},
        "src/plain.js:2 plain": {},
        "src/report.ts:3 report": {"src/report.ts:8 main": {}},
        "src/report.ts:8 main": {},
    },
    outgoing={"src/base.ts:6 total": {"src/base.ts:2 area": {}, "outside reduce": {}}},
    subtypes=None,
    supertypes=None,
    more="src/more.ts",
    more_text='import { total } from "./base.js";\n\nexport function more() {\n  return total([]);\n}\n',
    more_uses=("{path}:0:9 -", "{path}:3:9 more"),
    unused=("console.log(total([]));", ""),
)

GO = Case(
    language="go",
    name="Total",
    file="shapes/shapes.go",
    main="cmd/report/main.go",
    body="shapes/shapes.go:9:0-15:1",
    references=(
        "broken/broken.go:6:15 wrong",
        "cmd/report/main.go:10:35 report",
        "cmd/report/main.go:16:20 main",
    ),
    declaration=(r"size := shapes\.(Total)\(", "shapes/shapes.go:9:0 Total"),
    implementations={
        "Shape": ("shapes/square.go: Square", "shapes/square.go: Tile"),
        "Shape/Area": ("shapes/square.go: Square/Area", "shapes/square.go: Tile/Area"),
    },
    broken="broken/broken.go",
    diagnostics=("5:18-5:25", "6:21-6:27", "6:8-6:28"),
    incoming={
        "broken/broken.go:4 wrong": {},
        "cmd/report/main.go:9 report": {"cmd/report/main.go:14 main": {}},
        "cmd/report/main.go:14 main": {},
    },
    outgoing={"shapes/shapes.go:9 Total": {"shapes/shapes.go:5 Area": {}}, "outside Sprintf": {}},
    subtypes={"shapes/square.go:3 Square": {}, "shapes/square.go:13 Tile": {}},
    supertypes={"shapes/shapes.go:4 Shape": {}},
    more="cmd/report/more.go",
    more_text=(
        'package main\n\nimport "example.com/shapes/shapes"\n\nfunc more() float64 {\n\treturn shapes.Total(nil)\n}\n'
    ),
    more_uses=("{path}:5:15 more",),
    unused=("fmt.Println(shapes.Total(nil))", ""),
)

RUST = Case(
    language="rust",
    name="total",
    file="crates/shapes/src/lib.rs",
    main="src/main.rs",
    body="crates/shapes/src/lib.rs:11:0-14:1",
    references=(
        "src/broken.rs:0:12 -",
        "src/broken.rs:4:4 wrong",
        "src/main.rs:2:13 -",
        "src/main.rs:5:37 report",
        "src/main.rs:11:19 main",
    ),
    declaration=(r"size = (total)\(", "crates/shapes/src/lib.rs:11:0 total"),
    implementations={
        "Shape": (
            "crates/shapes/src/square.rs: impl Shape for Square",
            "crates/shapes/src/square.rs: impl Shape for Tile",
        ),
        "Shape/area": (
            "crates/shapes/src/square.rs: impl Shape for Square/area",
            "crates/shapes/src/square.rs: impl Shape for Tile/area",
        ),
    },
    broken="src/broken.rs",
    diagnostics=("3:22-3:29", "4:10-4:16", "4:4-4:17"),
    incoming={
        "src/broken.rs:2 wrong": {},
        "src/main.rs:4 report": {"src/main.rs:9 main": {}},
        "src/main.rs:9 main": {},
    },
    outgoing={
        "crates/shapes/src/lib.rs:12 total": {
            "crates/shapes/src/lib.rs:8 area": {},
            "outside iter": {},
            "outside map": {},
            "outside sum": {},
        }
    },
    subtypes=None,
    supertypes=None,
    more="src/broken/more.rs",
    more_text="use shapes::total;\n\npub fn more() -> f64 {\n    total(&[])\n}\n",
    more_uses=("{path}:0:12 -", "{path}:3:4 more"),
    unused=('println!("{}", total(&[]));', ""),
    declared=("src/broken.rs", "mod {stem};\n"),
)

CPP = Case(
    language="cpp",
    name="total",
    file="include/shapes.hpp",
    main="src/report.cpp",
    body="include/shapes.hpp:25:0-25:51",
    references=(
        "src/broken.cpp:4:11 wrong",
        "src/report.cpp:3:48 report",
        "src/report.cpp:11:48 main",
        "src/shapes.cpp:14:7 total",
    ),
    declaration=(r"size = (total)\(", "src/shapes.cpp:14:0 total"),
    implementations={"Shape": ("include/shapes.hpp: Square",), "Shape/area": ("src/shapes.cpp: Square/area",)},
    broken="src/broken.cpp",
    diagnostics=("3:8-3:14",),
    incoming={
        "src/broken.cpp:2 wrong": {},
        "src/report.cpp:2 report": {"src/report.cpp:7 main": {}},
        "src/report.cpp:7 main": {},
    },
    outgoing={"src/shapes.cpp:14 total": {"include/shapes.hpp:6 area": {}}},
    subtypes={"include/shapes.hpp:9 Square": {"include/shapes.hpp:18 Tile": {}}},
    supertypes={"include/shapes.hpp:9 Square": {"include/shapes.hpp:3 Shape": {}}},
    more="src/more.cpp",
    more_text='#include "shapes.hpp"\n\ndouble more() {\n    return total(nullptr, 0);\n}\n',
    more_uses=("{path}:3:11 more",),
    unused=(" + total(nullptr, 0)", ""),
    compile_commands=("src/shapes.cpp", "src/report.cpp", "src/broken.cpp", "src/plain.c"),
)

CASES = (PYTHON, TYPESCRIPT, GO, RUST, CPP)
