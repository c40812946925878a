"""The page of one tool, our own or an upstream's: its parameters, and a form to try it.

What is tried runs by the way of every call, in a session of the dashboard's own. A tool that makes changes asks first:
it shows its dry run, where it has one, and makes the very change that was shown, or none.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from serena_central.core.errors import InvalidArguments, SerenaCentralError
from serena_central.sessions.session import ClientIdentity
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool
from serena_central.tools.upstream_tool import UpstreamTool
from serena_central.web.pages import statistics
from serena_central.web.pages.forms import one_value
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.references import PageLink, call_page, upstream_page
from serena_central.web.pages.tool_form import (
    DRY_RUN,
    MOST_PARAMETERS,
    PREFIX,
    Choice,
    Parameter,
    arguments_of,
    has_dry_run,
    parameters_of,
    properties_of,
)
from serena_central.web.pages.tools import PATH
from serena_central.web.responses import NotFound
from serena_central.web.upstreams import roots_with_tool

SESSION = CLIENT = "dashboard"

MOST_SHOWN = 20_000
"""Characters of an answer, a description or a schema on the page."""

STEP, SEEN = "step", "seen"
"""Fields of the second form: that it applies, and the digest of what was shown."""

ROOT = "project-root"
"""Field of an upstream's tool, and the page's query: in which project it is called."""


class About(msgspec.Struct, frozen=True):
    """`above`: the page that leads to it."""

    above: PageLink
    name: str
    title: str
    description: str


class Form(msgspec.Struct, frozen=True):
    """What the tool takes; `schema` is what agents get, as JSON. `roots`: projects to call an upstream's tool in.
    `left_out` counts parameters that have no field."""

    name: str
    read_only: bool
    previews: bool
    roots: list[Choice]
    parameters: list[Parameter]
    left_out: int
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


class _Chosen(NamedTuple):
    """`root`: where an upstream's tool is called, one of `roots`."""

    tool: Tool
    root: Path | None = None
    roots: tuple[Path, ...] = ()


async def _chosen(visit: Visit) -> _Chosen:
    """Raises: NotFound."""
    parts, name = visit.parts, visit.path["tool"]
    own = parts.catalogue.get(name)
    if own is not None:
        return _Chosen(own)
    roots = await roots_with_tool(parts, name)
    wanted = one_value(visit.form, ROOT) or visit.query.get(ROOT, "")
    root = next((one for one in roots if str(one) == wanted or not wanted), None)
    found = (await parts.upstreams.tools_of(root)).get(name) if root is not None else None
    if found is None:
        where = f" in {root}" if root is not None else ""
        raise NotFound(f"There is no tool {name!r}{where}. The page of its server says what is known of its tools.")
    return _Chosen(found, root, tuple(roots))


async def about(visit: Visit) -> About:
    tool = (await _chosen(visit)).tool
    server = tool.server if isinstance(tool, UpstreamTool) else ""
    title = tool.title if tool.title != tool.name else ""
    above = PageLink(f"Upstream {server}", upstream_page(server)) if server else PageLink("Tools", link(PATH))
    return About(above, tool.name, title[:MOST_SHOWN], tool.description[:MOST_SHOWN])


async def form(visit: Visit) -> Form:
    tool, root, roots = await _chosen(visit)
    return Form(
        name=tool.name,
        read_only=tool.read_only,
        previews=not tool.read_only and has_dry_run(tool),
        roots=[Choice(str(one), f"{one.name} ({one})", one == root) for one in roots],
        parameters=parameters_of(tool, visit),
        left_out=max(len(properties_of(tool)) - MOST_PARAMETERS, 0),
        schema=json.dumps(tool.schema, indent=2, ensure_ascii=False)[:MOST_SHOWN],
    )


