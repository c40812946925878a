"""What the adapter offers beside tools, as it asks for it: resources and prompts, in wire form."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller


class Resources(Protocol):
    """Resources and their templates."""

    @property
    def templates(self) -> Sequence[Mapping[str, Any]]:
        """What `resources/templates/list` answers."""
        ...

    async def listed(self, caller: ToolCaller, session: Session) -> list[dict[str, Any]]:
        """Those that a session is shown."""
        ...

    async def read(self, caller: ToolCaller, session: Session, uri: str) -> dict[str, Any]:
        """The contents of one resource.

        Raises:
            RequestRefused: there is none of this URI.
            SerenaCentralError: a tool refused.
        """
        ...


class Prompts(Protocol):
    """Prompts by name."""

    def listed(self) -> list[dict[str, Any]]:
        """All of them."""
        ...

    async def get(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """The messages of one prompt.

        Raises:
            RequestRefused: there is none of this name, or an argument is missing.
        """
        ...
