import json
import re
import sys
from pathlib import Path

import msgspec.structs
import pytest

from serena_central.core.errors import ServerNotDriven, ServerNotInstalled
from serena_central.core.places import Places
from serena_central.lsp.catalogue import InstallRecipe, Launching, catalogue
from serena_central.lsp.locate import locate
from tests.support.fakes import FAKE_SPEC

SPEC = msgspec.structs.replace(
    FAKE_SPEC,
    launch=Launching(
        command=("{bin:fake-ls}", "--root={root}", "-j={cpus}", "--data", "{cache}"), env={"TOOL": "{bin:fake-ls}"}
    ),
    install=(
        InstallRecipe(via="npm", packages=("fake-ls@1.0",)),
        InstallRecipe(via="manual", url="https://fake.example"),
    ),
)


def program(folder: Path, name: str = "fake-ls") -> Path:
    folder.mkdir(parents=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "home")


def test_the_newest_version_that_was_installed_for_us_wins_over_path(tmp_path: Path, places: Places) -> None:
    program(places.servers / "fake" / "1.9.0" / "bin")
    newest = program(places.servers / "fake" / "1.10.0" / "node_modules" / ".bin")
    on_path = program(tmp_path / "path")
    launch = locate(SPEC, Path("/r"), places, untrusted=None, path=str(on_path.parent))
    assert launch.command[0] == str(newest)
    assert launch.version == "1.10.0"


def test_placeholders_are_filled(tmp_path: Path, places: Places) -> None:
    found = str(program(tmp_path / "path"))
    launch = locate(SPEC, Path("/r"), places, untrusted=None, path=str(tmp_path / "path"))
    assert launch.command[:2] == [found, "--root=/r"]
    assert int(launch.command[2].removeprefix("-j=")) >= 1
    assert launch.command[4].startswith(str(places.cache))
    assert launch.env == {"TOOL": found}
    assert launch.command[4] != locate(SPEC, Path("/s"), places, untrusted=None, path=str(tmp_path / "path")).command[4]


@pytest.mark.parametrize("name", catalogue().servers)
def test_no_placeholder_of_an_entry_is_left(tmp_path: Path, places: Places, name: str) -> None:
    spec = catalogue().servers[name]
    if spec.undriven or spec.launch.connect:
        return
    folder = tmp_path / "path"
    for wanted in set(re.findall(r"\{bin:([^}]+)\}", " ".join(spec.launch.command))):
        if not (folder / wanted).exists():
            folder.mkdir(exist_ok=True)
            (folder / wanted).write_text("#!/bin/sh\n")
            (folder / wanted).chmod(0o755)
    try:
        launch = locate(spec, tmp_path, places, untrusted=None, path=str(folder))
    except ServerNotInstalled:
        pytest.skip("it is looked for elsewhere")
    told = json.dumps(msgspec.to_builtins(launch))
    assert re.findall(r"\{[a-z_:]+\}", told) == []


def test_what_is_nowhere_is_not_installed_and_the_error_says_how_to_get_it(tmp_path: Path, places: Places) -> None:
    with pytest.raises(ServerNotInstalled, match=r"To install it: serena-central languages install fake$"):
        locate(SPEC, Path("/r"), places, untrusted=None, path=str(tmp_path))


def npm_package(modules: Path, version: str) -> Path:
    """Lays out a package with a linked script, as npm does; returns the folder of the link."""
    script = program(modules / "@fake" / "ls" / "bin", "ls.js")
    (modules / "@fake" / "ls" / "package.json").write_text(f'{{"name": "@fake/ls", "version": "{version}"}}')
    (modules / ".bin").mkdir()
    (modules / ".bin" / "fake-ls").symlink_to(script)
    return modules / ".bin"


def test_an_npm_package_tells_its_version_and_one_that_does_not_fit_does_not_count(
    tmp_path: Path, places: Places
) -> None:
    recipe = InstallRecipe(via="npm", packages=("@fake/ls@7.0.2",), at_least="7", below="8")
    spec = msgspec.structs.replace(SPEC, install=(recipe,))
    new = npm_package(tmp_path / "new" / "node_modules", "7.0.2")
    others = [npm_package(tmp_path / version / "node_modules", version) for version in ("5.9.3", "8.0.0")]
    launch = locate(spec, Path("/r"), places, untrusted=None, path=str(new))
    assert (launch.command[0], launch.version) == (str(new / "fake-ls"), "7.0.2")
    for other in others:
        with pytest.raises(ServerNotInstalled):
            locate(spec, Path("/r"), places, untrusted=None, path=str(other))


def test_the_native_program_beside_an_npm_package_is_run_itself(tmp_path: Path, places: Places) -> None:
    recipe = InstallRecipe(via="npm", packages=("@fake/ls@1.0",))
    launching = Launching(command=("{bin:fake-ls}", "--lsp"), native="@fake/ls-{os}/bin/ls")
    spec = msgspec.structs.replace(SPEC, install=(recipe,), launch=launching)
    modules = tmp_path / "node_modules"
    folder = npm_package(modules, "1.0")
    assert locate(spec, Path("/r"), places, untrusted=None, path=str(folder)).command == [
        str(folder / "fake-ls"),
        "--lsp",
    ]
    native = program(modules / "@fake" / f"ls-{sys.platform}" / "bin", "ls")
    assert locate(spec, Path("/r"), places, untrusted=None, path=str(folder)).command == [str(native), "--lsp"]


def test_the_bundled_server_is_found_beside_the_interpreter_with_its_version(places: Places) -> None:
    launch = locate(catalogue().server("ty"), Path("/r"), places, untrusted=None, path="")
    assert Path(launch.command[0]).name == "ty"
    assert launch.version.count(".") == 2


def test_placeholders_in_initialization_options_are_filled_at_any_depth(tmp_path: Path, places: Places) -> None:
    options = {"typescript": {"tsdk": "{tsdk}"}, "storage": ["{cache}", 5], "on": True}
    recipe = InstallRecipe(via="npm", packages=("@fake/ls@1.0",))
    spec = msgspec.structs.replace(SPEC, install=(recipe,), initialization_options=options)
    modules = tmp_path / "node_modules"
    launch = locate(spec, Path("/r"), places, untrusted=None, path=str(npm_package(modules, "1.0")))
    assert launch.options == {
        "typescript": {"tsdk": str(modules / "typescript" / "lib")},
        "storage": [launch.command[4], 5],
        "on": True,
    }


def test_a_command_of_a_users_own_is_run_as_it_is_or_missing(tmp_path: Path, places: Places) -> None:
    mine = program(tmp_path / "mine")
    spec = msgspec.structs.replace(SPEC, launch=Launching(command=(str(mine), "-v")))
    assert locate(spec, Path("/r"), places, untrusted=None, path="").command == [str(mine), "-v"]
    mine.unlink()
    with pytest.raises(ServerNotInstalled, match="is not a program"):
        locate(spec, Path("/r"), places, untrusted=None, path="")


def test_a_server_that_is_not_driven_yet_says_what_it_needs(places: Places) -> None:
    with pytest.raises(ServerNotDriven, match="recognized but not supported yet; it requires a bootstrap"):
        locate(catalogue().server("powershell-editor-services"), Path("/r"), places, untrusted=None)
