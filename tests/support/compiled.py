"""A repository whose modules use one another, in four languages: random edits of it, and what its compilers say.

`contracts` declares symbols, a block of lines each; the other modules use each symbol in a file of its own, and find
`contracts` in the ways that their language has for it. What is declared where is read from the files again and again,
since edits come from outside, too.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.servers import SERVERS_HOME

SYMBOLS = 8

SYMBOL = re.compile(r"\bSym\d+(?:v\d+)?\b")

_SERVERS = SERVERS_HOME / "servers"


class Kit(NamedTuple):
    """One language. `declares` and `uses` are by the symbol's number modulo four: a function, a type, a constant, and
    a member of `Holder`. In them `SYM` stands for the name, `NUM` for the number and `FROM` for the module."""

    language: str
    files: Mapping[str, str]
    places: Sequence[str]
    """Files of `contracts` that hold symbols."""
    head: str
    """What such a file begins with."""
    declares: Sequence[str]
    uses: Sequence[str]
    use_file: str
    siblings: Mapping[str, str]
    """Module → how it names `contracts`."""
    command: Callable[[Path], list[str]]
    error: re.Pattern[str]
    """Finds in the compiler's output the file that an error lies in."""


def _tsconfig(more: str = "") -> str:
    return (
        '{"compilerOptions": {"module": "nodenext", "strict": true, "noEmit": true, "types": [],'
        ' "lib": ["es5"], "skipLibCheck": true'
        f'{more}}}, "include": ["src"]}}'
    )


GO = Kit(
    "go",
    {
        "contracts/go.mod": "module example.com/contracts\n\ngo 1.21\n",
        "orders/go.mod": (
            "module example.com/orders\n\ngo 1.21\n\nrequire example.com/contracts v0.0.0\n\n"
            "replace example.com/contracts => ../contracts\n"
        ),
        "billing/app/go.mod": "module example.com/billing\n\ngo 1.21\n\nrequire example.com/contracts v0.0.0\n",
        "billing/go.work": "go 1.21\n\nuse (\n\t./app\n\t../contracts\n)\n",
    },
    ("contracts/a.go", "contracts/b.go", "contracts/sub/sub.go"),
    "package PACKAGE",
    (
        "func SYM() int { return 1 }",
        "type SYM struct{ Field int }",
        "const SYM = 1",
        "type HolderNUM struct{}\nfunc (HolderNUM) SYM() int { return 1 }",
    ),
    (
        'package use\n\nimport "example.com/contracts"\n\nfunc UseNUM() int { return contracts.SYM() }\n',
        'package use\n\nimport "example.com/contracts"\n\nfunc UseNUM(one contracts.SYM) int { return one.Field }\n',
        'package use\n\nimport "example.com/contracts"\n\nvar UseNUM = contracts.SYM\n',
        'package use\n\nimport "example.com/contracts"\n\nfunc UseNUM() int { return contracts.HolderNUM{}.SYM() }\n',
    ),
    "FOLDER/use/useNUM.go",
    {"orders": "", "billing/app": ""},
    lambda _: ["go", "build", "-gcflags=-e", "./..."],
    re.compile(r"^(\S+\.go):\d+", re.MULTILINE),
)

TYPESCRIPT = Kit(
    "typescript",
    {
        "package.json": '{"private": true, "workspaces": ["contracts", "orders", "billing", "ledger"]}',
        ".gitignore": "node_modules\nbuilt\n*.tsbuildinfo\n",
        "contracts/package.json": '{"name": "@acme/contracts", "type": "module", "exports": {"./*": "./src/*.ts"}}',
        "contracts/tsconfig.json": _tsconfig(', "composite": true, "outDir": "built", "rootDir": "src"').replace(
            '"noEmit": true', '"emitDeclarationOnly": true'
        ),
        "orders/package.json": '{"name": "@acme/orders", "type": "module"}',
        "orders/tsconfig.json": _tsconfig(),
        "billing/package.json": '{"name": "@acme/billing", "type": "module"}',
        "billing/tsconfig.json": _tsconfig(', "paths": {"contracts/*": ["../contracts/src/*.ts"]}'),
        "ledger/package.json": '{"name": "@acme/ledger", "type": "module"}',
        "ledger/tsconfig.json": _tsconfig().replace('"include"', '"references": [{"path": "../contracts"}], "include"'),
    },
    ("contracts/src/a.ts", "contracts/src/b.ts"),
    "export const PACKAGE = 1;",
    (
        "export function SYM(): number { return 1; }",
        "export interface SYM { field: number }",
        "export const SYM = 1;",
        "export class HolderNUM {\n  SYM(): number { return 1; }\n}",
    ),
    (
        'import { SYM } from "FROM";\n\nexport const use = SYM();\n',
        'import type { SYM } from "FROM";\n\nexport const use: SYM = { field: 1 };\n',
        'import { SYM } from "FROM";\n\nexport const use = SYM;\n',
        'import { HolderNUM } from "FROM";\n\nexport const use = new HolderNUM().SYM();\n',
    ),
    "FOLDER/src/useNUM.ts",
    {"orders": "@acme/contracts/STEM", "billing": "contracts/STEM", "ledger": "../../contracts/src/STEM.js"},
    lambda _: [
        str(next(_SERVERS.glob("typescript/*/node_modules/@typescript/typescript-*/lib/tsc"))),
        *("--build", "--pretty", "false"),
    ],
    re.compile(r"^(\S+\.ts)\(\d+", re.MULTILINE),
)

