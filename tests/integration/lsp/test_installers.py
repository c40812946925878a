"""Real package managers install local packages, through all that `languages install` does; no registry is asked."""

import os
import sys
from pathlib import Path

import anyio
import msgspec.structs
import pytest

from serena_central.core.errors import InstallFailed, ServerNotInstalled
from serena_central.core.places import Places
from serena_central.lsp.catalogue import InstallRecipe, ServerSpec
from serena_central.lsp.installers import install as installers
from serena_central.lsp.installers.install import install, uninstall
from serena_central.lsp.installers.record import UNFINISHED, installation_in
from serena_central.lsp.installers.underway import LOCK, NOTE, Notes, Underway, underway_of
from serena_central.lsp.locate import locate
from serena_central.lsp.trial import try_out
from tests.support.servers import npm_spec, pip_spec

pytestmark = pytest.mark.anyio


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "home")


@pytest.fixture(autouse=True)
def no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")


def silent(line: str) -> None:
    """Takes no interest."""


def visible(places: Places) -> list[str]:
    """What lies in the server's folder, besides the lock and what is told of its installation."""
    entries = (places.servers / "tiny").iterdir()
    return sorted(entry.name for entry in entries if not entry.name.startswith((LOCK, NOTE)))


async def test_pip_installs_a_server_that_runs_from_where_it_was_moved(tmp_path: Path, places: Places) -> None:
    spec = pip_spec(tmp_path)
    lines: list[str] = []
    done = await install(spec, places, tell=lines.append)
    assert (done.version, done.via, done.fresh) == ("1.0.0", "pip", True)
    assert any("pip install" in line for line in lines)
    launch = locate(spec, tmp_path, places, untrusted=None, path="")
    assert launch.command[0] == str(places.servers / "tiny" / "1.0.0" / "bin" / "tiny-ls")
    assert await try_out(spec, launch, tmp_path / "tmp") == "1.0.0"
    assert visible(places) == ["1.0.0"]
    again = await install(spec, places, tell=silent)
    assert not again.fresh


async def test_npm_installs_a_server_and_runs_no_install_scripts(tmp_path: Path, places: Places) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / ".npmrc").write_text("registry=http://evil.example\nglobal=true\n")  # a folder above is not asked
    spec = npm_spec(tmp_path)
    done = await install(spec, places, tell=silent)
    assert done.folder
    assert not (done.folder / "node_modules" / "tiny-ls" / "script-ran").exists()
    assert (done.folder / "package-lock.json").is_file()
    installed = [done.folder, *done.folder.rglob("*")]
    assert not [path for path in installed if not path.is_symlink() and path.stat().st_mode & 0o077]
    assert await try_out(spec, locate(spec, tmp_path, places, untrusted=None, path=""), places.temporary) == "1.0.0"


async def test_two_versions_are_kept_and_uninstall_removes_all(tmp_path: Path, places: Places) -> None:
    for version in ("1.0.0", "1.1.0", "1.10.0"):
        await install(npm_spec(tmp_path, version), places, tell=silent)
    assert visible(places) == ["1.1.0", "1.10.0"]
    spec = npm_spec(tmp_path)
    assert await uninstall(spec, places, tell=silent) == ["1.10.0", "1.1.0"]
    assert visible(places) == []
    with pytest.raises(ServerNotInstalled):
        locate(spec, tmp_path, places, untrusted=None, path="")


def with_recipes(spec: ServerSpec, *recipes: InstallRecipe) -> ServerSpec:
    return msgspec.structs.replace(spec, install=recipes)


async def test_a_failure_says_why_and_leaves_nothing_behind(tmp_path: Path, places: Places) -> None:
    missing = InstallRecipe(via="npm", packages=("./no-such-package.tgz",), version="1", binary="bin/tiny-ls")
    with pytest.raises(InstallFailed, match=r"npm: .*no-such-package") as caught:
        await install(with_recipes(npm_spec(tmp_path), missing), places, tell=silent)
    assert "ENOENT" in str(caught.value)
    assert visible(places) == []


