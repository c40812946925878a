"""The page of one tool: its parameters, and a form to try it if it changes nothing.

What is tried runs by the way of every call, in a session of the dashboard's own.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from serena_central.core.errors import SerenaCentralError
from serena_central.sessions.client_identity import ClientIdentity
from serena_central.tools.catalogue import Tool
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.tools import PATH
from serena_central.web.responses import NotFound

SESSION = "dashboard"

MOST_SHOWN = 20_000
"""Characters of an answer on the page."""

PREFIX = "arg-"
"""What names of the form's fields begin with: parameters can't be mistaken for fields of every form."""

PLAIN = frozenset({"string", "integer", "number", "boolean"})


class Parameter(msgspec.Struct, frozen=True):
    """`kind` is its type in JSON; `field` names it in the form, `given` is what stands there."""

    name: str
    field: str
    kind: str
    required: bool
    default: str
    description: str
    choices: list[str]
    given: str


class About(msgspec.Struct, frozen=True):
    name: str
    title: str
    description: str


class Form(msgspec.Struct, frozen=True):
    """What the tool takes; `schema` is what agents get, as JSON."""

    name: str
    read_only: bool
    parameters: list[Parameter]
    schema: str


class Trial(msgspec.Struct, frozen=True):
    """What a call gave: blocks of text, the last of them perhaps cut. Nothing was called unless `called`."""

    called: bool = False
    failed: bool = False
    blocks: list[str] = []
    cut: bool = False


def _tool(visit: Visit) -> Tool:
    tool = visit.parts.catalogue.get(visit.path["tool"])
    if tool is None:
        raise NotFound(f"There is no tool {visit.path['tool']!r}.")
    return tool


async def about(visit: Visit) -> About:
    tool = _tool(visit)
    return About(tool.name, tool.title, tool.description)


async def form(visit: Visit) -> Form:
    tool = _tool(visit)
    schema = tool.schema
    required = schema.get("required", ())
    return Form(
        name=tool.name,
        read_only=tool.read_only,
        parameters=[
            _parameter(name, part, visit, required=name in required) for name, part in schema["properties"].items()
        ],
        schema=json.dumps(schema, indent=2, ensure_ascii=False),
    )


def _parameter(name: str, part: Mapping[str, Any], visit: Visit, *, required: bool) -> Parameter:
    kinds = _kinds(part)
    choices = [str(choice) for choice in part.get("enum", ())]
    (given, *_) = visit.form.get(PREFIX + name, [""])
    return Parameter(
        name=name,
        field=PREFIX + name,
        kind=" or ".join(kinds),
        required=required,
        default=json.dumps(part["default"], ensure_ascii=False) if "default" in part else "",
        description=part.get("description", ""),
        choices=["true", "false"] if kinds == ["boolean"] else choices,
        given=given,
    )


def _kinds(part: Mapping[str, Any]) -> list[str]:
    return [str(choice.get("type", "any")) for choice in part.get("anyOf", (part,))]


async def trial(visit: Visit) -> Trial:
    """Calls the tool if its form was sent."""
    tool, parts = _tool(visit), visit.parts
    if not visit.form:
        return Trial()
    if not tool.read_only:
        return Trial(called=True, failed=True, blocks=[f"{tool.name} makes changes and can't be tried here."])
    arguments = arguments_of(tool, visit.form)
    identity = ClientIdentity(credential=parts.browsers.credential, explicit_id=SESSION, client_name="dashboard")
    try:
        answer = await parts.caller.call(parts.sessions.identify(identity), tool.name, arguments, person=True)
    except SerenaCentralError as error:
        return Trial(called=True, failed=True, blocks=[str(error)])
    left, blocks = MOST_SHOWN, list[str]()
    for block in answer.blocks:
        blocks.append(block[:left])
        left -= len(blocks[-1])
    return Trial(called=True, blocks=blocks, cut=sum(map(len, answer.blocks)) > MOST_SHOWN)


def arguments_of(tool: Tool, form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a form says; fields that are empty are not given. Whether it is right, the call itself finds out."""
    properties: dict[str, dict[str, Any]] = tool.schema["properties"]
    given = {name: form.get(PREFIX + name, [""])[0] for name in properties}
    return {name: _value(text, _kinds(properties[name])) for name, text in given.items() if text.strip()}


def _value(text: str, kinds: Sequence[str]) -> Any:
    """A field's text, read as JSON where the parameter is no plain value, or looks like a list or mapping."""
    if set(kinds) <= PLAIN or ("string" in kinds and text.lstrip()[0] not in "[{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


PAGE = Page(
    path=f"{PATH}/{{tool}}",
    title="Tool {tool}",
    template="tool.html",
    sections={
        "about": Section("tool/_about.html", about),
        "trial": Section("tool/_trial.html", trial),
        "form": Section("tool/_form.html", form),
    },
    in_navigation=False,
    live=False,
)
