"""Runs http hooks: the event's JSON is posted to a URL, whose answer decides as a command's stdout does.

Only to this machine, or to what `allowedHttpHookUrls` names in settings that no repository brings. Redirects are not
followed: they would lead elsewhere.
"""

import ipaddress
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import anyio
import httpx

from serena_central.core.tls import trusted_certificates
from serena_central.gates.commands import OUTPUT_BYTES, TOO_MUCH, CommandEnd, holds_json, input_of
from serena_central.gates.decisions import BLOCKS
from serena_central.gates.events import GateEvent
from serena_central.gates.rules import Hook

_HELD_BACK = frozenset(("host", "content-length", "transfer-encoding", "connection"))
"""Headers that are the protocol's own."""


async def run_http(hook: Hook, event: GateEvent, file: str, allowed: Sequence[str]) -> CommandEnd:
    """Posts an event. `allowed` are patterns of URLs beside those of this machine."""
    if not may_reach(hook.action, allowed):
        return _trouble(
            "only URLs of this machine may be reached. A person can allow others by allowedHttpHookUrls in "
            "~/.claude/settings.json."
        )
    content = json.dumps(input_of(event, file)).encode()
    given: Mapping[str, object] = hook.given.get("headers") or {}
    headers = {name: str(value) for name, value in given.items() if name.lower() not in _HELD_BACK}
    body = bytearray()
    try:
        with anyio.fail_after(hook.timeout_s):
            async with (
                httpx.AsyncClient(
                    follow_redirects=False, trust_env=False, timeout=hook.timeout_s, verify=trusted_certificates()
                ) as client,
                client.stream(
                    "POST", hook.action, content=content, headers={"content-type": "application/json", **headers}
                ) as response,
            ):
                async for piece in response.aiter_bytes():
                    body += piece[: OUTPUT_BYTES - len(body)]
                    if len(body) >= OUTPUT_BYTES:
                        break
    except TimeoutError:
        return _trouble(f"there was no answer within {hook.timeout_s:g} s. Raise its timeout in {hook.name}.")
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
        return _trouble(f"{error or type(error).__name__}. Start what listens there, or correct {hook.name}.")
    text = body.decode("utf-8", "replace")
    if response.is_success and len(body) >= OUTPUT_BYTES and holds_json(text):
        return _trouble(TOO_MUCH)
    if response.is_success:
        return CommandEnd(0, text, "")
    if response.status_code in (403, 422):
        return CommandEnd(BLOCKS, "", text)
    return _trouble(f"it answered with status {response.status_code}. Correct it, or {hook.name}.")


def may_reach(url: str, allowed: Sequence[str]) -> bool:
    """Whether a URL is of this machine, or is allowed by a pattern with `*`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not host:
        return False
    del port  # a wrong one raises
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # A `*` must not stand for the host's end: `https://a.example*` would be any host that begins so.
        return any(fnmatchcase(url, one) for one in allowed if "/" in one.partition("://")[2])


def _trouble(text: str) -> CommandEnd:
    return CommandEnd(None, "", "", text)
