"""What runs confined writes its caches alone, reads nothing hidden in a home but toolchains, and connects to nobody."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from serena_central.core.errors import ServerNotTrusted
from serena_central.core.places import Places
from serena_central.lsp import confined
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.locate import CONFINED, locate

pytestmark = pytest.mark.skipif(not confined.version(), reason="the kernel has no Landlock")

TRY = """
import json, os, socket, sys

def tried(work):
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return "done"

writes, reads, links, port = json.loads(sys.argv[1])
print(json.dumps([
    [tried(lambda: open(path, "a").close()) for path in writes],
    [tried(lambda: open(path).close()) for path in reads],
    [tried(lambda: os.symlink("x", path)) for path in links],
    tried(lambda: socket.create_connection(("127.0.0.1", port)).close()),
]))
"""


@pytest.fixture
def port() -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def attempt(home: Path, port: int, *, offline: bool) -> list[object]:
    """What happens to: files written to, read, links made, and a connection."""
    for path in (
        ".ssh/id_rsa",
        ".config/gh/hosts.yml",
        ".cargo/registry/lib.rs",
        "shown/x",
        ".project/a",
        "temporary/t",
    ):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("")
    (home / "link").symlink_to(home / ".ssh")
    confinement = {
        "writes": [str(home / "made" / "cache")],
        "reads": [str(home / ".project"), sys.prefix, sys.base_prefix],
        "home": str(home),
        "offline": offline,
    }
    asked = [
        [str(home / one) for one in ("made/cache/new", "temporary/t", "shown/x", "shown/new", ".ssh/id_rsa")],
        [
            *(str(home / one) for one in (".ssh/id_rsa", "link/id_rsa", ".config/gh/hosts.yml")),
            *(str(home / one) for one in (".cargo/registry/lib.rs", "shown/x", ".project/a")),
            "/etc/passwd",
        ],
        [str(home / "shown" / "made"), str(home / "made" / "cache" / "made")],
        port,
    ]
    command = [
        sys.executable,
        "-I",
        "-S",
        str(CONFINED),
        json.dumps(confinement),
        sys.executable,
        "-I",
        "-S",
        "-c",
        TRY,
    ]
    environment = {"TMPDIR": str(home / "temporary"), "PATH": os.environ["PATH"]}
    done = subprocess.run([*command, json.dumps(asked)], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_it_is_kept_to_what_it_needs(tmp_path: Path, port: int) -> None:
    written, read, linked, connected = attempt(tmp_path, port, offline=True)
    no = "PermissionError"
    assert written == ["done", "done", no, no, no]
    assert read == [no, no, no, "done", "done", "done", "done"]
    assert linked == [no, "done"]
    if confined.version() >= 4:
        assert connected == no


def test_who_needs_the_network_has_it(tmp_path: Path, port: int) -> None:
    assert attempt(tmp_path, port, offline=False)[3] == "done"


def test_a_program_that_does_not_run_is_named() -> None:
    confinement = json.dumps({"writes": [], "reads": [], "home": "/", "offline": True})
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(CONFINED), confinement, "/none/such"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "/none/such: " in done.stderr


def test_a_server_that_must_be_confined_is_not_run_where_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "version", lambda: 0)
    spec = catalogue().server("clangd")
    assert spec is not None
    with pytest.raises(ServerNotTrusted, match="no Landlock"):
        locate(spec, tmp_path, Places(tmp_path / "home"), untrusted=tmp_path)
