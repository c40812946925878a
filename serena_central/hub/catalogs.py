"""What upstreams offer, as they said it last: kept by key in files, so that listing starts nothing after the first
time.

A file for each key below the data folder; damaged or missing ones are learned again when the upstream starts.
"""

import logging
import re
from pathlib import Path
from typing import Any

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.lru import Lru

logger = logging.getLogger(__name__)

MAX_BYTES = 16 * 1024 * 1024
"""Of one file."""

MOST_KEPT = 500
"""In memory."""

FORM = 1
"""Of the files; another one is not read."""

_KEY = re.compile(r"[0-9a-f]{8,64}")


class Catalog(msgspec.Struct, kw_only=True):
    """The lists of an upstream in wire form (MCP's Tool, Resource, ResourceTemplate, Prompt)."""

    form: int = FORM
    server: str = ""
    """What it calls itself."""
    version: str = ""
    protocol: str = ""
    capabilities: dict[str, Any] = {}
    tools: list[dict[str, Any]] = []
    resources: list[dict[str, Any]] = []
    templates: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    asking: list[str] = []
    """Tools during which it has asked the client something: calls of two sessions must not overlap there."""


class Catalogs:
    """Belongs to the event loop's thread. Reads and writes small files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: Lru[str, Catalog | None] = Lru(MOST_KEPT)

    def get(self, key: str) -> Catalog | None:
        """What is known of a key; None if nothing is."""
        known = self._known.get(key)
        if known is None and key not in self._known:
            known = self._known[key] = self._read(key)
        return known

    def put(self, key: str, catalog: Catalog) -> None:
        """Keeps it, whatever the disk says."""
        self._known[key] = catalog
        path = self._path(key)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            made = path.with_suffix(".new")
            made.write_bytes(msgspec.json.encode(catalog))
            made.replace(path)
        except OSError as error:
            logger.warning("the tools of an upstream could not be kept: %s", error)

    def _read(self, key: str) -> Catalog | None:
        path = self._path(key)
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            found = from_json(path.read_bytes(), Catalog)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            logger.warning("the kept tools of an upstream can't be read, and are asked for again: %s", error)
            return None
        return found if found.form == FORM else None

    def _path(self, key: str) -> Path:
        assert _KEY.fullmatch(key)
        return self._folder / f"{key}.json"
