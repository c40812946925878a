"""The page of one tool: its parameters, and a form to try it.

What is tried runs by the way of every call, in a session of the dashboard's own. A tool that makes changes asks first:
it shows its dry run, where it has one, and makes the very change that was shown, or none.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from serena_central.core.errors import SerenaCentralError
from serena_central.sessions.session import ClientIdentity
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool
from serena_central.web.pages import statistics
from serena_central.web.pages.forms import one_value
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import call_page
from serena_central.web.pages.tools import PATH
from serena_central.web.responses import NotFound

SESSION = "dashboard"

MOST_SHOWN = 20_000
"""Characters of an answer on the page."""

PREFIX = "arg-"
"""What names of the form's fields begin with: parameters can't be mistaken for fields of every form."""

PLAIN = frozenset({"string", "integer", "number", "boolean"})


DRY_RUN = "dry_run"

LONG = frozenset({"body", "content", "needle", "repl", "command", "edits"})
"""Parameters with texts of several lines."""

MOST_CHOICES = 100
"""Known projects that a form offers."""

STEP, SEEN = "step", "seen"
"""Fields of the second form: that it applies, and the digest of what was shown."""


class Choice(msgspec.Struct, frozen=True):
    """`label` is what people read; `chosen`: it was given."""

    value: str
    label: str
    chosen: bool


class Parameter(msgspec.Struct, frozen=True):
    """`kind` is its type in JSON; `field` names it in the form, `given` is what stands there."""

    name: str
    field: str
    kind: str
    required: bool
    default: str
    description: str
    choices: list[Choice]
    given: str
    long: bool
    """Its text has several lines, as a rule."""


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


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a unified diff."""

    kind: str
    text: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave: blocks of text, the last of them perhaps cut. Nothing was called unless `called`.

    With a `question` nothing was changed yet: `diff`, or else the blocks, are what the dry run says; `fields` are those
    of the form that goes on. `call_url` is of the call's page.
    """

    tool: str = ""
    called: bool = False
    title: str = "Answer"
    failed: bool = False
    blocks: list[str] = []
    diff: list[DiffLine] = []
    cut: bool = False
    took_ms: float = 0.0
    call_url: str = ""
    question: str = ""
    fields: dict[str, str] = {}


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
            _parameter(name, part, visit, required=name in required)
            for name, part in schema["properties"].items()
            if not (name == DRY_RUN and not tool.read_only)
        ],
        schema=json.dumps(schema, indent=2, ensure_ascii=False),
    )


def _parameter(name: str, part: Mapping[str, Any], visit: Visit, *, required: bool) -> Parameter:
    kinds = _kinds(part)
    (given, *_) = visit.form.get(PREFIX + name, [visit.query.get(name, "")])
    return Parameter(
        name=name,
        field=PREFIX + name,
        kind=" or ".join(kinds),
        required=required,
        default=json.dumps(part["default"], ensure_ascii=False) if "default" in part else "",
        description=part.get("description", ""),
        choices=[Choice(value, label, value == given) for value, label in _choices(name, kinds, part, visit, given)],
        given=given,
        long=name in LONG,
    )


def _choices(
    name: str, kinds: Sequence[str], part: Mapping[str, Any], visit: Visit, given: str
) -> Sequence[tuple[str, str]]:
    """Values of a parameter that has a closed set of them, with their labels; none for free text."""
    if kinds == ["boolean"]:
        return [("true", "true"), ("false", "false")]
    if enum := part.get("enum"):
        return [(str(choice), str(choice)) for choice in enum]
    found: list[tuple[str, str]] = []
    if name == "project":
        known = sorted(visit.parts.projects.snapshots(), key=lambda one: (not one.open, one.name))[:MOST_CHOICES]
        found = [(one.root, f"{one.name} ({one.root})") for one in known]
    elif name == "modes":
        found = [(json.dumps([mode]), mode) for mode in sorted(visit.parts.offer.profiles.modes)]
    if found and given and given not in dict(found):
        found.append((given, given))
    return found


def _kinds(part: Mapping[str, Any]) -> list[str]:
    return [str(choice.get("type", "any")) for choice in part.get("anyOf", (part,))]


async def trial(visit: Visit) -> Trial:
    """Calls the tool if its form was sent; one that makes changes only after its question was answered."""
    tool = _tool(visit)
    if not visit.form:
        return Trial()
    arguments = arguments_of(tool, visit.form)
    if tool.read_only:
        return await _called(tool, arguments, visit)
    applies = one_value(visit.form, STEP) == "apply"
    fields = {name: values[0] for name, values in visit.form.items() if name.startswith(PREFIX) and values[0].strip()}
    if DRY_RUN not in tool.schema["properties"]:
        if applies:
            return await _called(tool, arguments, visit)
        question = f"{tool.name} makes changes and has no dry run. Call it with these arguments?"
        return Trial(tool=tool.name, called=True, title="Confirm", question=question, fields={**fields, STEP: "apply"})
    preview = await _called(tool, {**arguments, DRY_RUN: True}, visit)
    if preview.failed:
        return preview
    seen = hashlib.blake2b("\0".join(preview.blocks).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    if applies and one_value(visit.form, SEEN) == seen:
        return await _called(tool, {**arguments, DRY_RUN: False}, visit)
    return msgspec.structs.replace(
        preview,
        title="Dry run",
        diff=_diff(preview.blocks[0]),
        question="What it would do has changed since. Make this change?" if applies else "Make this change?",
        fields={**fields, STEP: "apply", SEEN: seen},
    )


async def _called(tool: Tool, arguments: Mapping[str, Any], visit: Visit) -> Trial:
    parts = visit.parts
    identity = ClientIdentity(credential=parts.browsers.credential, explicit_id=SESSION, client_name="dashboard")
    session = parts.sessions.identify(identity)
    began = time.perf_counter()
    try:
        answer = await parts.caller.call(session, tool.name, arguments, person=True)
        whole, failed = _formatted(answer), False
    except SerenaCentralError as error:
        whole, failed = [str(error)], True
    took_ms = (time.perf_counter() - began) * 1000
    newest = session.log[-1] if session.log else None
    left, blocks = MOST_SHOWN, list[str]()
    for block in whole:
        blocks.append(block[:left])
        left -= len(blocks[-1])
    return Trial(
        tool=tool.name,
        called=True,
        title="Failed" if failed else "Answer",
        failed=failed,
        blocks=blocks,
        cut=sum(map(len, whole)) > MOST_SHOWN,
        took_ms=took_ms,
        call_url=call_page(newest.call) if newest and newest.call and newest.text.startswith(tool.name) else "",
    )


def _formatted(answer: Answer) -> list[str]:
    """The blocks of an answer, its JSON on several lines."""
    if answer.data is None or len(answer.data) > MOST_SHOWN:
        return answer.blocks
    try:
        text = json.dumps(json.loads(answer.data), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return answer.blocks
    first = answer.blocks[0][: -len(answer.data)] + text
    return [first, *answer.blocks[1:]]


def _diff(text: str) -> list[DiffLine]:
    """The lines of a unified diff; none if it is something else."""
    if not text.startswith("--- "):
        return []
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    return [
        DiffLine("head" if line.startswith(("--- ", "+++ ")) else kinds.get(line[:1], "same"), line)
        for line in text.splitlines()
    ]


def arguments_of(tool: Tool, form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a form says; fields that are empty are not given. Whether it is right, the call itself finds out."""
    properties: dict[str, dict[str, Any]] = tool.schema["properties"]
    given = {name: form.get(PREFIX + name, [""])[0] for name in properties if tool.read_only or name != DRY_RUN}
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
        "use": statistics.ranged(f"{PATH}/{{tool}}", of=lambda visit: {"tool": visit.path["tool"]}),
    },
    in_navigation=False,
    live=False,
)
