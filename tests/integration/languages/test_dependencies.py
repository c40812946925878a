"""Packages that are missing are told once, by real servers, and count as soon as they are installed."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.languages import Asker, asker, says_call_again

pytestmark = pytest.mark.anyio


def write(root: Path, **files: str) -> Path:
    for name, text in {"keep.txt": "", **files}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


async def ask(one: Asker, tool: str, **arguments: Any) -> tuple[str, list[str]]:
    """The answer of a call, which is made again where it says so, and the notes line by line: those of the calls before
    the last one, too, since what is said once may have been said there."""
    said: list[str] = []
    while True:
        answer, *notes = (part["text"] for part in (await one.client.call(tool, **arguments))["content"])
        lines = [line for note in notes for line in note.splitlines()]
        again = [line for line in (answer, *lines) if says_call_again(line)]
        said += [line for line in lines if line not in again]
        if not again:
            return answer, said


async def test_typescript_says_once_that_npm_packages_are_missing_and_finds_them_once_they_are_there(
    tmp_path: Path,
) -> None:
    files = {
        "package.json": json.dumps({"name": "shop", "dependencies": {"zod": "4"}}),
        "package-lock.json": "{}",
        "tsconfig.json": json.dumps({"compilerOptions": {"module": "nodenext"}, "include": ["src"]}),
        "src__cart.ts": 'import { only } from "zod";\n\nexport const total: number = only;\n',
        ".gitignore": "node_modules/\n",
    }
    root = write(tmp_path / "shop", **files)
    lacking = (
        "typescript: 1 npm package not installed (zod): third-party imports from there are unknown; "
        f"`npm ci` in {root} installs them."
    )
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as one:
            answer, notes = await ask(one, "get_diagnostics_for_file", relative_path="src/cart.ts")
            assert "Cannot find module 'zod'" in answer
            assert notes == [lacking]
            _, notes = await ask(one, "get_diagnostics_for_file", relative_path="src/cart.ts")
            assert notes == []
            write(
                root / "node_modules" / "zod",
                **{
                    "package.json": json.dumps({"name": "zod", "version": "4.0.0", "types": "index.d.ts"}),
                    "index.d.ts": "export declare const only: number;\n",
                },
            )
            while "Cannot find module" in answer:
                answer, notes = await ask(one, "get_diagnostics_for_file", relative_path="src/cart.ts")
                assert lacking not in notes


async def test_rust_and_go_say_which_command_fetches_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    crate = (
        '[package]\nname = "till"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nno-such-crate-here = "1"\n'
    )
    root = write(
        tmp_path / "shop",
        **{
            "rust__Cargo.toml": crate,
            "rust__src__lib.rs": "pub fn total() -> i32 { 1 }\n",
            "go__go.mod": "module shop\n\ngo 1.24\n\nrequire example.com/none v1.0.0\n",
            "go__cart.go": "package shop\n\nfunc Total() int { return 1 }\n",
        },
    )
    with anyio.fail_after(170):
        async with asker(tmp_path, root) as one:
            _, notes = await ask(one, "get_diagnostics_for_file", relative_path="rust/src/lib.rs")
            assert any(
                "1 crate not installed (no-such-crate-here)" in line and f"`cargo fetch` in {root}/rust" in line
                for line in notes
            ), notes
            _, notes = await ask(one, "get_diagnostics_for_file", relative_path="go/cart.go")
            assert any(
                "1 Go module not installed (example.com/none v1.0.0)" in line and "`go mod download`" in line
                for line in notes
            ), notes
