"""One tool of an upstream as a tool of ours: it has a schema of its own, and goes the way of every call."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from serena_central.config.settings import SharedSettings
from serena_central.core.errors import InvalidArguments
from serena_central.tools.answer import PassedOn
from serena_central.tools.catalogue import Tool

if TYPE_CHECKING:
    from serena_central.hub.offered_tools import OfferedTool
    from serena_central.hub.specs import UpstreamSpec
    from serena_central.hub.validation import ArgumentChecker


class _NoParameters(msgspec.Struct):
    """An upstream's tool has a schema of its own."""


@dataclass(frozen=True, kw_only=True)
class UpstreamTool(Tool):
    """One tool of an upstream. `own_name` is what its server calls it, `usual_name` what it is called here unless the
    settings rename it; `wire` is MCP's Tool with the name we list."""

    server: str
    own_name: str
    usual_name: str
    wire: Mapping[str, Any]
    checker: "ArgumentChecker" = field(repr=False)
    masked: Callable[[str], str] = field(repr=False)
    """Leaves its server's secrets out of what is kept of its answers."""

    @property
    def schema(self) -> dict[str, Any]:  # type: ignore[override]
        return dict(self.wire.get("inputSchema") or {"type": "object"})

    @property
    def plain_schema(self) -> dict[str, Any]:  # type: ignore[override]
        return self.schema

    @property
    def may_write(self) -> bool:
        """What a server does to files is known only where it says that it changes nothing."""
        return not self.read_only

    def is_among(self, names: Iterable[str]) -> bool:
        """The list may hold patterns such as `github__*`. A tool that is renamed is meant by either name."""
        return any(fnmatchcase(name, pattern) for pattern in names for name in {self.name, self.usual_name})

    def refusal(self, settings: SharedSettings) -> str | None:
        if self.is_among(settings.excluded_tools):
            return f"{self.name} is disabled by the setting excluded_tools."
        if settings.read_only and self.may_write:
            return f"{self.name} may change files, which the setting read_only forbids."
        return None

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Checks arguments against the server's schema.

        Raises:
            InvalidArguments
        """
        from serena_central.hub.validation import problem_text

        given, problems = self.checker.checked(arguments)
        if problems:
            raise InvalidArguments(problem_text(self.name, problems, self.wire.get("inputSchema")))
        words = arguments.get("semantic_context")
        return {
            "project": None,
            "semantic_context": words if isinstance(words, str) else None,
            "arguments": given,
        }

    def wrong_arguments(self, problem: str) -> InvalidArguments:
        return InvalidArguments(f"{self.name}: {problem}")


def upstream_tool(
    spec: "UpstreamSpec",
    name: str,
    offered: "OfferedTool",
    run: Callable[[Any, dict[str, Any]], Awaitable[PassedOn]],
    masked: Callable[[str], str],
) -> UpstreamTool:
    """The tool of an upstream, listed under `name`; `run` calls it."""
    from serena_central.hub.validation import ArgumentChecker

    wire = offered.wire
    hints: dict[str, Any] = wire.get("annotations") or {}
    return UpstreamTool(
        name=name,
        title=str(wire.get("title") or hints.get("title") or name),
        description=str(wire.get("description") or ""),
        function=run,
        params=_NoParameters,
        on_project=False,
        about="notes",
        names_project=False,
        takes_words=False,
        answers=None,
        read_only=hints.get("readOnlyHint") is True,
        edits=False,
        journaled=False,
        destructive=hints.get("destructiveHint") is not False,
        idempotent=hints.get("idempotentHint") is True,
        shown="always",
        open_world=hints.get("openWorldHint") is not False,
        needs=None,
        own_session=False,
        gives_way=False,
        paged=False,
        spans=False,
        timeout_s=spec.call_timeout_s,
        aliases={},
        ignored=frozenset(),
        server=spec.name,
        own_name=offered.own_name,
        usual_name=offered.usual_name,
        wire=wire,
        checker=ArgumentChecker(offered.schema, offered.defaults),
        masked=masked,
    )
