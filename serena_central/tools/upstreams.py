"""Tools that find and call those of other MCP servers, where these are too many to be listed."""

from typing import Annotated, Any

from msgspec import Meta

from serena_central.core.errors import UnknownTool
from serena_central.tools.answer import PassedOn
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.passed_on import page_of

FOUND = 8
"""Tools that a search shows unless it is asked for more."""


@tool("Search tools", answers="Tools: name, description, input_schema", shown="search", about="notes")
async def search_tools(
    call: ToolCall,
    query: Annotated[str, Meta(description="Words for what the tool should do")],
    max_results: Annotated[int, Meta(ge=1, le=50, description="Maximum number of tools")] = FOUND,
) -> list[dict[str, Any]]:
    """Finds tools of other MCP servers by words, with the schemas of their arguments. Call them by
    call_upstream_tool."""
    found = await call.services.upstreams.search(call.session, query, max_results * 4)
    shown = call.services.offer.allowed(call.session, found)[:max_results]
    for sentence in await call.services.upstreams.unlisted(call.session):
        call.note(sentence)
    if not shown:
        servers = await call.services.upstreams.servers(call.session)
        if servers:
            call.note(f"No tool matches. MCP servers: {', '.join(servers)}.")
        else:
            call.note(
                "This session has no other MCP server. `serena-central mcp list` shows which are configured, and why "
                "one is not used."
            )
    return [{"name": one.name, "description": one.description, "input_schema": one.schema} for one in shown]


@tool("Call a tool of another MCP server", shown="search", about="notes", reads=False, open_world=True)
async def call_upstream_tool(
    call: ToolCall,
    name: Annotated[str, Meta(description="As search_tools returned it")],
    arguments: Annotated[dict[str, Any], Meta(description="By the tool's own schema")] = {},  # noqa: B006 - not changed
) -> PassedOn:
    """Calls a tool of another MCP server."""
    found = await call.services.upstreams.find(call.session, name)
    if found is None:
        raise UnknownTool(name, [one.name for one in await call.services.upstreams.search(call.session, name, 3)])
    answer = await call.run(call.session, name, arguments)
    if answer.passed is not None:
        for note in answer.notes:
            call.note(note)
    result = answer.passed or {"content": [{"type": "text", "text": block} for block in answer.blocks]}
    return PassedOn(result, found.masked)


@tool("Read a long result", shown="upstreams", about="notes")
async def read_result(
    call: ToolCall,
    result_id: Annotated[str, Meta(description="As the shortened answer says")],
    offset: Annotated[int, Meta(ge=0, description="Characters to skip")] = 0,
) -> str:
    """Continues an answer of another MCP server that was too long."""
    text = call.services.kept_results.read(call.session.id, result_id)
    limit = call.services.settings.max_answer_chars
    shown, note = page_of(text, result_id, offset, limit)
    if note:
        call.note(note)
    elif offset and offset >= len(text):
        call.note(f"The result ends at {len(text)}.")
    return shown
