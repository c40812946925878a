"""`serena-central call`: a tool from the terminal, its options made from the tool's own schema."""

import json
from difflib import get_close_matches
from textwrap import shorten
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import check_is_reachable, json_given
from serena_central.cli.output import json_text, print_json, say
from serena_central.cli.remote import Remote
from serena_central.core.errors import SerenaCentralError
from serena_central.core.paths import expanded
from serena_central.core.project_names import listed_names

EPILOG = """\b
Examples:
  serena-central call                                          (lists the tools)
  serena-central call find_symbol --help
  serena-central call find_symbol --project ~/src/app --name-path-pattern Session/send --include-body
  serena-central call search_for_pattern --arguments '{"substring_pattern": "TODO"}'
"""

_ALL_TOOLS = "/api/v1/tools?unlisted=true"

COMPLETION_S = 2.0
"""How long a shell waits for the tools' names."""

DESCRIPTION_CHARS = 120
"""What is shown of a description in a list of all tools."""

SHARED = {
    "project": "A project's name or folder; several with commas; * for all open ones. Else the one around this folder.",
    "semantic_context": "The task in words, which choose a module of a super-repo.",
}
"""Parameters of all tools. Agents are told once, by `list_projects`, to save tokens."""

OPTIONAL = "\nCallable, and not listed to agents here (the setting included_optional_tools lists optional ones):\n"

_TYPES: dict[str, click.ParamType[Any]] = {"integer": click.INT, "number": click.FLOAT, "string": click.STRING}


class _Call(click.Command):
    """Completes the tools' own options, too: they are no options of `call`."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named: str | None = ctx.params.get("tool")
        tool = next((one for one in _known_tools() if one["name"] == named), None)
        return _command_of(tool).shell_complete(click.Context(_command_of(tool)), incomplete) if tool else []


def _complete_tool(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(one["name"], help=_in_one_line(one["description"]))
        for one in _known_tools()
        if one["name"].startswith(incomplete)
    ]


def _known_tools() -> list[dict[str, Any]]:
    """For somebody who waits at a prompt: nothing, where no server answers soon."""
    try:
        return Remote(answer_timeout_s=COMPLETION_S).get(_ALL_TOOLS)["tools"]
    except SerenaCentralError:
        return []


@click.command(
    cls=_Call,
    epilog=EPILOG,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("tool", required=False, shell_complete=_complete_tool)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, tool: str | None, arguments: tuple[str, ...]) -> None:
    """Call TOOL with the options that its schema names; without TOOL list all tools."""
    if tool in ("-h", "--help"):
        click.echo(context.get_help())
        return
    if tool is not None and tool.startswith("-") and (arguments or tool != "--json"):
        raise click.UsageError(f"{tool} stands before the tool. Write: serena-central call TOOL {tool} …")
    tools: list[dict[str, Any]] = Remote().get(_ALL_TOOLS)["tools"]
    if tool is None or tool == "--json":
        _print_tools(tools, as_json=tool is not None)
        return
    found = next((one for one in tools if one["name"] == tool), None)
    if found is None:
        close = get_close_matches(tool, [one["name"] for one in tools])
        meant = f" Did you mean {' or '.join(close)}?" if close else ""
        raise click.UsageError(f"There is no tool named {tool!r}.{meant} `serena-central call` lists the tools.")
    if found["refused"]:
        raise click.UsageError(found["refused"])
    if _command_of(found).main(list(arguments), prog_name=f"serena-central call {tool}", standalone_mode=False):
        raise Unsuccessful


def _print_tools(tools: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(tools)
        return
    width = max(len(one["name"]) for one in tools)
    listed = [one for one in tools if one["listed"]]
    optional = [one for one in tools if not one["listed"] and not one["refused"]]
    for heading, part in (("", listed), (OPTIONAL, optional)):
        if part:
            click.echo(heading, nl=False)
        for one in part:
            click.echo(f"{one['name'].ljust(width)}  {_in_one_line(one['description'])}")


def _in_one_line(description: str) -> str:
    """The lines of a description end anywhere in a sentence."""
    return shorten(description, DESCRIPTION_CHARS, placeholder=" …")


def _command_of(tool: dict[str, Any]) -> click.Command:
    schema: dict[str, Any] = tool["input_schema"]
    options: list[click.Parameter] = [
        _option(name, part, required=name in schema.get("required", ()))
        for name, part in schema["properties"].items()
        if name != "arguments"  # a parameter of this name is given within --arguments
    ]
    options.append(
        click.Option(["--arguments", "arguments_json"], metavar="JSON", help="Arguments as one JSON object.")
    )

    def run(*, as_json: bool, arguments_json: str | None, **given: Any) -> bool:
        arguments = _from_json(arguments_json)
        for name, value in given.items():
            if value not in (None, ()):
                arguments[name] = [*value] if isinstance(value, tuple) else value
        return _call(tool["name"], arguments, as_json=as_json)

    options.append(click.Option(["--json", "as_json"], is_flag=True, help="Print the answer and its notes as JSON."))
    return click.Command(tool["name"], callback=run, params=options, help=tool["description"])


def _option(name: str, part: dict[str, Any], *, required: bool) -> click.Option:
    """One option. A required one may also come by `--arguments`, so that the server tells what is missing."""
    flag = "--" + name.replace("_", "-")
    text = part.get("description", SHARED.get(name, "")) + ("  [required]" if required else "")
    kinds = {choice.get("type") for choice in part.get("anyOf", [part])}
    if kinds == {"boolean"}:
        return click.Option([f"{flag}/--no-{name.replace('_', '-')}", name], default=None, help=text)
    if "array" in kinds:
        return click.Option([flag, name], multiple=True, help=text + " (repeatable)")
    kind = _TYPES.get(str(part.get("type")), _TYPES["string"])
    return click.Option([flag, name], type=kind, default=None, help=text)


def _from_json(text: str | None) -> dict[str, Any]:
    try:
        arguments: Any = json_given(text) if text else {}
    except ValueError as error:
        raise click.UsageError(f"--arguments is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise click.UsageError("--arguments must be a JSON object.")
    return cast("dict[str, Any]", arguments)


def _call(name: str, arguments: dict[str, Any], *, as_json: bool) -> bool:
    """Prints the answer; whether it reports a failure."""
    project: str | list[str] | None = arguments.get("project")
    if project is not None:
        given = [project] if isinstance(project, str) else project
        named = [_absolute(name) for name in listed_names([_absolute(one) for one in given])]
        arguments["project"] = named[0] if len(named) == 1 else named
    answer = Remote().post(f"/api/v1/tools/{name}", {"arguments": arguments})
    blocks: list[str] = answer["blocks"]
    if as_json:
        notes = [line for block in blocks[1:] for line in block.splitlines()]
        print_json({"answer": _parsed(blocks[0]), "notes": notes})
    else:
        parsed = _parsed(blocks[0])
        say(parsed if isinstance(parsed, str) else json_text(parsed, indent=2))
        for note in blocks[1:]:
            say(note, err=True)
    return answer.get("failed", False)  # a server older than this command does not say it


def _absolute(project: str) -> str:
    """A folder that exists here is meant as a path; anything else is a name."""
    project = project.strip()
    folder = expanded(project)
    check_is_reachable(folder)
    return str(folder.absolute()) if folder.is_dir() and project != "*" else project


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
