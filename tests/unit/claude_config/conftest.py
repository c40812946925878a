"""A machine of its own for each test: file system, home, project, environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from serena_central.claude_config.effective import Effective, load
from serena_central.claude_config.locations import Locations


class Machine:
    """Files of all tiers below a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.filesystem = folder
        self.home = folder / "home" / "ada"
        self.root = self.home / "work" / "app"
        self.root.mkdir(parents=True)
        self.environment: dict[str, str] = {}
        self.platform = "linux"

    @property
    def locations(self) -> Locations:
        return Locations(self.platform, self.filesystem, self.home, self.environment)

    def write(self, path: str, content: str | Mapping[str, Any]) -> Path:
        """`path` begins with etc/, ~/ or is relative to the project."""
        if path.startswith("etc/"):
            file = self.filesystem / path
        elif path.startswith("~/"):
            file = self.home / path[2:]
        else:
            file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else msgspec.json.encode(content).decode())
        return file

    def enterprise(self, content: str | Mapping[str, Any]) -> Path:
        return self.write("etc/claude-code/managed-settings.json", content)

    def user(self, content: str | Mapping[str, Any]) -> Path:
        return self.write("~/.claude/settings.json", content)

    def project(self, content: str | Mapping[str, Any]) -> Path:
        return self.write(".claude/settings.json", content)

    def local(self, content: str | Mapping[str, Any]) -> Path:
        return self.write(".claude/settings.local.json", content)

    def load(self) -> Effective:
        return load(self.root, self.locations)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