_CRATE = '[package]\nname = "{}"\nversion = "1.0.0"\nedition = "2021"\n'

RUST = Kit(
    "rust",
    {
        ".gitignore": "Cargo.lock\ntarget\n",
        "contracts/Cargo.toml": _CRATE.format("contracts"),
        "contracts/src/lib.rs": "pub mod a;\npub mod b;\n",
        "orders/Cargo.toml": _CRATE.format("orders") + '\n[dependencies]\ncontracts = { path = "../contracts" }\n',
    },
    ("contracts/src/a.rs", "contracts/src/b.rs"),
    "pub const PACKAGE: i32 = 1;",
    (
        "pub fn SYM() -> i32 { 1 }",
        "pub struct SYM { pub field: i32 }",
        "pub const SYM: i32 = 1;",
        "pub struct HolderNUM;\nimpl HolderNUM { pub fn SYM(&self) -> i32 { 1 } }",
    ),
    (
        "use contracts::STEM::SYM;\n\nfn main() { SYM(); }\n",
        'use contracts::STEM::SYM;\n\nfn main() { println!("{}", SYM { field: 1 }.field); }\n',
        'use contracts::STEM::SYM;\n\nfn main() { println!("{}", SYM); }\n',
        "use contracts::STEM::HolderNUM;\n\nfn main() { HolderNUM.SYM(); }\n",
    ),
    "FOLDER/src/bin/useNUM.rs",
    {"orders": ""},
    lambda _: ["cargo", "check", "--offline", "--bins", "--keep-going", "--quiet", "--message-format", "short"],
    re.compile(r"^(\S+\.rs):\d+:\d+: error", re.MULTILINE),
)

_PYPROJECT = '[project]\nname = "{}"\nversion = "1"\n'

PYTHON = Kit(
    "python",
    {
        ".gitignore": ".venv\n",
        "contracts/pyproject.toml": _PYPROJECT.format("contracts"),
        "contracts/contracts/__init__.py": "",
        "orders/pyproject.toml": _PYPROJECT.format("orders")
        + '\n[tool.ty.environment]\nextra-paths = ["../contracts"]\n',
        "billing/pyproject.toml": _PYPROJECT.format("billing"),
        "billing/.venv/pyvenv.cfg": f"home = {Path(sys.base_prefix) / 'bin'}\nversion = 3.11\n",
        "billing/.venv/lib/python3.11/site-packages/contracts.pth": "ROOT/contracts\n",
    },
    ("contracts/contracts/a.py", "contracts/contracts/b.py"),
    "PACKAGE = 1",
    (
        "def SYM() -> int:\n    return 1",
        "class SYM:\n    field = 1",
        "SYM = 1",
        "class HolderNUM:\n    def SYM(self) -> int:\n        return 1",
    ),
    (
        "from contracts.STEM import SYM\n\nprint(SYM())\n",
        "from contracts.STEM import SYM\n\nprint(SYM.field)\n",
        "from contracts.STEM import SYM\n\nprint(SYM)\n",
        "from contracts.STEM import HolderNUM\n\nprint(HolderNUM().SYM())\n",
    ),
    "FOLDER/useNUM.py",
    {"orders": "", "billing": ""},
    lambda module: [
        *(str(Path(sys.executable).with_name("ty")), "check", "--output-format", "concise"),
        *(("--python", ".venv") if (module / ".venv").is_dir() else ()),
    ],
    re.compile(r"^(\S+\.py):\d+:\d+: error\[(?:unresolved|import|missing)-", re.MULTILINE),
)

KITS = (GO, TYPESCRIPT, RUST, PYTHON)


