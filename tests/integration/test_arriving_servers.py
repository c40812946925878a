"""A language server that somebody installs while projects are open answers for all their files, without a restart."""

import fcntl
import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec.structs
import pytest

from serena_central.app import Application
from serena_central.core.errors import ServerNotInstalled
from serena_central.core.event_kinds import ServerMissing
from serena_central.core.places import Places
from serena_central.core.progress import reporting_to
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.installers.install import install
from serena_central.lsp.installers.underway import LOCK, Notes
from serena_central.lsp.locate import locate
from tests.integration.test_by_syntax import ask, symbol, write_server
from tests.support.browser import shown, visiting
from tests.support.central import running_central, running_parts
from tests.support.child import serving_child
from tests.support.servers import SERVERS_HOME, npm_spec

pytestmark = pytest.mark.anyio

FILES = {
    "go.mod": "module shop\n\ngo 1.24\n",
    "cart.go": "package shop // Said\n\nfunc Total() int { return 1 }\n",
    "till.go": "package shop // Said\n\nfunc Pay() int { return Total() }\n\nfunc Broken() { missing() }\n",
}


def go_project(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


def only_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No gopls of this machine is found."""
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("GOPATH", str(folder.parent / "go"))
    monkeypatch.delenv("GOBIN", raising=False)


async def until_said(central: Application, root: Path, paths: list[str]) -> None:
    """Asks until the scripted server's symbol is found in all these files, and no note stands beside it."""
    found, note = await ask(central, root, "find_symbol", name_path_pattern="Said")
    while sorted(one["relative_path"] for one in found) != paths or note:
        await anyio.sleep(0.02)
        found, note = await ask(central, root, "find_symbol", name_path_pattern="Said")


async def test_that_a_server_is_missing_is_told_when_its_start_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.new_servers.LOOK_EVERY_S", 3600.0)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/main.zig").write_text("pub fn main() void {}\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            with central.bus.subscribe() as news:
                await central.projects.open(central.projects.check(tmp_path / "tools"))
                async for event in news:
                    if isinstance(event, ServerMissing):
                        assert event.server == "zls"
                        return


async def test_a_program_put_onto_path_by_hand_answers_for_all_open_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_path(tmp_path / "bin", monkeypatch)
    (tmp_path / "bin").mkdir()
    roots = [go_project(tmp_path / "one"), go_project(tmp_path / "two")]
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            for root in roots:
                _, note = await ask(central, root, "find_symbol", name_path_pattern="Total")
                assert "By syntax only" in note
            said = {"textDocument/documentSymbol": [symbol("Said", 5, 2)]}
            write_server(tmp_path / "bin", "gopls", answers=said)
            for root in roots:
                await until_said(central, root, ["cart.go", "till.go"])


async def test_a_program_counts_once_it_is_executable_and_no_longer_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_path(tmp_path / "bin", monkeypatch)
    write_server(tmp_path / "bin", "gopls", answers={"textDocument/documentSymbol": [symbol("Said", 5, 2)]})
    whole = tmp_path / "bin" / "gopls"
    whole.chmod(0o644)
    root = go_project(tmp_path / "one")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            await ask(central, root, "find_symbol", name_path_pattern="Total")
            project = central.projects.opened(str(root))
            assert project is not None
            assert "gopls" in [spec.name for spec in project.languages.availability.missing()]
            whole.chmod(0o755)
            await until_said(central, root, ["cart.go", "till.go"])
            assert "gopls" not in [spec.name for spec in project.languages.availability.missing()]


async def test_what_another_process_installs_is_used_and_a_warm_up_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = msgspec.structs.replace(npm_spec(tmp_path), name="typescript", languages=("typescript",))
    monkeypatch.setitem(catalogue().servers, "typescript", tiny)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.ts").write_text("tiny\n")
    begun, said = anyio.Event(), list[str]()

    async def elsewhere() -> None:
        # A lock is held by whoever opened the file: to the server, this is as good as another process.
        await install(tiny, Places(tmp_path / "home"), tell=lambda _line: begun.set())

    with anyio.fail_after(90):
        async with running_parts(tmp_path) as central, anyio.create_task_group() as tasks:
            opening = await central.projects.open(root)
            _, (gap,) = await opening.symbols_of(["a.ts"])
            assert "is not installed" in gap.reason
            tasks.start_soon(elsewhere)
            await begun.wait()
            with reporting_to(lambda message, _part: said.append(message)):
                (warmed,) = await opening.warm()
            assert (warmed.language, warmed.success, warmed.error) == ("typescript", True, None)
            assert any(line.startswith("installing the missing typescript") for line in said)
            symbols, gaps = await opening.symbols_of(["a.ts"])
            assert not gaps
            assert [one.name for one in symbols["a.ts"].symbols] == ["tiny"]


async def test_gopls_installed_elsewhere_finds_refers_and_diagnoses_in_every_open_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real server as a process, and a folder that appears in its home as `languages install` makes it."""
    roots = [go_project(tmp_path / "one"), go_project(tmp_path / "two")]
    with anyio.fail_after(240):
        async with serving_child(tmp_path) as child, child.http() as http:

            async def call(root: Path, tool: str, **arguments: Any) -> str:
                answer = await http.post(
                    f"/api/v1/tools/{tool}", json={"arguments": {"project": str(root), **arguments}}
                )
                assert answer.status_code == 200, answer.text
                return "\n".join(answer.json()["blocks"])

            for root in roots:
                assert "By syntax only" in await call(root, "find_symbol", name_path_pattern="Total")
            shutil.copytree(SERVERS_HOME / "servers" / "gopls", tmp_path / "made")
            (tmp_path / "made").rename(child.folder / "home" / "servers" / "gopls")
            for root in roots:
                while "By syntax only" in await call(root, "find_symbol", name_path_pattern="Pay"):
                    await anyio.sleep(0.1)
                used = await call(root, "find_referencing_symbols", name_path="Total", relative_path="cart.go")
                assert "till.go" in used
                assert "missing" in await call(root, "get_diagnostics_for_file", relative_path="till.go")


def test_a_users_own_gopls_is_found_where_go_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_path(tmp_path / "bin", monkeypatch)
    spec, places = catalogue().servers["gopls"], Places(tmp_path / "home")
    (own,) = (SERVERS_HOME / "servers" / "gopls").glob("*/bin/gopls")
    place = tmp_path / "go" / "bin" / "gopls"
    place.parent.mkdir(parents=True)
    place.symlink_to(own)
    found = locate(spec, tmp_path, places, untrusted=None)
    assert (found.command[0], found.version) == (str(place), own.parts[-3])
    with pytest.raises(ServerNotInstalled):  # it lies in a project that nobody trusts
        locate(spec, tmp_path, places, untrusted=tmp_path)
    newer = msgspec.structs.replace(spec.install[0], at_least="99")
    with pytest.raises(ServerNotInstalled):
        locate(msgspec.structs.replace(spec, install=(newer,)), tmp_path, places, untrusted=None)
    place.unlink()
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    with pytest.raises(ServerNotInstalled):  # nobody knows what it is
        locate(spec, tmp_path, places, untrusted=None)


async def test_progress_is_seen_in_the_list_of_projects_on_the_pages_and_by_the_call_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_path(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr("serena_central.lsp.installers.auto.TOLD_EVERY_S", 0)
    root = go_project(tmp_path / "one")
    said: list[str] = []
    step = "installing gopls for 0 s: $ go install gopls; 1 line so far, the newest: golang.org/x/tools"

    def hear(message: str, _part: float | None) -> None:
        said.append(message)

    with anyio.fail_after(60):
        async with running_central(tmp_path) as running:
            central = running.central
            home = tmp_path / "home" / "servers" / "gopls"
            home.mkdir(parents=True)
            await ask(central, root, "find_symbol", name_path_pattern="Total")
            with (home / LOCK).open("a") as lock, closing(Notes("gopls", home, said.append)) as notes:
                fcntl.flock(lock, fcntl.LOCK_EX)
                notes("$ go install gopls")
                monkeypatch.setattr("serena_central.lsp.installers.underway.WRITTEN_EVERY_S", 0)
                notes("golang.org/x/tools")
                (listed,), _ = await ask(central, root, "list_projects")
                assert [sentence(one) for one in listed["installing"]] == [step]
                async with running.http() as http:
                    (one,) = (await http.get("/api/v1/projects")).json()["projects"]
                assert one["installing"][0]["command"] == "$ go install gopls"
                async with visiting(running) as browser:
                    for page in ("/projects", "/servers", f"/projects/one?root={root}"):
                        assert step.partition(": ")[2] in shown(await browser.see(page)), page
                async with anyio.create_task_group() as tasks:

                    async def warm() -> None:
                        with reporting_to(hear):
                            await (await central.projects.open(root)).warm()

                    tasks.start_soon(warm)
                    while step not in map(sentence, said):
                        await anyio.sleep(0.02)
                    answers = {"textDocument/documentSymbol": [symbol("Said", 5, 2)]}
                    write_server(tmp_path / "bin", "gopls", answers=answers)
                    fcntl.flock(lock, fcntl.LOCK_UN)
            (listed,), _ = await ask(central, root, "list_projects")
            assert "installing" not in listed
            await until_said(central, root, ["cart.go", "till.go"])


def sentence(line: str) -> str:
    return re.sub(r"for \d+ s", "for 0 s", line)
