"""What an upstream is, as data: one usable entry of the configuration with its variables resolved, how it is shared,
its time limits, and the key that two entries have in common if one process can serve both.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from serena_central.claude_config.effective import Effective
from serena_central.claude_config.sources import Server, Source
from serena_central.claude_config.substitution import Resolved, revealed
from serena_central.config.policies import HubPolicy
from serena_central.core.masking import is_secret_header, is_secret_name, secrets_in
from serena_central.core.paths import expanded
from serena_central.hub.sharing import Sharing, sharing_of

Kind = Literal["stdio", "http", "sse"]

START_VARIABLE, TOOL_VARIABLE = "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"
"""Milliseconds, in the settings' `env` or in this server's environment."""

_LONGEST_S = 86_400.0

_SECRET_NAMES = ("key", "token", "secret", "password", "passwd", "auth", "credential", "cookie")
"""A variable or header with one of these in its name holds a secret, however it was written."""

_HEADER_VALUE = re.compile(r"[^\s=:,;]+(?=\s*(?:[,;\n]|$))")
"""The secret words of a variable that holds headers: `Authorization=Bearer …,x-team=…`."""

_WORD = re.compile(r"\D{0,15}|.{0,7}", re.DOTALL)
"""What may be masked where an entry is shown, and is too common to be masked elsewhere: `--auth github`."""


class UpstreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to start or reach one upstream. Holds secrets: it is never logged or shown."""

    name: str
    kind: Kind
    command: tuple[str, ...] = ()
    folder: Path
    """Where a stdio upstream and the helpers run."""
    environment: Mapping[str, str] = {}
    """The settings' variables and, over them, the entry's."""
    url: str = ""
    headers: Mapping[str, str] = {}
    key_helper: str | None = None
    """A command of the settings whose output the process gets."""
    headers_helper: str | None = None
    """A command of the entry that prints headers, a JSON object."""
    sharing: Sharing
    start_timeout_s: float
    call_timeout_s: float
    source: Source
    file: str
    place: str
    """Where in the file the entry stands, for people."""
    target: str
    """What it starts or reaches, for people: variables stand as they are written."""
    secrets: frozenset[str] = frozenset()
    """Values that must not be seen anywhere."""
    key: str
    """A digest of its name and of what starts or reaches it."""


def spec_of(server: Server, root: Path, settings: Effective, policy: HubPolicy, *, trusted: bool) -> UpstreamSpec:
    """The upstream of a usable entry, as it counts in a root. `trusted`: what the repository brings may be executed."""
    entry = server.entry
    variables = settings.environment(trusted=trusted)
    own: Mapping[str, Any] = entry.get("env", {})
    command = (entry["command"], *entry.get("args", ())) if server.kind == "stdio" else ()
    sharing = sharing_of(server.name, [str(one) for one in command], entry.get("sharing"), policy.sharing)
    given = {**variables, **own}
    headers: Mapping[str, Any] = entry.get("headers", {})
    helper = _key_helper(settings, trusted=trusted) if command else None
    parts: dict[str, Any] = {
        "name": server.name,
        "kind": server.kind,
        "command": server.command,
        "folder": _folder(server, root, sharing),
        "environment": {name: revealed(value) for name, value in given.items()},
        "url": server.url,
        "headers": {name: revealed(value) for name, value in headers.items()},
        "key_helper": helper,
        "headers_helper": entry.get("headersHelper"),
    }
    return UpstreamSpec(
        **parts,
        sharing=sharing,
        start_timeout_s=_milliseconds(START_VARIABLE, parts["environment"]) or policy.start_timeout_s,
        call_timeout_s=_call_timeout(entry, parts["environment"], policy),
        source=server.source,
        file=server.place.file,
        place=str(server.place),
        target=server.target,
        secrets=frozenset(_secrets(given, headers, [*command, entry.get("url", "")])),
        key=_digest(parts),
    )


def _key_helper(settings: Effective, *, trusted: bool) -> str | None:
    found: str | None = None
    for one in sorted(settings.files, key=lambda one: one.file.tier.strength):
        if not one.file.rules_only and (trusted or one.file.tier.trusted) and "apiKeyHelper" in one.value:
            found = revealed(one.value["apiKeyHelper"])
    return found


def _folder(server: Server, root: Path, sharing: Sharing) -> Path:
    """The entry's own `cwd`; the folder of the repository's file that it stands in; the project, for a process that is
    the project's; else the home folder, since the process serves all projects."""
    named = server.entry.get("cwd")
    if named:
        return (root / expanded(revealed(named))).absolute()
    if server.of_repository:
        folder = Path(server.place.file).parent
        return folder.parent if folder.name == ".claude" else folder
    return root if sharing != "shared" else Path.home()


def _call_timeout(entry: Mapping[str, Any], environment: Mapping[str, str], policy: HubPolicy) -> float:
    own = entry.get("timeout")
    if own:
        return float(own) / 1000
    return _milliseconds(TOOL_VARIABLE, environment) or policy.call_timeout_s


def _milliseconds(name: str, environment: Mapping[str, str]) -> float | None:
    """Seconds that a variable says, None where it says nothing that makes sense."""
    try:
        seconds = float(environment.get(name) or os.environ.get(name) or "") / 1000
    except ValueError:
        return None
    return seconds if 0 < seconds <= _LONGEST_S else None


def _secrets(variables: Mapping[str, Any], headers: Mapping[str, Any], others: Sequence[Any]) -> Iterator[str]:
    """What a variable was resolved to, what has the name of a secret, and what is masked where the entry is shown."""
    for name, value in [*variables.items(), *headers.items()]:
        is_named = any(part in name.lower() for part in _SECRET_NAMES) or is_secret_name(name)
        if isinstance(value, Resolved) or is_named or (name in headers and is_secret_header(name)):
            text = revealed(value)
            yield text
            yield from text.split()[1:]  # `Bearer …`: the part that is secret may stand elsewhere by itself
            yield from _HEADER_VALUE.findall(text) if name.endswith("HEADERS") else ()
        else:
            yield from _uncommon(secrets_in([revealed(value)]))
    for value in others:
        if isinstance(value, Resolved):
            yield revealed(value)
    yield from _uncommon(secrets_in(map(revealed, others)))


def _uncommon(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if not _WORD.fullmatch(text))


def _digest(parts: Mapping[str, Any]) -> str:
    canonical = json.dumps(cast("dict[str, Any]", parts), sort_keys=True, default=str)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
