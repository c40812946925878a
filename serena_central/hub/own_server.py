"""Finds entries that no session is offered, without the hub: those that its client starts itself, and those that lead
to this very server, which must never become its own upstream.

The latter are found by the command that an entry starts, by the address that it reaches, and, for what neither tells (a
script that starts the proxy), by a count of hops that every upstream is given and hands on. A session that came through
a hub is shown no upstreams, so that no chain of hubs is longer than one.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from urllib.parse import urlsplit

HOPS_VARIABLE = "SERENA_CENTRAL_HOPS"
"""In the environment of stdio upstreams."""

HOPS_HEADER = "X-Serena-Hops"
"""Of requests to remote upstreams."""

HOPS = "1"

_PROGRAMS = frozenset({"serena-central", "serena-proxy", "serena-mcp-proxy", "serena-mcp-server", "serena-server"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0"})  # noqa: S104 - compared, never listened on
_SCRIPT_ENDINGS = (".exe", ".cmd", ".bat", ".py")


def leads_to_ourselves(command: Sequence[str], url: str, port: int, own_urls: Iterable[str]) -> bool:
    """Whether an entry starts or reaches this server. `command`: of one that is started, else empty, as `url` is."""
    return starts_ourselves(command) or reaches_ourselves(url, port, own_urls)


def starts_ourselves(command: Sequence[str]) -> bool:
    """Whether a command line runs one of our programs, by itself or by a launcher (uvx, python -m, npx)."""
    return any(_is_ours(part) for part in command)


def reaches_ourselves(url: str, port: int, own_urls: Iterable[str]) -> bool:
    """Whether a URL is this server's own MCP endpoint."""
    parts = _split(url)
    if parts is None or parts[2].rstrip("/") != "/mcp":
        return False
    known = {(host, own) for one in own_urls if (found := _split(one)) is not None for host, own in [found[:2]]}
    return (parts[0] in _LOOPBACK and parts[1] == port) or parts[:2] in known


def is_read_by_client(file: str, client: str) -> bool:
    """Whether a client starts the servers of a file itself: Claude Code reads all but the `mcpServers` of settings
    files."""
    return client == "claude-code" and not PurePath(file).name.startswith(("settings", "managed-settings"))


def _is_ours(part: str) -> bool:
    if part.startswith("serena_central."):
        return True
    name = PurePath(part).name
    for ending in _SCRIPT_ENDINGS:
        name = name.removesuffix(ending)
    return name in _PROGRAMS


def _split(url: str) -> tuple[str, int, str] | None:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return (parts.hostname or "").lower(), port, parts.path
    except ValueError:
        return None
