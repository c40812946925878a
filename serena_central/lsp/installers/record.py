"""The record of an installation, `installed.json`, read whenever the server is located."""

from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json

RECORD = "installed.json"

UNFINISHED = ".building-"
"""How the names of folders begin that are not, or no longer, an installation."""


class Installation(msgspec.Struct, frozen=True):
    """How a folder below `servers/<name>/` came to be. `env` is what its programs need; `{prefix}` is the folder."""

    via: str
    packages: tuple[str, ...] = ()
    env: dict[str, str] = {}

    def write(self, folder: Path) -> None:
        (folder / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(self)))

    def env_in(self, folder: Path) -> dict[str, str]:
        return {name: value.replace("{prefix}", str(folder)) for name, value in self.env.items()}


def installation_in(folder: Path) -> Installation | None:
    """What was installed into a folder; None for one that somebody else has filled."""
    try:
        return from_json((folder / RECORD).read_bytes(), Installation)
    except (OSError, msgspec.MsgspecError):
        return None
