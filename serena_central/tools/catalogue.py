"""The catalogue of tools: names, parameters, schemas and the functions that implement them.

A tool is an `async def` whose parameters are typed and described by `Annotated[…, msgspec.Meta(description=…)]`; from
that one signature come the JSON schema, the validation of arguments and the names in error messages. The first
parameter is always `call: ToolCall`; a second one named `target: Project` makes it a tool that runs on every project of
the call's scope. What all tools have in common (`project`, `semantic_context`, `max_answer_chars`; for
lists `limit` and `cursor`) is added here, once.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from serena_central.config.settings import SharedSettings
from serena_central.core.decoding import converted
from serena_central.core.errors import InvalidArguments
from serena_central.projects.scope import About
from serena_central.tools.arguments import problems_of, unknown

Shown = Literal["always", "optional", "super-repo", "upstreams", "search"]
"""`super-repo`: in sessions that work in one; `upstreams`: in those that have any; `search`: in place of their
tools."""

# What all tools take is described once, by list_projects.
ProjectArgument = str | list[str] | None
ContextArgument = str | None
LimitArgument = Annotated[int, Meta(ge=-1, description="-1: the setting")]
ItemsArgument = Annotated[Annotated[int, Meta(ge=1, le=10_000)] | None, Meta(description="Maximum items")]
CursorArgument = Annotated[str, Meta(description="Of the page before")]

LIST_OF_STRINGS = {"type": "array", "items": {"type": "string"}}

ALIASES: Mapping[str, str] = {
    "semanticContext": "semantic_context",
    "symbol": "name_path",
    "name": "name_path",
    "code": "body",
}
"""Unlisted aliases, accepted for every tool that has the parameter on the right."""

PATH_PARAMETERS = ("relative_path", "reference_file")
"""Parameters that hold a path, from which the project may be derived."""


_TOOL = "_serena_central_tool"
"""The attribute of a function that holds its tool."""

Together = Callable[..., Awaitable[object]]
"""Takes the call, its projects and the checked arguments."""


@dataclass(frozen=True)
class Tool:
    """One verb. `aliases` maps accepted parameter names → real ones; `ignored` are accepted and dropped."""

    name: str
    title: str
    description: str
    function: Callable[..., Awaitable[Any]]
    params: type[msgspec.Struct]
    on_project: bool
    about: About
    names_project: bool
    """Its own `project` parameter says what it acts on, and does not choose a scope."""
    takes_words: bool
    """It needs `semantic_context`, although it runs on no project."""
    answers: str | None
    """The shape of its answer, which is JSON; None if it is a text, which is JSON only for several projects."""
    read_only: bool
    edits: bool
    """It changes files of the project; `read_only` is false as well for tools that change a session."""
    journaled: bool
    """Its changes are in the journal of edits, so that a repeated call is recognized after a crash."""
    destructive: bool
    idempotent: bool
    shown: Shown
    open_world: bool
    """It may reach beyond this machine's projects."""
    needs: str | None
    """Name of the server setting that enables it; the tool is listed only if it is on."""
    own_session: bool
    """It changes the caller's session, and is not listed in one that several windows may share."""
    gives_way: bool
    """It runs in the background: it yields to other callers, and nobody waits for it."""
    paged: bool
    """It returns a list, which calls may page through."""
    spans: bool
    """At a super-repo's root it covers all modules by itself."""
    timeout_s: float | None
    """Seconds that a call may take, where that is not the setting tool_timeout_s."""
    aliases: Mapping[str, str]
    ignored: frozenset[str]
    also: tuple[str, ...] = ()
    """Other names that calls may use."""
    if_empty: str = ""
    """A sentence for an answer that holds nothing: what that means, or what to call instead."""
    together: Together | None = None
    """Runs once before a call on several projects; each project's part finds the result in `call.together`."""

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments: one flat object, nothing that only validators read. `project` and
        `semantic_context` are accepted by every tool, and listed where they have an effect."""
        schema = self._accepted
        properties: dict[str, Any] = schema["properties"]
        if not self.on_project:
            unused = ([] if self.names_project else ["project"]) + ([] if self.takes_words else ["semantic_context"])
            properties = {name: part for name, part in properties.items() if name not in unused}
        return {
            "type": "object",
            "properties": {name: _plain(part) for name, part in properties.items()},
            **({"required": schema["required"]} if schema.get("required") else {}),
        }

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON schema of the structured content; None for a tool that answers with a text.

        `result` is of the tool's own type, an object by project where there are several, and another shorter form
        where the answer does not fit its limit.
        """
        if self.answers is None:
            return None
        return {
            "type": "object",
            "properties": {"result": {"description": self.answers}, "notes": LIST_OF_STRINGS},
            "required": ["result"],
        }

    @cached_property
    def plain_schema(self) -> dict[str, Any]:
        """The same for clients that know neither integers nor alternatives: numbers, and a string where that is one of
        the alternatives: names are accepted wherever numbers are."""
        properties: dict[str, dict[str, Any]] = self.schema["properties"]
        return {**self.schema, "properties": {name: _plainest(part) for name, part in properties.items()}}

    @property
    def may_write(self) -> bool:
        """Whether a session that may only read must not call it."""
        return self.edits

    def is_among(self, names: Iterable[str]) -> bool:
        """Whether a setting that lists tools means this one."""
        return self.name in names

    def refusal(self, settings: SharedSettings) -> str | None:
        """Why the settings, of the server or of one project, forbid this tool; None if they don't."""
        if self.name in settings.excluded_tools:
            return f"{self.name} is disabled by the setting excluded_tools."
        if self.edits and settings.read_only:
            return f"{self.name} changes files, which the setting read_only forbids."
        return None

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Checked arguments by parameter name, defaults filled in.

        Raises:
            InvalidArguments: an unknown name, a missing one, or a value of another type; names what is allowed.
        """
        known = self.params.__struct_fields__
        renamed: dict[str, Any] = {}
        for name, value in arguments.items():
            real = name if name in known else self.aliases.get(name, name)
            if real not in known:
                if name in self.ignored:
                    continue
                raise self.wrong_arguments(unknown(name, known))
            # null means "not given": clients without optional parameters send it.
            if value is None:
                continue
            if real in renamed:
                raise self.wrong_arguments(f"{real} is given twice.")
            renamed[real] = value
        try:
            parsed = converted(renamed, self.params, strict=False)
        except (msgspec.ValidationError, UnicodeError) as error:  # the latter: half of a surrogate pair
            problems = problems_of(self.params, renamed, self._accepted)
            raise self.wrong_arguments(" ".join(problems) or f"{error}.") from error
        return msgspec.structs.asdict(parsed)

    def wrong_arguments(self, problem: str) -> InvalidArguments:
        """The text of a refusal: the problems, and all parameters."""
        return InvalidArguments(f"{self.name}: {problem} Parameters: {', '.join(self.params.__struct_fields__)}.")

    @cached_property
    def _accepted(self) -> dict[str, Any]:
        """JSON schema of all that is accepted."""
        (_,), components = msgspec.json.schema_components([self.params])
        (schema,) = components.values()
        return schema


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """One parameter's schema without `null` alternatives, and with its type beside an enum. What is listed is simpler
    than what is accepted: beside a string neither a number nor a list of strings, of which it may hold several with
    commas."""
    choices = [choice for choice in part.get("anyOf", ()) if choice != {"type": "null"}]
    if any(choice.get("type") == "string" for choice in choices):
        choices = [choice for choice in choices if choice not in (LIST_OF_STRINGS, {"type": "integer"})]
    if len(choices) == 1:
        part = {**choices[0], **{key: value for key, value in part.items() if key != "anyOf"}}
    elif choices:
        part = {**part, "anyOf": choices}
    if isinstance(part.get("items"), dict):
        part = {**part, "items": _plain(part["items"])}
    if "enum" in part:
        part = {"type": "string" if all(isinstance(one, str) for one in part["enum"]) else "integer", **part}
    return {key: value for key, value in part.items() if key != "default" or value is not None}


def _plainest(part: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in part.items() if key != "anyOf"}
    if "anyOf" in part:
        plain |= next((choice for choice in part["anyOf"] if choice.get("type") == "string"), part["anyOf"][0])
    if plain.get("type") == "integer":
        plain["type"] = "number"
    if isinstance(plain.get("items"), dict):
        plain["items"] = _plainest(plain["items"])
    return plain


def tool(
    title: str,
    *,
    answers: str | None = None,
    reads: bool = True,
    edits: bool = False,
    journaled: bool | None = None,
    about: About = "code",
    destructive: bool = False,
    idempotent: bool | None = None,
    shown: Shown = "always",
    open_world: bool = False,
    needs: str | None = None,
    takes_words: bool = False,
    own_session: bool = False,
    gives_way: bool = False,
    paged: bool = False,
    spans: bool = False,
    timeout_s: float | None = None,
    also: tuple[str, ...] = (),
    aliases: Mapping[str, str] | None = None,
    ignored: tuple[str, ...] = (),
    if_empty: str = "",
    together: Together | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]:
    """Makes a function a tool under its own name; `also` are accepted names that are never listed."""

    def register(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        signature = inspect.signature(function)
        on_project = "target" in signature.parameters
        made = Tool(
            name=function.__name__,
            title=title,
            description=inspect.cleandoc(function.__doc__ or ""),
            function=function,
            params=_params(function, signature, limited=on_project and reads, paged=paged),
            on_project=on_project,
            about=about,
            names_project="project" in signature.parameters,
            takes_words=takes_words,
            answers=answers,
            read_only=reads and not edits,
            edits=edits,
            journaled=edits if journaled is None else journaled,
            destructive=destructive,
            idempotent=reads if idempotent is None else idempotent,
            shown=shown,
            open_world=open_world,
            needs=needs,
            own_session=own_session,
            gives_way=gives_way,
            paged=paged,
            spans=spans,
            timeout_s=timeout_s,
            aliases={**ALIASES, **(aliases or {})},
            ignored=frozenset(ignored),
            if_empty=if_empty,
            together=together,
            also=also,
        )
        setattr(function, _TOOL, made)
        return function

    return register


def tool_of(function: object) -> Tool | None:
    """The tool that a function was made."""
    found = getattr(function, _TOOL, None)
    return found if isinstance(found, Tool) else None


def tools_in(module: ModuleType) -> Iterator[Tool]:
    """The tools that a module defines, in their order there."""
    for one in vars(module).values():
        found = tool_of(one)
        if found and found.function.__module__ == module.__name__:
            yield found


class Catalogue:
    """Tools by name, in the order in which they are listed."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._names = {name: tool.name for tool in self._tools.values() for name in tool.also}

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of this name, or of this alias."""
        return self._tools.get(self._names.get(name, name))

    def names(self) -> list[str]:
        return list(self._tools)

    def replacing(self, *tools: Tool) -> "Catalogue":
        """The same with these in place of those of their names."""
        return Catalogue({**self._tools, **{tool.name: tool for tool in tools}}.values())


def _params(
    function: Callable[..., Any], signature: inspect.Signature, *, limited: bool, paged: bool
) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in signature.parameters.items():
        if name in ("call", "target"):
            continue
        default = parameter.default
        fields.append((name, hints[name]) if default is parameter.empty else (name, hints[name], default))
    if paged:
        fields += [("limit", ItemsArgument, None), ("cursor", CursorArgument, "")]
    if limited:
        fields.append(("max_answer_chars", LimitArgument, -1))
    if "project" not in signature.parameters:
        fields.append(("project", ProjectArgument, None))
    fields.append(("semantic_context", ContextArgument, None))
    return msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
