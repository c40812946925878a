"""The way to one upstream while it runs: its program or its address, opened as the configuration says, and what is
known of why it ended."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
from mcp.shared.exceptions import MCPError

from serena_central.core.decoding import from_json
from serena_central.core.errors import STDERR_SHOWN, UpstreamCallFailed, UpstreamUnavailable
from serena_central.hub.connection import has_closed
from serena_central.hub.environment import environment_of, helper_output, system_environment
from serena_central.hub.masks import Masks
from serena_central.hub.oauth import TokenFile, token_login
from serena_central.hub.remote import RemoteWire, remote_wire
from serena_central.hub.specs import UpstreamSpec
from serena_central.hub.stdio import StdioWire, stdio_wire
from serena_central.hub.wire_log import WireLog
from serena_central.processes.child import ChildProcess

SETTLE_S = 1.0
"""How long a lost program may take to be reaped, so that its exit code and stderr are known."""


class Link:
    """Belongs to one run of an upstream. It says why a run ended also after it was closed."""

    def __init__(self, spec: UpstreamSpec, log: WireLog, masks: Masks, logins: Path) -> None:
        """`logins`: the folder of the tokens of people's logins."""
        self._logins = logins
        self._spec = spec
        self._masks = masks
        self._log = log
        self._stdio: StdioWire | None = None
        self._remote: RemoteWire | None = None

    @property
    def process(self) -> ChildProcess | None:
        return self._stdio.process if self._stdio else None

    @property
    def garbage(self) -> int:
        """Lines on its stdout that were not messages."""
        return self._stdio.garbage if self._stdio else 0

    @property
    def has_ended(self) -> bool:
        """Whether its program has ended. What is sent from now on does not reach it."""
        return self.process is not None and self.process.ended

    def end_in_order(self) -> None:
        """Gives a program its full time to end when the link is closed."""
        if self._stdio is not None:
            self._stdio.orderly = True

    async def settle(self) -> None:
        """Waits a moment for a program that seems lost, so that its exit code is known."""
        if self.process is not None:
            with anyio.move_on_after(SETTLE_S):
                await self.process.wait()

    @asynccontextmanager
    async def opened(
        self, temporary: Path, memory_bytes: int, mark: Mapping[str, str]
    ) -> AsyncGenerator[tuple[Any, Any]]:
        """The streams of messages, in and out, while the block is open. `mark` goes into a program's environment.

        Raises:
            UpstreamUnavailable
        """
        if self._spec.kind == "stdio":
            environment, secrets = await environment_of(self._spec, temporary)
            self._masks.add(secrets)
            environment |= mark
            async with stdio_wire(self._spec, environment, temporary, self._log, memory_bytes=memory_bytes) as wire:
                self._stdio = wire
                yield wire.incoming, wire.outgoing
        else:
            headers = await self._headers(temporary)
            login = None
            if not any(name.lower() == "authorization" for name in headers):
                login = token_login(TokenFile(self._logins, self._spec.url), self._masks.add)
            self._remote = RemoteWire()
            async with remote_wire(self._remote, self._spec, headers, self._log, login) as wire:
                yield wire.incoming, wire.outgoing

    async def _headers(self, temporary: Path) -> dict[str, str]:
        """The entry's headers, and over them what its helper prints."""
        spec = self._spec
        if spec.headers_helper is None:
            return dict(spec.headers)
        environment = system_environment() | dict(spec.environment)
        printed = await helper_output(
            spec.name, "headersHelper", spec.headers_helper, environment, spec.folder, temporary
        )
        try:
            found = from_json(printed, dict[str, str])
        except msgspec.MsgspecError as error:
            raise UpstreamUnavailable(spec.name, "its headersHelper did not print a JSON object of texts") from error
        self._masks.add(found.values())
        return {**spec.headers, **found}

    def explained(self, error: BaseException | None, lost: str = "") -> str:
        """Why a run ended, for people: what the program said last, as far as it is no secret."""
        if isinstance(error, UpstreamUnavailable):
            return self._masks.for_people(error.why)
        if isinstance(error, TimeoutError):
            lost = f"it did not start within {self._spec.start_timeout_s:.0f} s (hub.start_timeout_s, or MCP_TIMEOUT)"
        elif isinstance(error, MCPError) and not has_closed(error):
            lost = f"it refused the connection: {error.error.message}"
        elif isinstance(error, UpstreamCallFailed):
            lost = error.said
        elif error is not None and not isinstance(error, MCPError):
            lost = _unreached(error)
        elif error is not None:
            lost = "it ended while it started"
        if self._remote is not None and self._remote.unauthorized:
            return f"it asks for a login: run `serena-central mcp login {self._spec.name}`, then call again"
        process = self.process
        if process is not None and process.not_executed is not None:
            return self._masks.for_people(f"its command {self._spec.command[0]!r} can't be executed")
        said = isinstance(error, UpstreamCallFailed) or (isinstance(error, MCPError) and not has_closed(error))
        # After an answer that is refused, or that refuses, it is we who have ended it.
        if process is not None and process.exit_code is not None and not (said or isinstance(error, TimeoutError)):
            lost = f"it ended with exit code {process.exit_code}"
        masked = self._masks.for_people
        stderr = masked(process.stderr_tail)[-STDERR_SHOWN // 4 :] if process else ""
        return masked(lost) + (f"; its stderr ends with: {stderr}" if stderr else "")


def _unreached(error: BaseException) -> str:
    if isinstance(error, (UnicodeEncodeError, httpx2.LocalProtocolError)):
        return f"a header of its entry can't be sent: {error}"
    return f"it could not be reached: {error or type(error).__name__}"
