"""Cycles, unused symbols and broken references: what was put into a small project is found, and nothing else.

The projects hold some of it before: `View`, `wrong`, `plain` and `four` have no caller; a crate's root and its
module are a cycle, and so are a header and its source.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.languages import AS_SHIPPED, Asker, asker, copy_of


@dataclass(frozen=True)
class Seeded:
    """Files put into the project of a language, and what must be said of the whole."""

    language: str
    files: dict[str, str]
    cycles: Sequence[str]
    unused: Sequence[str]
    broken: Sequence[str]
    appended: tuple[str, str] = ("", "")
    compile_commands: Sequence[str] = ()


PYTHON = Seeded(
    "python",
    {
        "shapes/ring.py": "from shapes.stone import Stone\n\n\nclass Ring:\n    stone: Stone\n",
        "shapes/stone.py": "from __future__ import annotations\n\nimport shapes.ring\n\n\n"
        "class Stone:\n    ring: shapes.ring.Ring\n",
        "lost.py": "import nowhere\nfrom shapes.base import missing, total\n\n\n"
        "def forgotten(depth: int) -> int:\n    return forgotten(depth - 1)\n\n\n"
        'if __name__ == "__main__":\n    print(undefined_name, total([]).nothing, nowhere, missing)\n',
    },
    cycles=["shapes/ring.py ↔ shapes/stone.py"],
    unused=["broken.py: wrong high", "lost.py: forgotten medium"],
    broken=[
        "lost.py:0 unresolved import, possible",
        "lost.py:1 unresolved import",
        "lost.py:9 undefined name",
        "lost.py:9 missing member, possible",
    ],
)

TYPESCRIPT = Seeded(
    "typescript",
    {
        "src/ring.ts": 'import { Stone } from "./stone.js";\n\nexport class Ring {\n  stone?: Stone;\n}\n',
        "src/stone.ts": 'import { Ring } from "./ring.js";\n\nexport class Stone {\n  ring?: Ring;\n}\n',
        "src/lost.ts": 'import { nothing } from "./nowhere.js";\nimport { missing } from "./base.js";\n\n'
        'function forgotten(): void {\n  forgotten();\n}\n\nconsole.log(undefinedName, "".absent, nothing, missing);\n',
    },
    cycles=["src/ring.ts ↔ src/stone.ts"],
    unused=[
        "src/View.tsx: View high",
        "src/broken.ts: wrong high",
        "src/lost.ts: forgotten medium",
        "src/plain.js: plain high",
    ],
    broken=[
        "src/lost.ts:0 unresolved import",
        "src/lost.ts:1 unresolved import",
        "src/lost.ts:7 undefined name",
        "src/lost.ts:7 missing member",
    ],
)

GO = Seeded(
    "go",
    {
        "ring/ring.go": "package ring\n\ntype Ring struct{ stone *Stone }\n",
        "ring/stone.go": "package ring\n\ntype Stone struct{ ring *Ring }\n",
        "lost/lost.go": 'package lost\n\nimport (\n\t"example.com/shapes/nowhere"\n\t"example.com/shapes/shapes"\n)\n\n'
        "func forgotten() { forgotten() }\n\nvar _ = undefinedName\nvar _ = shapes.Missing\nvar _ = nowhere.X\n"
        "var _ = shapes.Square{}.Absent\n",
    },
    cycles=["ring/ring.go ↔ ring/stone.go"],
    unused=["broken/broken.go: wrong high", "lost/lost.go: forgotten medium"],
    broken=[
        "lost/lost.go:3 unresolved import",
        "lost/lost.go:9 undefined name",
        "lost/lost.go:10 unresolved import",
        "lost/lost.go:12 missing member",
    ],
)

RUST = Seeded(
    "rust",
    {
        "src/ring.rs": "use crate::stone::Stone;\n\npub struct Ring {\n    pub stone: Option<Box<Stone>>,\n}\n",
        "src/stone.rs": "use crate::ring::Ring;\n\npub struct Stone {\n    pub ring: Option<Box<Ring>>,\n}\n",
        "src/lost.rs": "use crate::nowhere::Thing;\n\nfn forgotten() {\n    forgotten()\n}\n\n"
        "pub fn found() -> i32 {\n    undefined_name()\n}\n\n"
        "pub fn absent() {\n    String::new().absent_method();\n}\n",
    },
    cycles=["crates/shapes/src/lib.rs ↔ crates/shapes/src/square.rs", "src/ring.rs ↔ src/stone.rs"],
    unused=[
        "src/broken.rs: wrong high",
        "src/lost.rs: forgotten medium",
        "src/lost.rs: found high",
        "src/lost.rs: absent high",
    ],
    broken=["src/lost.rs:0 unresolved import", "src/lost.rs:7 undefined name", "src/lost.rs:11 missing member"],
    appended=("src/main.rs", "\nmod ring;\nmod stone;\nmod lost;\n"),
)


CPP = Seeded(
    "cpp",
    {
        "src/ring.hpp": '#pragma once\n#include "stone.hpp"\n\nstruct Ring {\n  Stone *stone;\n};\n',
        "src/stone.hpp": "#pragma once\n\nstruct Ring;\n\nstruct Stone {\n  Ring *ring;\n};\n",
        "src/stone.cpp": '#include "ring.hpp"\n\nint main() {\n  Ring ring{};\n  return ring.stone == nullptr;\n}\n',
        "src/lost.cpp": '#include "nowhere.hpp"\n#include "shapes.hpp"\n\n'
        "static void forgotten() {\n  forgotten();\n}\n\n"
        "int undefinedUse = undefinedName;\nint absent = sizeof(Square::missing);\n",
    },
    cycles=["include/shapes.hpp ↔ src/shapes.cpp", "src/ring.hpp ↔ src/stone.hpp"],
    unused=["src/broken.cpp: wrong high", "src/lost.cpp: forgotten medium", "src/plain.c: four high"],
    broken=["src/lost.cpp:0 unresolved import", "src/lost.cpp:7 undefined name", "src/lost.cpp:8 missing member"],
    compile_commands=(
        "src/report.cpp",
        "src/shapes.cpp",
        "src/broken.cpp",
        "src/lost.cpp",
        "src/stone.cpp",
        "src/plain.c",
    ),
)


ATTEMPTS = 4


async def parsed(client: Asker, tool: str, **arguments: Any) -> Any:
    """The answer of a call that must succeed; data files that no server answers for may be noted."""
    result = await client.result(tool, **arguments)
    assert not result["isError"], result
    return json.loads(result["content"][0]["text"])


async def whole(client: Asker, tool: str, **arguments: Any) -> Any:
    """The answer as it is once it lacks nothing: on a busy machine, a server may still read the project at first, and
    the answer says so."""
    for _ in range(ATTEMPTS):
        answer = await parsed(client, tool, seconds=200, **arguments)
        if not any("possibly incomplete" in note or "Out of time" in note for note in answer.get("notes", ())):
            break
    return answer


@pytest.mark.parametrize("seeded", [PYTHON, TYPESCRIPT, GO, RUST, CPP], ids=lambda seeded: seeded.language)
async def test_what_was_put_in_is_found_and_nothing_else(seeded: Seeded, tmp_path: Path) -> None:
    root = copy_of(seeded.language, tmp_path / "project", compile_commands=seeded.compile_commands)
    for path, text in seeded.files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    if seeded.appended[0]:
        file = root / seeded.appended[0]
        file.write_text(file.read_text() + seeded.appended[1])
    async with asker(tmp_path, root, AS_SHIPPED) as client:
        graph = await whole(client, "dependency_graph", format="json")
        assert [cycle["name"] for cycle in graph["analysis"]["cycles"]] == list(seeded.cycles), graph["notes"]
        unused = (await whole(client, "find_unused_symbols"))["unused"]
        assert [f"{one['relative_path']}: {one['name_path']} {one['confidence']}" for one in unused] == list(
            seeded.unused
        )
        broken = (await parsed(client, "check_references", possible=True))["broken"]
        assert [
            f"{one['path']}:{one['line']} {one['what']}{'' if one['certainty'] == 'certain' else ', possible'}"
            for one in broken
        ] == list(seeded.broken)
