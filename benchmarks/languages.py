"""Rows about the core languages: on a generated project of each, from nothing to all symbols, and to the first uses.

What the language server takes alone, asked the same in the same run, is the peer. Each measurement starts with a server
and a home of their own.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks.bench import Bench, Server
from benchmarks.django import BUILD
from benchmarks.table import Row, row
from serena_central.core.places import Places
from serena_central.core.text import Position
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import locate
from serena_central.lsp.roots import server_root

FILES = 300
METHODS = 8
TIMES = 3
AT_ONCE = 8
SERVERS = BUILD.parent / "servers-home" / "servers"


@dataclass(frozen=True)
class Generated:
    """How a project of one language is written: `{n}` is a file's number, `{m}` a method's."""

    language: str
    base: str
    base_text: str
    position: tuple[int, int]
    """Of the name `shared` in `base`."""
    file: str
    head: str
    method: str
    tail: str
    extra: dict[str, str]


GENERATED = (
    Generated(
        "python",
        "base.py",
        "def shared(value: int) -> int:\n    return value\n",
        (0, 5),
        "part_{n}.py",
        "from base import shared\n\n\nclass Part{n}:\n",
        "    def method_{m}(self, value: int) -> int:\n        return shared(value + {m})\n\n",
        "",
        {"pyproject.toml": '[project]\nname = "generated"\nversion = "1"\n'},
    ),
    Generated(
        "typescript",
        "src/base.ts",
        "export function shared(value: number): number {\n  return value;\n}\n",
        (0, 17),
        "src/part_{n}.ts",
        'import {{ shared }} from "./base.js";\n\nexport class Part{n} {{\n',
        "  method{m}(value: number): number {{\n    return shared(value + {m});\n  }}\n\n",
        "}\n",
        {"tsconfig.json": '{"compilerOptions": {"module": "nodenext", "noEmit": true}, "include": ["src"]}'},
    ),
    Generated(
        "go",
        "base/base.go",
        "package base\n\nfunc Shared(value int) int { return value }\n",
        (2, 5),
        "part_{n}/part.go",
        'package part_{n}\n\nimport "example.com/generated/base"\n\ntype Part{n} struct{{}}\n\n',
        "func (p Part{n}) Method{m}(value int) int {{\n\treturn base.Shared(value + {m})\n}}\n\n",
        "",
        {"go.mod": "module example.com/generated\n\ngo 1.21\n"},
    ),
    Generated(
        "rust",
        "src/base.rs",
        "pub fn shared(value: i64) -> i64 {\n    value\n}\n",
        (0, 7),
        "src/part_{n}.rs",
        "use crate::base::shared;\n\npub struct Part{n};\n\nimpl Part{n} {{\n",
        "    pub fn method_{m}(&self, value: i64) -> i64 {{\n        shared(value + {m})\n    }}\n\n",
        "}\n",
        {
            "Cargo.toml": '[package]\nname = "generated"\nversion = "1.0.0"\nedition = "2021"\n',
            "src/lib.rs": "pub mod base;\n" + "".join(f"pub mod part_{n};\n" for n in range(FILES)),
        },
    ),
    Generated(
        "cpp",
        "base.hpp",
        "#pragma once\nint shared(int value);\n",
        (1, 4),
        "part_{n}.cpp",
        '#include "base.hpp"\n\nclass Part{n} {{\npublic:\n',
        "    int method_{m}(int value) const {{\n        return shared(value + {m});\n    }}\n\n",
        "};\n",
        {},
    ),
)


def languages(bench: Bench) -> Iterator[Row]:
    if not SERVERS.is_dir():
        raise SystemExit(f"{SERVERS} is not there; run `make servers` first")
    for generated in GENERATED:
        root = _write(generated)
        spec = catalogue().default_server(generated.language)
        assert spec is not None
        for what, ours, alone in (
            ("cold references", _references, _references_alone),
            ("all symbols", _index, _index_alone),
        ):
            taken, bases = [], []
            for _ in range(TIMES):  # in turn, so that both meet the same load
                shutil.rmtree(root / ".cache", ignore_errors=True)  # clangd keeps its index there
                bases.append(anyio.run(_alone, generated, root, alone, backend_options={"use_uvloop": True}))
                shutil.rmtree(root / ".cache", ignore_errors=True)
                taken.append(_with_server(bench, generated, root, ours))
            base = sorted(bases)[len(bases) // 2]
            note = f"{spec.name} alone {base:.0f} ms"
            if what == "all symbols":
                note += f"; {(FILES + 1) / sorted(taken)[len(taken) // 2] * 1000:.0f} files/s"
            name = f"{generated.language}: {what} of {FILES} files"
            yield row(name, "", taken, peer=f"{spec.name} alone", base=base, note=note)


def _write(generated: Generated) -> Path:
    root = BUILD / "generated" / generated.language
    shutil.rmtree(root, ignore_errors=True)
    files = {generated.base: generated.base_text, **generated.extra}
    for n in range(FILES):
        methods = "".join(generated.method.format(n=n, m=m) for m in range(METHODS))
        files[generated.file.format(n=n)] = generated.head.format(n=n) + methods + generated.tail
    if generated.language == "cpp":
        sources = [generated.file.format(n=n) for n in range(FILES)]
        commands = [{"directory": str(root), "file": file, "arguments": ["c++", "-c", file]} for file in sources]
        files["compile_commands.json"] = json.dumps(commands)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)  # no agent may open what is no repository
    return root


def _sources(generated: Generated, root: Path) -> list[Path]:
    return [root / generated.base, *(root / generated.file.format(n=n) for n in range(FILES))]


def _with_server(
    bench: Bench, generated: Generated, root: Path, work: Callable[[Server, Any, Generated], None]
) -> float:
    """Milliseconds from the activation of the project on, by a server that knows nothing of it."""
    home = bench.fresh_home("languages")
    (home / "servers").symlink_to(SERVERS)
    server = Server(home)
    try:
        client = server.client()
        started = time.perf_counter()
        client.call("activate_project", project=str(root))
        work(server, client, generated)
        taken = (time.perf_counter() - started) * 1000
        client.close()
    finally:
        server.stop()
    return taken


def _references(server: Server, client: Any, generated: Generated) -> None:
    name = "Shared" if generated.language == "go" else "shared"
    answer: bytes = client.call("find_referencing_symbols", name_path=name, relative_path=generated.base)
    said = re.search(rb"([\d,]+) references in ([\d,]+) files", answer)  # the answer itself shows the first of them
    assert said is not None, answer[-500:]
    assert int(said[1].replace(b",", b"")) >= FILES * METHODS, said[0]
    assert int(said[2].replace(b",", b"")) >= FILES, said[0]


def _index(server: Server, client: Any, generated: Generated) -> None:
    while any(project["pending"] for project in server.get("/api/v1/projects?open=true")["projects"]):
        time.sleep(0.01)


async def _alone(
    generated: Generated, root: Path, work: Callable[[LanguageServer, Generated, Path], Awaitable[None]]
) -> float:
    """Milliseconds from the spawn of the language server on."""
    spec = catalogue().default_server(generated.language)
    assert spec is not None
    place = server_root(spec, root, root / generated.base)
    launch = locate(spec, place.root, Places(SERVERS.parent), untrusted=None)
    server = LanguageServer(spec, root, launch=launch, settings={}, read_text=lambda path: read_text(path).text)
    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.run)
        await work(server, generated, root)
        taken = (time.perf_counter() - started) * 1000
        server.stop()
    return taken


async def _references_alone(server: LanguageServer, generated: Generated, root: Path) -> None:
    await server.document_symbols(root / generated.base)
    await server.ready()
    line0, column = generated.position
    candidates = _sources(generated, root) if server.spec.documents.open_candidates else []
    found = await server.references(root / generated.base, Position(line0, column), candidates=candidates)
    assert len(found) >= FILES * METHODS, len(found)


async def _index_alone(server: LanguageServer, generated: Generated, root: Path) -> None:
    files = iter(_sources(generated, root))

    async def worker() -> None:
        for file in files:
            await server.document_symbols(file)

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(worker)
