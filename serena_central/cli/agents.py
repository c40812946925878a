"""`serena-central agents`: the definitions of agents that count in a folder, and what is wrong with them.

It reads the files itself: no server has to run, and one that runs goes by the same files.
"""

from pathlib import Path
from typing import Any

import click

from serena_central.agents.definitions import Definition, Definitions, definitions_of
from serena_central.claude_config.problems import Problem, Severity
from serena_central.cli.exits import WrongSettings
from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, print_table, say
from serena_central.cli.trust import project_root
from serena_central.config.load import load_server_config
from serena_central.core.errors import InvalidArguments
from serena_central.core.places import Places
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.projects.root_settings import RootSettings

DESCRIPTION_CHARS = 80

folder_option = click.option(
    "--project", "folder", type=GivenPath(path_type=Path), help="Of this folder; else of the one around you."
)


@click.group(epilog="Examples: serena-central agents list    serena-central agents show reviewer")
def command() -> None:
    """List, show and check definitions of agents: `.claude/agents/*.md` of the project, `agents/*.md` of the user."""


@command.command("list", epilog="Example: serena-central agents list --project ~/src/app")
@folder_option
@json_option
def list_agents(*, folder: Path | None, as_json: bool) -> None:
    """List the agents that tasks can name."""
    found = _of(folder)
    if as_json:
        print_json({"agents": _all(found), "problems": [_problem(one) for one in found.problems]})
        return
    print_table(
        ["AGENT", "FROM", "MODEL", "TOOLS", "DESCRIPTION"],
        [
            (one["name"], one["state"], one["model"] or "-", _tools(one["tools"]), _short(one["description"]))
            for one in _all(found)
        ],
        empty="No agents. Define one in .claude/agents/NAME.md of the project, or in agents/ of your Claude folder.",
    )
    _note_untrusted(found)
    errors = sum(one.severity is Severity.ERROR for one in found.problems)
    if errors:
        say(
            f"serena-central: {counted(errors, 'error')} in these files; list them: serena-central agents check",
            err=True,
        )


@command.command(epilog="Example: serena-central agents show reviewer")
@click.argument("name")
@folder_option
@json_option
def show(name: str, *, folder: Path | None, as_json: bool) -> None:
    """Show one agent: where it is defined, what it may call, and its system prompt."""
    found = _of(folder)
    chosen = [one for one in _all(found) if one["name"] == name]
    if not chosen:
        known = ", ".join(one["name"] for one in _all(found)) or "none"
        raise InvalidArguments(f"There is no agent {quoted(name)}. Agents: {known}.")
    if as_json:
        print_json({"agents": chosen})
        return
    for one in chosen:
        for what in ("name", "state", "file", "description", "model", "runner"):
            if one[what]:
                say(f"{what:13}{one[what]}")
        say(f"{'tools':13}{_tools(one['tools'])}")
        if one["disallowed_tools"]:
            say(f"{'but not':13}{', '.join(one['disallowed_tools'])}")
        say(f"\n{one['prompt']}\n")


@command.command(epilog="Example: serena-central agents check --project ~/src/app")
@folder_option
@json_option
def check(*, folder: Path | None, as_json: bool) -> None:
    """Check all definitions. Exit code 2 if one of them can't be used as it is written."""
    found = _of(folder)
    if as_json:
        print_json({"problems": [_problem(one) for one in found.problems]})
    else:
        for one in found.problems:
            say(str(one))
        problems = counted(len(found.problems), "problem or note", "problems and notes")
        say(f"{counted(len(_all(found)), 'agent')}. {problems}.")
        _note_untrusted(found)
    if any(one.severity is Severity.ERROR for one in found.problems):
        raise WrongSettings


def _note_untrusted(found: Definitions) -> None:
    if found.held_back:
        say(
            "serena-central: this repository is not trusted, and its agents are not used: serena-central trust",
            err=True,
        )


def _of(folder: Path | None) -> Definitions:
    root = project_root(folder)
    settings = RootSettings(load_server_config({}), Places.of_user())
    return definitions_of(root, settings.claude.locations, trusted=settings.trust.is_trusted(root))


def _all(found: Definitions) -> list[dict[str, Any]]:
    states = [
        *((one, str(one.origin)) for one in found.by_name.values()),
        *((one, f"{one.origin}, not trusted") for one in found.held_back),
        *((one, f"{one.origin}, shadowed") for one in found.shadowed),
    ]
    return [_view(one, state) for one, state in states]


def _view(one: Definition, state: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "state": state,
        "description": one.description,
        "tools": None if one.tools is None else list(one.tools),
        "disallowed_tools": list(one.disallowed_tools),
        "model": one.model,
        "runner": one.runner,
        "prompt": one.prompt,
        "file": one.file,
    }


def _problem(one: Problem) -> dict[str, Any]:
    return {
        "severity": str(one.severity),
        "file": one.place.file,
        "line": one.place.line,
        "key": one.key,
        "problem": one.text,
        "remedy": one.remedy,
    }


def _tools(names: list[str] | None) -> str:
    return "all" if names is None else ", ".join(names) or "none"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= DESCRIPTION_CHARS else f"{line[:DESCRIPTION_CHARS]}…"
