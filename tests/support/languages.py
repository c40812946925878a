"""Small real projects of tests/projects on a running server with the core language servers."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from serena_central.core.places import Places
from serena_central.projects.project import Project
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import RawClient
from tests.support.servers import with_core_servers

PROJECTS = Path(__file__).parents[1] / "projects"

OPTIONAL = ["get_call_hierarchy", "get_type_hierarchy"]


def copy_of(name: str, folder: Path, *, compile_commands: Iterable[str] = ()) -> Path:
    """A project of its own below `folder`, with the compilation database of these files in it."""
    root = folder / name
    shutil.copytree(PROJECTS / name, root)
    if name == "python":
        # Without one of the project's own, ty looks into the environment that it is installed in.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    commands = [
        {"directory": str(root), "file": file, "arguments": ["cc", "-Iinclude", "-c", file]}
        for file in compile_commands
    ]
    if commands:
        (root / "compile_commands.json").write_text(json.dumps(commands))
    return root


USUAL = (
    "resolves third-party imports",
    "Not searched: data, markup and languages with few files",
    "marked as build output",
    "No symbol matches",
)
"""Notes that mean nothing is missing: which Python environment is used; in what an empty answer did not look, and what
may have been meant."""


async def called_patiently(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call, which is made again where it says so: on a slow machine a language server may start or
    index for longer than a call waits. The test's own time bounds it."""
    while True:
        result = await client.call(tool, **arguments)
        if not any(says_call_again(part["text"]) for part in result["content"]):
            return result


def says_call_again(said: str) -> bool:
    """Not whether another call would go on with what this one has begun, which is for the test to ask for."""
    return re.search(r"call again(?! to resume)", said, re.IGNORECASE) is not None


class Asker:
    """A client with one active project. `cold` is the answer to the very first question, if one was asked."""

    def __init__(self, central: RunningCentral, client: RawClient, root: Path) -> None:
        self.central = central
        self.client = client
        self.root = root
        self.cold: Any = None

    @property
    def project(self) -> Project:
        project = self.central.central.projects.opened(str(self.root))
        assert project is not None
        return project

    async def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await called_patiently(self.client, tool, **arguments)

    async def ask(self, tool: str, **arguments: Any) -> Any:
        """The answer of a call that must succeed, without a note but the one on the Python environment that is used."""
        result = await self.result(tool, **arguments)
        answer, *notes = (part["text"] for part in result["content"])
        assert not result["isError"], answer
        lines = [line for note in notes for line in note.splitlines()]
        assert [line for line in lines if not any(usual in line for usual in USUAL)] == [], lines
        return json.loads(answer)

    async def uses(self, name_path: str, file: str = "") -> list[str]:
        """`path:line:column holder` of all references, which must be complete; `-` is the top level of a file."""
        project = self.project
        found = await project.navigation.references.of(await project.find_one(name_path, file))
        assert (found.note, found.caveat, found.gaps, found.outside) == (None, None, [], 0)
        return [
            f"{use.path}:{use.range.start.line0}:{use.range.start.column} {use.holder.name_path if use.holder else '-'}"
            for use in found.references
        ]


_NO_STD = {"cargo": {"sysroot": None}}

WITHOUT_STD = {"rust": {"settings": {"rust-analyzer": _NO_STD}, "initialization_options": _NO_STD}}
"""`language_servers` for Rust code that needs nothing of the standard library: analysing that takes rust-analyzer nine
tenths of its start."""

_NO_PRIMING = {"cachePriming": {"enable": False}}

UNPRIMED = {"rust": {"settings": {"rust-analyzer": _NO_PRIMING}, "initialization_options": _NO_PRIMING}}
"""`language_servers` for Rust code that needs the standard library, of which rust-analyzer then analyses what questions
need, and not all at its start. Its answers are the same."""

AS_SHIPPED: dict[str, Any] = {"language_servers": {}}
"""Settings with which each language server starts as users have it."""


@asynccontextmanager
async def asker(
    folder: Path,
    root: Path,
    settings: Mapping[str, Any] | None = None,
    *,
    broken: str = "",
    more: Path | None = None,
    rust_std: bool = False,
) -> AsyncGenerator[Asker]:
    """A server with a home in `folder`, and a client whose active project is `root`. No question was asked yet.

    Rust's standard library is there with `rust_std`, analysed as far as questions need it, or where the settings have
    language servers of their own (`AS_SHIPPED`).
    The language server `broken` is a program that ends with exit code 3; those in the folder `more` are there as
    well, or in place of others.
    """
    places = Places(folder / "home")
    with_core_servers(places)
    if broken or more:
        _own_folder(places)
    if broken:
        _break(places.servers / broken)
    for other in more.iterdir() if more else ():
        (places.servers / other.name).unlink(missing_ok=True)
        (places.servers / other.name).symlink_to(other)
    usual: dict[str, Any] = {"included_optional_tools": OPTIONAL, "auto_install": "off"}
    usual["language_servers"] = UNPRIMED if rust_std else WITHOUT_STD
    settings = {**usual, **(settings or {})}
    async with (
        running_central(folder, settings, patience_s=300) as central,
        central.raw("handshake") as client,
    ):
        answer = await client.call("activate_project", project=str(root))
        assert not answer["isError"], answer
        yield Asker(central, client, root)


def _own_folder(places: Places) -> None:
    """The shared servers, in a folder that may be changed."""
    shared = places.servers.resolve()
    places.servers.unlink()
    places.servers.mkdir()
    for server in shared.iterdir():
        (places.servers / server.name).symlink_to(server)


def _break(server: Path) -> None:
    server.unlink()
    program = server / "99" / "bin" / server.name
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
