"""The MCP servers that a client is configured with, as entries of `.mcp.json`: how each client names the parts of an
entry, and writes variables of the environment."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from serena_central.clients.client import Client, is_ours
from serena_central.clients.forms import Value, found, items_of, members_of

_REFERENCE = re.compile(r"\$?\{env:([A-Za-z_]\w*)\}")
"""Of Cursor and others, and of opencode."""

_BARE_REFERENCE = re.compile(r"\$([A-Za-z_]\w*)")
_WITH_BARE_REFERENCES = frozenset({"gemini", "qwen-code"})
"""Clients that also take `$NAME` for a variable."""

_OF_CLIENTS = re.compile(
    r"\$\{(?:[^}]*:(?!-)[^}]*|workspaceFolder\w*|file[A-Z]\w*|userHome|pathSeparator|/)\}|\{file:[^}]+\}"
)
"""What editors replace, and nobody else: the open folder, what they ask for, their settings."""


class Configured(NamedTuple):
    """One server. `untold`: parts of values that only the client replaces. `is_off`: it is switched off there."""

    name: str
    entry: dict[str, Any]
    untold: tuple[str, ...]
    is_off: bool


def configured(client: Client, value: Value) -> Iterator[Configured]:
    """What the text of a client's file says; without this server's own entry, and what can't be understood."""
    for name, one in members_of(found(value, client.servers)).items():
        said = members_of(one)
        entry = _in_our_words(_entry_of(said), bare=client.name in _WITH_BARE_REFERENCES)
        if entry and not is_ours(one):
            untold = dict.fromkeys(part for text in _texts(entry) for part in _OF_CLIENTS.findall(text))
            yield Configured(name, entry, tuple(untold), said.get("enabled") is False or said.get("disabled") is True)


def _entry_of(said: dict[str, Any]) -> dict[str, Any]:
    words = items_of(said.get("command")) or [said.get("command"), *items_of(said.get("args"))]
    if isinstance(words[0], str):
        return {"command": words[0], **_present(args=[*map(str, words[1:])], env=_environment(said))}
    url = next((one for key in ("url", "httpUrl", "serverUrl") if isinstance(one := said.get(key), str)), None)
    if url is None:
        return {}
    return {"type": "sse" if said.get("type") == "sse" else "http", "url": url, **_present(headers=_headers(said))}


def _environment(said: dict[str, Any]) -> dict[str, str]:
    handed_on = {name: f"${{{name}}}" for name in items_of(said.get("env_vars")) if isinstance(name, str)}
    return handed_on | _by_name(said.get("env") or said.get("environment"))


def _headers(said: dict[str, Any]) -> dict[str, str]:
    """Codex names the variables that its values come from."""
    headers = _by_name(said.get("headers") or said.get("http_headers"))
    headers |= {name: f"${{{variable}}}" for name, variable in _by_name(said.get("env_http_headers")).items()}
    variable = said.get("bearer_token_env_var")
    return headers | ({"Authorization": f"Bearer ${{{variable}}}"} if isinstance(variable, str) else {})


def _by_name(value: Value) -> dict[str, str]:
    return {name: str(one) for name, one in members_of(value).items()}


def _present(**parts: Any) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part}


def _in_our_words(value: Value, *, bare: bool) -> Value:
    """A copy with all references to variables as `${NAME}`."""
    if isinstance(value, str):
        text = _REFERENCE.sub(r"${\1}", value)
        return _BARE_REFERENCE.sub(r"${\1}", text) if bare else text
    if isinstance(value, dict):
        return {key: _in_our_words(one, bare=bare) for key, one in members_of(value).items()}
    return [_in_our_words(one, bare=bare) for one in items_of(value)]


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    else:
        for one in members_of(value).values() or items_of(value):
            yield from _texts(one)
