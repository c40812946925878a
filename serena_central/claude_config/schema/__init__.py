"""The schema of settings files, as data. It is published under /api, and editors may use it."""

from functools import cache
from importlib.resources import files
from typing import Any

from serena_central.core.decoding import from_json

VERSION = 1
"""Of the schema; a file that is written for a newer one is refused."""


@cache
def settings_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of settings.json."""
    return from_json(files(__name__).joinpath("settings.schema.json").read_bytes())


@cache
def servers_schema() -> dict[str, Any]:
    """JSON Schema of .mcp.json: the same servers as in settings."""
    settings = settings_schema()
    return {
        "$schema": settings["$schema"],
        "title": "MCP servers of a project (.mcp.json), as serena-central reads them",
        "version": VERSION,
        "type": "object",
        "properties": {"$schema": {"type": "string"}, "mcpServers": settings["properties"]["mcpServers"]},
        "$defs": settings["$defs"],
    }