async def test_a_recipe_that_fails_gives_way_to_the_next(tmp_path: Path, places: Places) -> None:
    spec = npm_spec(tmp_path)
    needy = InstallRecipe(via="npm", packages=("x@1",), version="1", binary="x", needs=("no-such-program>=3",))
    ancient = msgspec.structs.replace(needy, needs=("node>=9999",))
    lines: list[str] = []
    done = await install(with_recipes(spec, needy, ancient, *spec.install), places, tell=lines.append)
    assert done.version == "1.0.0"
    assert "npm: no-such-program is required but not on PATH" in lines
    assert any(line.startswith("npm: node 9999 or newer is required; ") for line in lines)


async def test_java_is_the_one_that_java_home_names(
    tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, version in (("old", "17.0.15"), ("new", "25.0.3")):
        java = tmp_path / where / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"'\n")
        java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"), prepend=os.pathsep)
    spec = npm_spec(tmp_path)
    needy = with_recipes(spec, *(msgspec.structs.replace(one, needs=("java>=21",)) for one in spec.install))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InstallFailed, match=r"java 21 or newer is required; PATH has 17\.0\.15; JAVA_HOME may name"):
        await install(needy, places, tell=silent)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert (await install(needy, places, tell=silent)).version == "1.0.0"


async def test_what_does_not_run_is_not_installed(tmp_path: Path, places: Places) -> None:
    spec = npm_spec(tmp_path)
    broken = msgspec.structs.replace(
        spec, launch=msgspec.structs.replace(spec.launch, command=("{bin:tiny-ls}", "broken"))
    )
    with pytest.raises(InstallFailed, match="exited with code 3"):
        await install(broken, places, tell=silent)
    assert visible(places) == []


async def test_two_at_once_install_once(tmp_path: Path, places: Places) -> None:
    spec = npm_spec(tmp_path)
    fresh: list[bool] = []

    async def one() -> None:
        fresh.append((await install(spec, places, tell=silent)).fresh)

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)
    assert sorted(fresh) == [False, True]


KILLED = """
import os
import sys
from pathlib import Path
import anyio
from serena_central.core.places import Places
from serena_central.lsp.installers.install import install
from tests.support.servers import npm_spec

def tell(line):
    print(line, flush=True)

async def main(folder, home):
    await install(npm_spec(Path(folder)), Places(Path(home)), tell=tell)

anyio.run(main, *sys.argv[1:])
"""


async def test_what_a_killed_installer_left_is_swept_by_the_next(tmp_path: Path, places: Places) -> None:
    """It is killed while npm runs: npm dies with it, the lock is free, and its folder goes."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(places.home)]
    with anyio.fail_after(60):
        async with await anyio.open_process(command, cwd=Path(__file__).parents[3]) as child:
            assert child.stdout
            said = b""
            while b"npm install" not in said:
                said += await child.stdout.receive()
            child.kill()
    (left,) = visible(places)
    assert left.startswith(UNFINISHED)
    spec = npm_spec(tmp_path)
    with pytest.raises(ServerNotInstalled):
        locate(spec, tmp_path, places, untrusted=None, path="")
    await install(spec, places, tell=silent)
    assert visible(places) == ["1.0.0"]


async def test_what_a_killed_installer_has_told_is_not_said_of_who_removes_the_server(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = places.servers / "tiny"
    (home / "1.0.0").mkdir(parents=True)
    Notes("tiny", home, silent)("$ npm install")
    told: list[Underway | None] = []
    monkeypatch.setattr(installers, "_remove", lambda _folder: told.append(underway_of("tiny", places)))
    await uninstall(npm_spec(tmp_path), places, tell=silent)
    assert told == [None]


async def test_a_cancelled_installation_leaves_nothing(tmp_path: Path, places: Places) -> None:
    with anyio.CancelScope() as scope:
        await install(npm_spec(tmp_path), places, tell=lambda line: scope.cancel() if "npm install" in line else None)
    assert scope.cancelled_caught
    assert visible(places) == []


async def test_somebodys_folder_without_a_record_is_replaced(tmp_path: Path, places: Places) -> None:
    folder = places.servers / "tiny" / "1.0.0"
    folder.mkdir(parents=True)
    (folder / "half").touch()
    assert (await install(npm_spec(tmp_path), places, tell=silent)).fresh
    assert not (folder / "half").exists()
    found = installation_in(folder)
    assert found
    assert found.via == "npm"
