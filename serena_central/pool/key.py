"""What a caller wants of the pool, and the key that decides who shares one language server.

Knows no projects and no sessions: a root is a folder, settings are data.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from serena_central.core.text import Text
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.documents import never_at_hand

_DIGEST_BYTES = 8
"""64 bits tell apart the handful of settings that one root ever has."""


class ServerKey(NamedTuple):
    """Callers with equal keys share one language server."""

    root: Path
    server: str
    settings_digest: str
    untrusted: Path | None = None
    """As in `WantedServer`."""


class WantedServer(msgspec.Struct, frozen=True, dict=True, eq=False):
    """A language server that somebody wants to use. Keep it and pass it again: its key is computed once.

    `root` is absolute; `settings` are laid over the spec's own; `read_text` is called from worker threads too, and for
    files that `are_at_hand` from the loop's. `folder` is the workspace folder that the server starts with (None: the
    root), `env` is laid over its environment.
    `untrusted` is the root of the project if it is not trusted, else None: trusted and untrusted projects never share
    a server.
    """

    spec: ServerSpec
    root: Path
    settings: dict[str, Any]
    read_text: Callable[[Path], Text]
    untrusted: Path | None
    are_at_hand: Callable[[Collection[Path]], bool] = never_at_hand
    folder: Path | None = None
    env: dict[str, str] = {}
    state: str = ""
    """Of what else its answers depend on and it reads only once: in another state it is another server."""

    @cached_property
    def key(self) -> ServerKey:
        digest = digest_of(self.spec, self.settings, self.env, self.state)
        return ServerKey(self.root, self.spec.name, digest, self.untrusted)


def digest_of(
    spec: ServerSpec, settings: Mapping[str, Any], env: Mapping[str, str] | None = None, state: str = ""
) -> str:
    """Tells apart all that can be set of a server: settings, environment, and its entry, which users may change."""
    canonical = msgspec.json.encode([spec, settings, env or {}, state], order="deterministic")
    return hashlib.blake2b(canonical, digest_size=_DIGEST_BYTES).hexdigest()
