"""The environment of a stdio upstream: an allow-list of the system's variables, the settings' `env`, the entry's `env`,
and what the settings' `apiKeyHelper` prints; each overrides the one before it.

Nothing else of this server's environment is handed on: it may hold secrets under any name.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from serena_central.core.errors import UpstreamUnavailable
from serena_central.hub.own_server import HOPS, HOPS_VARIABLE
from serena_central.hub.specs import UpstreamSpec
from serena_central.processes.child import run
from serena_central.processes.environment import allowed, search_path
from serena_central.processes.output import Head

SYSTEM = re.compile(
    r"HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TERM|TZ|TMPDIR|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|SSL_CERT_(?:FILE|DIR)"
    r"|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|DOCKER_HOST|SYSTEMROOT|APPDATA|LOCALAPPDATA|USERPROFILE|PROGRAMFILES|TEMP"
    r"|(?:HTTPS?|NO|ALL|http|https|no|all)_(?:PROXY|proxy)|NODE_EXTRA_CA_CERTS|NVM_DIR|VOLTA_HOME|PNPM_HOME|CARGO_HOME"
    r"|RUSTUP_HOME|GOPATH|GOBIN|PYENV_ROOT|UV_CACHE_DIR|NPM_CONFIG_(?:CACHE|PREFIX)"
)
"""Where things are, how to write, and by which way to the network; no credentials. A variable whose name is not here is
named in `env`, with `${NAME}` as its value."""

KEY_VARIABLE = "ANTHROPIC_API_KEY"
"""What the format's `apiKeyHelper` prints."""

HELPER_S = 10.0
HELPER_BYTES = 64 * 1024


def system_environment() -> dict[str, str]:
    """The allow-listed variables of this process, with a PATH that is the same in every project."""
    return allowed(SYSTEM, os.environ) | {"PATH": search_path(os.environ)}


async def environment_of(spec: UpstreamSpec, temporary: Path) -> tuple[dict[str, str], frozenset[str]]:
    """The whole environment of an upstream's process, and the secrets that were found out on the way.

    Raises:
        UpstreamUnavailable: a helper fails.
    """
    environment = system_environment() | dict(spec.environment)
    secrets: frozenset[str] = frozenset()
    if spec.key_helper is not None:
        key = await helper_output(spec.name, "apiKeyHelper", spec.key_helper, environment, spec.folder, temporary)
        environment[KEY_VARIABLE] = key
        secrets = frozenset({key})
    return environment | {HOPS_VARIABLE: HOPS}, secrets


async def helper_output(
    server: str, setting: str, command: str, environment: Mapping[str, str], folder: Path, temporary: Path
) -> str:
    """What a helper of the settings prints, without white space around it. It has 10 s, and is killed with all that it
    started. Its output is never logged.

    Raises:
        UpstreamUnavailable: without anything of what it printed.
    """
    output = Head(HELPER_BYTES)
    try:
        ended = await run(
            ["/bin/sh", "-c", command],
            folder,
            deadline_s=HELPER_S,
            stdout=output,
            environment=environment,
            temporary=temporary,
        )
    except OSError as error:
        raise UpstreamUnavailable(server, f"its {setting} can't be run: {error.strerror or error}") from error
    if ended.timed_out:
        raise UpstreamUnavailable(server, f"its {setting} did not end within {HELPER_S:.0f} s and was killed")
    if ended.exit_code != 0:
        raise UpstreamUnavailable(server, f"its {setting} ended with exit code {ended.exit_code}")
    text = output.text.strip()
    if not text:
        raise UpstreamUnavailable(server, f"its {setting} printed nothing")
    return text
