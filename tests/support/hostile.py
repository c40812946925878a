"""Repositories that try to run something of their own as soon as somebody opens them: it leaves a file, its canary."""

import json
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path


class Hostile:
    """A repository below a folder. Each of its programs leaves a file of its name in `canaries`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "stranger"
        self.root.mkdir()
        self.canaries = folder / "canaries"
        self.canaries.mkdir()
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.program(".git/fsmonitor", name="fsmonitor")
        subprocess.run(
            ["git", "-C", str(self.root), "config", "core.fsmonitor", str(self.root / ".git/fsmonitor")], check=True
        )
        self.write(
            ".vscode/settings.json", json.dumps({"python.pythonPath": "./evil", "rust-analyzer.server.path": "./evil"})
        )

    @property
    def ran(self) -> set[str]:
        """What of the repository was executed so far."""
        return {file.name for file in self.canaries.iterdir()}

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip("\n"))
        return file

    def program(self, path: str, *, name: str = "", then: str = "exit 1") -> Path:
        """A shell script that leaves its canary, then goes on as it is told."""
        canary = self.canaries / (name or Path(path).name)
        file = self.write(path, f"#!/bin/sh\n: > {shlex.quote(str(canary))}\n{then}\n")
        file.chmod(0o755)
        return file

    def library(self, path: str) -> Path:
        """A shared library that leaves its canary when it is loaded."""
        canary = self.canaries / Path(path).name
        code = f"""\
            #include <fcntl.h>
            __attribute__((constructor)) static void run(void) {{ open("{canary}", O_CREAT | O_WRONLY, 0600); }}
            """
        source = self.write(f"{path}.c", code)
        library = self.root / path
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        source.unlink()
        return library

    def javascript(self, path: str, *, name: str) -> Path:
        canary = json.dumps(str(self.canaries / name))
        return self.write(path, f"require('fs').writeFileSync({canary}, '')\n")


def python(hostile: Hostile) -> None:
    """An interpreter in the folder where each tool looks for one, and modules that Python would take from there."""
    hostile.write("shop.py", "def opened():\n    return 1\n\n\nopened()\n")
    hostile.write(".venv/pyvenv.cfg", f"home = {Path(sys.executable).parent}\nversion = 3.11.7\n")
    (hostile.root / ".venv/lib/python3.11/site-packages").mkdir(parents=True)
    for name in ("python", "python3"):
        then = f'exec {shlex.quote(sys.executable)} "$@"'
        hostile.program(f".venv/bin/{name}", name="venv-python", then=then)
    hostile.write("json.py", f"open({str(hostile.canaries / 'json.py')!r}, 'w').close()\n")


def typescript(hostile: Hostile) -> None:
    """TypeScript and a plug-in in node_modules, and scripts of npm."""
    hostile.write("shop.ts", "export function opened(): number { return 1; }\nopened();\n")
    plugins = {"compilerOptions": {"strict": True, "plugins": [{"name": "evil-plugin"}]}, "include": ["*.ts"]}
    hostile.write("tsconfig.json", json.dumps(plugins))
    npm = {"name": "shop", "scripts": {"preinstall": f"touch {hostile.canaries / 'preinstall'}"}}
    hostile.write("package.json", json.dumps(npm))
    hostile.write("node_modules/typescript/package.json", json.dumps({"name": "typescript", "version": "5.9.3"}))
    for name in ("tsserver", "typescript", "tsc", "_tsc"):
        hostile.javascript(f"node_modules/typescript/lib/{name}.js", name=name)
    hostile.write("node_modules/evil-plugin/package.json", json.dumps({"name": "evil-plugin", "main": "index.js"}))
    hostile.javascript("node_modules/evil-plugin/index.js", name="evil-plugin")
    for name in ("tsc", "typescript-language-server", "node"):
        hostile.program(f"node_modules/.bin/{name}", name=f"bin-{name}")


def rust(hostile: Hostile) -> None:
    """A build script, a procedural macro, a toolchain, a compiler, a wrapper, a preloaded library."""
    hostile.write(
        "Cargo.toml",
        """
        [package]
        name = "shop"
        version = "0.1.0"
        edition = "2021"

        [dependencies]
        derive = { path = "derive" }
        """,
    )
    hostile.write(
        "src/main.rs", "fn opened() -> i32 { 1 }\n\nfn main() { opened(); }\n\n#[derive(derive::Evil)]\nstruct S;\n"
    )
    hostile.write("build.rs", _writes(hostile.canaries / "build.rs"))
    hostile.write(
        "derive/Cargo.toml",
        """
        [package]
        name = "derive"
        version = "0.1.0"
        edition = "2021"

        [lib]
        proc-macro = true
        """,
    )
    hostile.write(
        "derive/src/lib.rs",
        f"""
        use proc_macro::TokenStream;

        #[proc_macro_derive(Evil)]
        pub fn evil(_: TokenStream) -> TokenStream {{
            std::fs::write("{hostile.canaries / "macro"}", "").unwrap();
            TokenStream::new()
        }}
        """,
    )


def rust_configured(hostile: Hostile) -> None:
    """As `rust`, with all that Cargo and rustup read from the folder that they are run in."""
    rust(hostile)
    hostile.program("rustc.sh", name="rustc", then='exec rustc "$@"')
    hostile.program("wrapper.sh", name="rustc-wrapper", then='exec "$@"')
    library = hostile.library("preloaded.so")
    hostile.write(
        ".cargo/config.toml",
        f"""
        [build]
        rustc = "./rustc.sh"
        rustc-wrapper = "./wrapper.sh"

        [env]
        LD_PRELOAD = {{ value = "{library}", force = true }}
        """,
    )


def rust_toolchain(hostile: Hostile) -> None:
    """As `rust`, with a toolchain of its own."""
    rust(hostile)
    hostile.write("rust-toolchain.toml", f'[toolchain]\npath = "{hostile.root / "toolchain"}"\n')
    (hostile.root / "toolchain/lib").mkdir(parents=True)
    for name in ("cargo", "rustc"):
        hostile.program(f"toolchain/bin/{name}", name=f"toolchain-{name}")


def rust_analyzer_told(hostile: Hostile) -> None:
    """As `rust`, with a configuration of rust-analyzer itself that wants everything run."""
    rust(hostile)
    hostile.program("override.sh", name="override")
    hostile.write(
        "rust-analyzer.toml",
        f"""
        checkOnSave = true

        [cargo.buildScripts]
        enable = true

        [check]
        overrideCommand = ["{hostile.root / "override.sh"}"]
        """,
    )


def _writes(canary: Path) -> str:
    return f'fn main() {{ std::fs::write("{canary}", "").unwrap(); }}\n'


def go(hostile: Hostile, *, cgo: bool = False) -> None:
    """A toolchain that is nowhere yet, an environment file, and flags for a tool of its own."""
    hostile.write("go.mod", "module example.com/shop\n\ngo 1.21\n")
    hostile.program("toolexec.sh", name="toolexec", then='exec "$@"')
    hostile.write("go.env", f"GOFLAGS=-toolexec={hostile.root / 'toolexec.sh'}\n")
    hostile.write(
        "shop.go", "package main\n\nfn opened() int { return 1 }\n\nfn main() { opened() }\n".replace("fn ", "func ")
    )
    if cgo:
        hostile.write(
            "c.go",
            """
            package main

            // #cgo pkg-config: evil
            // int one(void) { return 1; }
            import "C"

            func inC() int { return int(C.one()) }
            """,
        )


def c(hostile: Hostile) -> None:
    """A compiler and plug-ins in the compilation database and in .clangd."""
    hostile.write("shop.c", "int opened(void) { return 1; }\n\nint main(void) { return opened(); }\n")
    driver = hostile.program("evil-cc")
    library = hostile.library("plugin.so")
    plugged = [f"-fplugin={library}", "-Xclang", "-load", "-Xclang", str(library), f"-fpass-plugin={library}"]
    command = [str(driver), *plugged, f"-B{hostile.root}", "-c", "shop.c"]
    database = [{"directory": str(hostile.root), "file": "shop.c", "arguments": command}]
    hostile.write("compile_commands.json", json.dumps(database))
    hostile.write(
        ".clangd",
        f"""
        CompileFlags:
          Compiler: {driver}
          Add: [-fplugin={library}]
          BuiltinHeaders: QueryDriver
        """,
    )
