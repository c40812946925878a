"""Names of upstreams' tools as clients see them: `<server>__<tool>`, of characters and a length that all clients take.

The same servers and tools have the same names in every session and after every restart: names that would be equal, or
are one of ours, end with a digest of what they stand for.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

MAX_CHARS = 64
"""What the narrowest client takes."""

SEPARATOR = "__"

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARS = 8
_NONE: Mapping[tuple[str, str], str] = {}


def server_prefix(server: str) -> str:
    """What the names of a server's tools begin with."""
    return _UNSAFE.sub("_", server + SEPARATOR)[: MAX_CHARS - _DIGEST_CHARS - 1]


def upstream_names(
    tools: Iterable[tuple[str, str]], taken: Collection[str] = (), renamed: Mapping[tuple[str, str], str] = _NONE
) -> Mapping[str, tuple[str, str]]:
    """Name → (server, tool), in the order of `tools`. `taken` are names of our own tools; `renamed` maps tools to what
    they are called in place of their own name."""
    pairs = list(dict.fromkeys(tools))
    plain = {pair: _UNSAFE.sub("_", SEPARATOR.join((pair[0], renamed.get(pair, pair[1])))) for pair in pairs}
    counts = Counter(plain.values())
    names: dict[str, tuple[str, str]] = {}
    for pair, name in plain.items():
        if counts[name] > 1 or name in taken or len(name) > MAX_CHARS:
            digest = hashlib.blake2b("\0".join(pair).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
            names[f"{name[: MAX_CHARS - _DIGEST_CHARS - 1]}_{digest}"] = pair
        else:
            names[name] = pair
    return names