async def trial(visit: Visit) -> Trial:
    """Calls the tool if its form was sent; one that makes changes only after its question was answered."""
    chosen = await _chosen(visit)
    tool = chosen.tool
    if not visit.form:
        return Trial()
    arguments = arguments_of(tool, visit.form)
    if tool.read_only:
        return await _called(chosen, arguments, visit)
    applies = one_value(visit.form, STEP) == "apply"
    fields = {name: values[0] for name, values in visit.form.items() if name.startswith(PREFIX) and values[0].strip()}
    if chosen.root is not None:
        fields[ROOT] = str(chosen.root)
    if not has_dry_run(tool):
        return await _called(chosen, arguments, visit) if applies else _asked(tool, arguments, fields)
    preview = await _called(chosen, {**arguments, DRY_RUN: True}, visit)
    if preview.failed:
        return preview
    seen = hashlib.blake2b("\0".join(preview.blocks).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    if applies and one_value(visit.form, SEEN) == seen:
        return await _called(chosen, {**arguments, DRY_RUN: False}, visit)
    return msgspec.structs.replace(
        preview,
        title="Dry run",
        diff=_diff(preview.blocks[0]),
        question="What it would do has changed since. Make this change?" if applies else "Make this change?",
        fields={**fields, STEP: "apply", SEEN: seen},
    )


def _asked(tool: Tool, arguments: Mapping[str, Any], fields: Mapping[str, str]) -> Trial:
    """The question before a call that can't say what it would do; none if its arguments are wrong."""
    try:
        tool.parse(arguments)
    except InvalidArguments as error:
        return Trial(tool=tool.name, called=True, title="Failed", failed=True, blocks=[str(error)])
    says = "may make changes" if isinstance(tool, UpstreamTool) else "makes changes"
    given = [f"{name}: {fields[PREFIX + name]}" for name in arguments]
    return Trial(
        tool=tool.name,
        called=True,
        title="Confirm",
        blocks=["\n".join(given)[:MOST_SHOWN]] if given else [],
        question=f"{tool.name} {says} and has no dry run. Call it with these arguments?",
        fields={**fields, STEP: "apply"},
    )


async def _called(chosen: _Chosen, arguments: Mapping[str, Any], visit: Visit) -> Trial:
    parts, tool = visit.parts, chosen.tool
    # A session in each project for tools of upstreams: its configuration says which of them there are.
    session = parts.sessions.identify(
        ClientIdentity(
            credential=parts.browsers.credential,
            explicit_id=SESSION if chosen.root is None else None,
            client_name=CLIENT,
            working_folder=None if chosen.root is None else str(chosen.root),
        )
    )
    began = time.perf_counter()
    try:
        answer = await parts.caller.call(session, tool.name, arguments, person=True)
        whole, failed = _formatted(answer, tool), answer.failed
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


def _formatted(answer: Answer, tool: Tool) -> list[str]:
    """The blocks of an answer, JSON on several lines."""
    if isinstance(tool, UpstreamTool):
        return [_on_several_lines(block) for block in (*answer.blocks, *_structured(answer, tool))]
    if not answer.data:
        return answer.blocks
    first = answer.blocks[0][: -len(answer.data)] + _on_several_lines(answer.data)
    return [first, *answer.blocks[1:]]


def _structured(answer: Answer, tool: UpstreamTool) -> list[str]:
    """The structured content of an upstream's answer, unless one of the blocks says the same."""
    structured = (answer.passed or {}).get("structuredContent")
    if structured is None:
        return []
    text = tool.masked(json.dumps(structured, ensure_ascii=False))
    return [] if _on_several_lines(text) in map(_on_several_lines, answer.blocks) else [text]


def _on_several_lines(text: str) -> str:
    """JSON's objects and lists, indented; any other text as it is."""
    if text[:1] not in ("{", "[") or len(text) > MOST_SHOWN:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _diff(text: str) -> list[DiffLine]:
    """The lines of a unified diff; none if it is something else."""
    if not text.startswith("--- "):
        return []
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    return [
        DiffLine("head" if line.startswith(("--- ", "+++ ")) else kinds.get(line[:1], "same"), line)
        for line in text.splitlines()
    ]


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