class Repository:
    """The modules of one language on disk, committed; and edits of them."""

    def __init__(self, kit: Kit, folder: Path) -> None:
        self.kit = kit
        self.root = folder.resolve() / kit.language
        self.contracts = self.root / "contracts"
        self._edits = 0
        for name, text in kit.files.items():
            self._write(name, text.replace("ROOT", str(self.root)))
        blocks: dict[str, list[str]] = {place: [self._head(place)] for place in kit.places}
        for number in range(SYMBOLS):
            place = kit.places[number % 2]
            blocks[place].append(_filled(kit.declares[number % 4], f"Sym{number}", number))
            for module, names in kit.siblings.items():
                stem = Path(place).stem
                text = kit.uses[number % 4].replace("FROM", names).replace("STEM", stem)
                name = kit.use_file.replace("FOLDER", module).replace("NUM", str(number))
                self._write(name, _filled(text, f"Sym{number}", number))
        for place, parts in blocks.items():
            self._write(place, "\n\n".join(parts) + "\n")
        if kit is TYPESCRIPT:
            (self.root / "node_modules/@acme").mkdir(parents=True)
            (self.root / "node_modules/@acme/contracts").symlink_to("../../contracts")
        self.git("init", "--quiet", ".")
        self.git("add", "--all", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "all")

    def modules(self) -> list[Path]:
        """Roots of the projects that use `contracts`."""
        return [self.root / module.partition("/")[0] for module in self.kit.siblings]

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.root, check=True)

    def broken(self) -> dict[str, set[str]]:
        """Module's root → its files that the compiler finds errors in."""
        found: dict[str, set[str]] = {}
        for name in self.kit.siblings:
            module = self.root / name
            environment = {**os.environ, "CARGO_TARGET_DIR": str(self.root.parent / "target"), "GOFLAGS": ""}
            environment.pop("VIRTUAL_ENV", None)
            done = subprocess.run(
                self.kit.command(module), cwd=module, env=environment, capture_output=True, text=True, check=False
            )
            output = done.stdout + done.stderr
            files = {(module / file).relative_to(self.root).as_posix() for file in self.kit.error.findall(output)}
            assert bool(files) == bool(done.returncode), output
            found[name.partition("/")[0]] = files
        return found

    def symbols(self) -> list[tuple[str, str]]:
        """File of `contracts` and name of each symbol that is declared there now."""
        return [
            (place, match[0])
            for place in self.kit.places
            if (self.root / place).exists()
            for match in SYMBOL.finditer((self.root / place).read_text())
        ]

    # --- edits -----------------------------------------------------------------------------------------------------

    def new_name(self, name: str) -> str:
        self._edits += 1
        return f"{name.partition('v')[0]}v{self._edits}"

    def rename_by_sed(self, random: Random) -> str:
        """In `contracts` alone, or everywhere."""
        place, name = random.choice(self.symbols())
        where = random.choice(["contracts", "."])
        new = self.new_name(name)
        files = subprocess.run(
            ["git", "grep", "--untracked", "-lw", name.partition("v")[0] + r"\(v[0-9]*\)\?", "--", where],
            cwd=self.root, capture_output=True, text=True, check=False,
        ).stdout.split()  # fmt: skip
        subprocess.run(["sed", "-i", rf"s/\b{name.partition('v')[0]}\(v[0-9]*\)\?\b/{new}/g", *files], cwd=self.root)
        return f"sed: {name} of {place} is {new} in {where}"

    def move(self, random: Random) -> str:
        place, name = random.choice(self.symbols())
        other = random.choice([other for other in self.kit.places if other != place])
        text = (self.root / place).read_text()
        block = next(block for block in text.split("\n\n") if re.search(rf"\b{name}\b", block)).rstrip("\n")
        self._write(place, text.replace("\n\n" + block, "", 1))
        there = self.root / other
        before = there.read_text() if there.exists() else self._head(other) + "\n"
        self._write(other, f"{before}\n{block}\n")
        return f"moved {name} from {place} to {other}"

    def delete(self, random: Random) -> str:
        """A file of `contracts` is gone, but for what names it. Go's last one would take the package along."""
        place = random.choice([place for place in self.kit.places if (self.root / place).exists()])
        if self.kit is RUST:
            self._write(place, self._head(place) + "\n")
            return f"emptied {place}"
        if sum((self.root / place).exists() for place in self.kit.places[:2]) == 2:
            (self.root / place).unlink()
        return f"deleted {place}"

    def check_out(self, random: Random) -> str:
        """One of the places, or all there is."""
        what = random.choice([*self.kit.places, "."])
        self.git("checkout", "--quiet", "--", what)
        if what == ".":
            self.git("clean", "--quiet", "-fd")
        return f"git checkout {what}"

    def _head(self, place: str) -> str:
        return self.kit.head.replace("PACKAGE", "sub" if "/sub/" in place else "contracts")

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _filled(text: str, name: str, number: int) -> str:
    return text.replace("SYM", name).replace("NUM", str(number))
