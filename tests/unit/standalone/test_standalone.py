"""Proxy and hooks stand on the standard library alone, start quickly, and find the server where it says it is."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import platformdirs.macos
import platformdirs.unix
import platformdirs.windows
import pytest

import serena_central
from serena_central.access.token import obtain_token, read_token
from serena_central.core.errors import ConfigError
from serena_central.core.places import Places
from serena_central.standalone import home

STANDALONE = ("proxy", "hook", "standalone")
PACKAGE = Path(str(serena_central.__file__)).parent
SOURCES = sorted(source for standalone in STANDALONE for source in (PACKAGE / standalone).glob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.parent.name}.{source.stem}")
def test_a_module_imports_the_standard_library_its_own_package_and_the_standalone_one(source: Path) -> None:
    own = (f"serena_central.{source.parent.name}.", "serena_central.standalone.")
    for node in ast.walk(ast.parse(source.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module)]
        for name in names:
            assert name.startswith(own) or name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.mark.parametrize("standalone", ["proxy", "hook"])
def test_starting_imports_nothing_that_takes_long(standalone: str) -> None:
    script = f"import sys, serena_central.{standalone}.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    slow = {"asyncio", "http.client", "ssl", "subprocess", "email", "importlib.metadata", "pathlib", "logging"}
    assert not slow & (set(loaded.split()) - _of_the_environment())


def _of_the_environment() -> set[str]:
    """What this environment's .pth files import into every program."""
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True
    )
    return set(bare.stdout.split())


def test_the_home_is_the_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for named in (str(tmp_path), "~/serena", "relative/home", None):
        if named is None:
            monkeypatch.delenv("SERENA_CENTRAL_HOME", raising=False)
        else:
            monkeypatch.setenv("SERENA_CENTRAL_HOME", named)
        places = Places.of_user()
        ours = home.user_home()
        assert Path(ours.folder) == places.home
        assert Path(ours.token_file) == places.token_file


@pytest.mark.parametrize("data", [None, "/somewhere/data", "relative", ""])
def test_the_platforms_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch, data: str | None) -> None:
    if data is None:
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_DATA_HOME", data)
    assert home.default_folder("linux") == platformdirs.unix.Unix("serena-central").user_data_dir
    assert home.default_folder("darwin") == platformdirs.macos.MacOS("serena-central").user_data_dir


def test_the_folder_on_windows_is_that_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    local = "/C/Users/ann/AppData/Local"
    monkeypatch.setenv("LOCALAPPDATA", local)
    monkeypatch.setattr(platformdirs.windows, "get_win_folder", lambda _name: local)
    assert home.default_folder("win32") == platformdirs.windows.Windows("serena-central").user_data_dir


@pytest.mark.parametrize(
    "program", [("proxy",), ("proxy", "--print-headers"), ("hook", "end"), ("cli", "status"), ("cli", "serve")]
)
@pytest.mark.skipif(os.name != "posix", reason="HOME is POSIX's")
def test_without_a_home_folder_nothing_is_made_in_the_folder_that_the_client_works_in(
    tmp_path: Path, program: tuple[str, ...]
) -> None:
    ours = ("SERENA_CENTRAL_HOME", "XDG_DATA_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    package, *arguments = program
    ended = subprocess.run(
        [sys.executable, "-I", "-m", f"serena_central.{package}", *arguments],
        cwd=tmp_path,
        env={**kept, "HOME": "~"},  # what an unset HOME is to a user whom the system does not know
        input=b"{}",
        capture_output=True,
    )
    assert list(tmp_path.iterdir()) == []
    assert b"HOME" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert (ended.returncode == 0) == (package == "hook")  # the client's tool runs


def test_the_token_is_read_as_the_server_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert home.read_token(str(file)) is None
    secret = obtain_token(file).header().removeprefix("Bearer ")
    assert home.read_token(str(file)) == secret
    file.chmod(0o640)
    for read in (lambda: home.read_token(str(file)), lambda: read_token(file)):
        with pytest.raises((home.Unusable, ConfigError), match="0640"):
            read()
    file.chmod(0o600)
    file.write_text("two words")
    with pytest.raises(home.Unusable, match="does not contain a valid token"):
        home.read_token(str(file))
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(home.Unusable):
        home.read_token(str(file))


def test_the_installed_version_is_found_without_asking_for_metadata() -> None:
    from importlib.metadata import version

    from serena_central.proxy.main import installed_version

    assert installed_version() == version("serena-central")
