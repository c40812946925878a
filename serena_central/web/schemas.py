"""Publishes the JSON schemas of settings files, for editors and for checks elsewhere."""

from typing import Any

from starlette.requests import Request

from serena_central.web.responses import NotFound

NAMES = ("settings", "mcp-servers")


async def list_schemas(_request: Request) -> Any:
    """Each with the version of the format that it describes."""
    # Late: nobody else in the server needs it.
    from serena_central.claude_config.schema import VERSION

    return {"schemas": [{"name": name, "version": VERSION, "url": f"/api/v1/schemas/{name}"} for name in NAMES]}


async def show_schema(request: Request) -> Any:
    """JSON Schema 2020-12, with its `version`."""
    from serena_central.claude_config.schema import servers_schema, settings_schema

    match request.path_params["name"]:
        case "settings":
            return settings_schema()
        case "mcp-servers":
            return servers_schema()
        case name:
            raise NotFound(f"There is no schema {name!r}. Schemas: {', '.join(NAMES)}.")
