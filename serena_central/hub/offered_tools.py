"""The tools of a project's upstreams as sessions are offered them: named for clients, and as the settings override
them.

Permission rules, hooks and servers go on with a tool's own name, and rules also with the name that it would have
without an override.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

from serena_central.config.policies import ToolOverride
from serena_central.hub.catalogs import Catalog
from serena_central.hub.names import upstream_names

logger = logging.getLogger(__name__)


class OfferedTool(NamedTuple):
    """One tool. `own_name` is what its server calls it, `name` the same or what the settings say, `usual_name` the name
    that it is offered under without an override. `wire` is MCP's Tool as it is listed, `schema` the server's own of its
    arguments."""

    server: str
    own_name: str
    name: str
    usual_name: str
    wire: Mapping[str, Any]
    schema: object
    defaults: Mapping[str, Any]


def offered_tools(
    catalogs: Mapping[str, Catalog], taken: Collection[str], overrides: Mapping[str, ToolOverride]
) -> dict[str, OfferedTool]:
    """Name → tool, without hidden ones. `catalogs` maps servers to their lists, `overrides` a tool as rules name it
    (`mcp__<server>__<tool>`) to what the settings say of it; `taken` are names of our own tools."""
    listed = {(server, str(one["name"])): one for server, catalog in catalogs.items() for one in catalog.tools}
    usual = {pair: name for name, pair in upstream_names(listed, taken).items()}
    overridden = {pair: one for pair in listed if (one := overrides.get(rule_name(*pair))) is not None}
    shown = [pair for pair in listed if pair not in overridden or not overridden[pair].hidden]
    renamed = {pair: one.name for pair, one in overridden.items() if one.name}
    _report_unknown(catalogs, overrides, {rule_name(*pair) for pair in listed})
    return {
        name: _offered(name, pair, usual[pair], listed[pair], overridden.get(pair, ToolOverride()))
        for name, pair in upstream_names(shown, taken, renamed).items()
    }


def rule_name(server: str, tool: str) -> str:
    """As permission rules and hooks name a tool."""
    return f"mcp__{server}__{tool}"


def _offered(
    name: str, pair: tuple[str, str], usual_name: str, wire: Mapping[str, Any], override: ToolOverride
) -> OfferedTool:
    # A text of ours may take the place of structured content that is too long: no schema promises what it holds.
    shown = {key: value for key, value in wire.items() if key != "outputSchema"} | {"name": name}
    if override.description:
        shown["description"] = override.description
    schema = wire.get("inputSchema")
    if override.defaults and isinstance(schema, Mapping):
        shown["inputSchema"] = _with_defaults(cast("Mapping[str, Any]", schema), override.defaults)
    return OfferedTool(*pair, override.name or pair[1], usual_name, shown, schema, override.defaults)


def _with_defaults(schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool whose callers may leave out what has a default."""
    shown = dict(schema)
    properties: Any = schema.get("properties")
    if isinstance(properties, Mapping):
        known = cast("Mapping[str, Any]", properties)
        shown["properties"] = {
            name: {**one, "default": defaults[name]} if name in defaults and isinstance(one, Mapping) else one
            for name, one in known.items()
        }
    required: Any = schema.get("required")
    if isinstance(required, list):
        shown["required"] = [name for name in cast("list[Any]", required) if name not in defaults]
    return shown


def _report_unknown(catalogs: Mapping[str, Catalog], overrides: Mapping[str, ToolOverride], known: set[str]) -> None:
    for name in overrides:
        server = next((one for one in catalogs if name.startswith(rule_name(one, ""))), None)
        if server is not None and name not in known:
            logger.warning("the setting hub.tools.%s has no effect: %s offers no such tool", name, server)
