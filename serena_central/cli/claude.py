"""`serena-central claude`: the settings, rules and memory files in Claude Code's format that count in a folder.

It reads the files itself: no server has to run, and one that runs goes by the same files at the next call.
"""

import os
from pathlib import Path
from typing import Any

import click

from serena_central.claude_config.effective import Effective, load, shown
from serena_central.claude_config.memory_files import memory_files
from serena_central.claude_config.merge import Given
from serena_central.claude_config.permissions import Decision
from serena_central.claude_config.problems import KeyPath, Problem, dotted
from serena_central.claude_config.rules import KNOWN, SERVER, BadRule, Rule, parse_rule
from serena_central.claude_config.sources import servers_of
from serena_central.claude_config.tiers import Tier
from serena_central.cli.claude_edits import edit, set_value
from serena_central.cli.claude_import import import_servers
from serena_central.cli.exits import WrongSettings
from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, json_text, print_json, print_table, say
from serena_central.cli.trust import project_root
from serena_central.config.load import load_server_config
from serena_central.core.errors import InvalidArguments
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.core.words import counted
from serena_central.projects.root_settings import RootSettings

folder_option = click.option(
    "--project", "folder", type=GivenPath(path_type=Path), help="Of this folder; else of the one around you."
)


@click.group(epilog="Example: serena-central claude explain 'Read(.env)'")
def command() -> None:
    """Show, check and change settings, rules and memory in Claude Code's format.

    Settings of four tiers count: enterprise, user, project, local. Rules hold for every client of the server.
    """


command.add_command(edit)
command.add_command(set_value)
command.add_command(import_servers)


@command.command(epilog="Example: serena-central claude show --origins")
@click.option("--origins", is_flag=True, help="Say where each value comes from.")
@click.option("--tier", type=click.Choice([str(tier) for tier in Tier]), help="What one tier alone says.")
@folder_option
@json_option
def show(*, origins: bool, tier: str | None, folder: Path | None, as_json: bool) -> None:
    """Show the settings that count."""
    found = load(project_root(folder))
    if tier:
        print_json(shown(found.of_tier(Tier(tier))))
    elif as_json:
        print_json(
            {
                "settings": shown(found.value),
                "origins": {
                    dotted(path): [_origin(found, path, one) for one in given] for path, _, given in found.leaves()
                },
                "problems": [_problem(one) for one in found.problems],
            }
        )
    elif origins:
        rows = [
            (dotted(path), json_text(found.shown(path, value)), found.tier_of(given[0]), found.place_of(given[0]))
            for path, value, given in found.leaves()
        ]
        print_table(["KEY", "VALUE", "TIER", "FILE"], rows, empty="No settings.")
    else:
        print_json(shown(found.value))
    if not as_json:
        _count(found.problems)


def _origin(found: Effective, path: KeyPath, given: Given) -> dict[str, Any]:
    place = found.place_of(given)
    return {
        "tier": str(found.tier_of(given)),
        "file": place.file,
        "line": place.line,
        "value": found.shown(path, given.value),
    }


def _problem(one: Problem) -> dict[str, Any]:
    return {
        "severity": str(one.severity),
        "file": one.place.file,
        "line": one.place.line,
        "column": one.place.column,
        "key": one.key,
        "problem": one.text,
        "remedy": one.remedy,
    }


def _count(problems: tuple[Problem, ...]) -> None:
    if problems:
        found = counted(len(problems), "problem or note", "problems and notes")
        click.echo(f"serena-central: {found} in these files; list them: serena-central claude check", err=True)


@command.command(epilog="Example: serena-central claude check --project ~/src/app")
@folder_option
@json_option
def check(*, folder: Path | None, as_json: bool) -> None:
    """Check all files: settings, MCP servers, memory. Exit code 2 if anything in them has no effect."""
    root = project_root(folder)
    found = load(root)
    problems = [*found.problems, *servers_of(found, trusted=_trusts(root)).problems, *_memory(found, root).problems]
    if as_json:
        print_json({"problems": [_problem(one) for one in problems]})
    else:
        for one in problems:
            say(str(one))
        read = ", ".join(str(one.file.path) for one in found.files) or "none"
        say(f"Settings files: {read}. {counted(len(problems), 'problem or note', 'problems and notes')}.")
    if any(one.severity == "error" for one in problems):
        raise WrongSettings


def _trusts(root: Path) -> bool:
    return RootSettings(load_server_config({}), Places.of_user()).trust.is_trusted(root)


def _memory(found: Effective, root: Path, touched: tuple[Path, ...] = (), names: tuple[str, ...] = ()) -> Any:
    def readable(path: Path) -> str | None:
        if not path.is_relative_to(root):
            return None
        decision = found.permissions.reading(path.relative_to(root).as_posix())
        return str(decision.rule) if decision else None

    named = [*load_server_config({}).value.memory_files, *names]
    return memory_files(root, touched, names=list(dict.fromkeys(named)), trusted=_trusts(root), readable=readable)


@command.command(
    epilog="""\b
Examples:
  serena-central claude explain model
  serena-central claude explain 'Read(.env)'
  serena-central claude explain 'Bash(git push origin main)'"""
)
@click.argument("what", metavar="KEY|RULE")
@folder_option
@json_option
def explain(what: str, *, folder: Path | None, as_json: bool) -> None:
    """Say what decides: about a setting by its key, or about a use of a tool, such as Read(FILE) or Bash(COMMAND)."""
    found = load(project_root(folder))
    rule = _rule(what)
    if rule is None:
        _explain_key(found, what, as_json=as_json)
        return
    decision = _decision(found, rule)
    verdict = decision.rule.verdict if decision else "no rule"
    if as_json:
        one = decision.rule if decision else None
        print_json(
            {
                "use": what,
                "verdict": verdict,
                "rule": one.rule.text if one else None,
                "tier": str(one.tier) if one else None,
                "file": one.place.file if one else None,
                "line": one.place.line if one else None,
                "doubt": decision.doubt if decision else False,
            }
        )
    elif decision is None:
        say(f"{what}: no rule is about it, so that it is allowed here.")
    else:
        said = {"deny": "denied", "ask": "refused until a person has been asked", "allow": "allowed"}[verdict]
        doubt = ", which may match: what runs can't be told from the text" if decision.doubt else ""
        say(f"{what}: {said} by {decision.rule.rule.text} in {decision.rule.place} ({decision.rule.tier}){doubt}.")


def _rule(what: str) -> Rule | None:
    """The use of a tool that is asked about; None for a key of settings."""
    if "(" not in what and what not in KNOWN and not what.startswith(SERVER):
        return None
    try:
        return parse_rule(what)
    except BadRule as error:
        raise InvalidArguments(f"{what!r} names no use of a tool: {error}.") from error


def _decision(found: Effective, rule: Rule) -> Decision | None:
    permissions, about = found.permissions, rule.argument
    if rule.effect in ("read", "edit"):
        if about is None:
            return permissions.tool("", rule.effect, [rule.tool])
        path = _relative(found.root, about)
        closed = permissions.reading(path) if rule.effect == "read" else permissions.editing(path)
        return closed or permissions.path_allowed_by(rule.effect, path)
    if rule.effect == "run":
        if about is None:
            return permissions.tool("", "run", [rule.tool])
        return permissions.command(about) or permissions.command_allowed_by(about)
    if rule.effect == "server":
        _, server, tool = f"{rule.tool}____".split("__", 2)
        return permissions.upstream(server, tool.rstrip("_") or "*")
    return None


def _relative(root: Path, path: str) -> str:
    """As rules see it: relative to the root, or out of it with `..`."""
    absolute = root / expanded(path[1:] if path.startswith("//") else path)
    return Path(os.path.relpath(absolute, root)).as_posix()


def _explain_key(found: Effective, key: str, *, as_json: bool) -> None:
    leaves = [leaf for leaf in found.leaves() if _is_at_or_below(leaf[0], key)]
    problems = [one for one in found.problems if one.key == key or one.key.startswith((f"{key}.", f"{key}["))]
    if as_json:
        print_json(
            {
                "key": key,
                "leaves": [
                    {
                        "key": dotted(path),
                        "value": found.shown(path, value),
                        "given": [_origin(found, path, one) for one in given],
                    }
                    for path, value, given in leaves
                ],
                "problems": [_problem(one) for one in problems],
            }
        )
        return
    for path, value, given in leaves:
        say(f"{dotted(path)} = {json_text(found.shown(path, value))}")
        for place, one in enumerate(given):
            same = one.value == given[0].value
            role = (
                "counts"
                if place == 0
                else "says the same"
                if same
                else f"shadowed: {json_text(found.shown(path, one.value))}"
            )
            say(f"  {role:<8} {found.tier_of(one)}  {found.place_of(one)}")
    for one in problems:
        say(str(one))
    if not leaves and not problems:
        say(f"{key} is set nowhere. `serena-central claude set {key} VALUE` sets it.")


def _is_at_or_below(path: KeyPath, key: str) -> bool:
    text = dotted(path)
    return text == key or text.startswith((f"{key}.", f"{key}["))


@command.command(epilog="Example: serena-central claude memory --touched src/api/orders.py")
@click.argument("folder", metavar="[DIR]", required=False, type=GivenPath(path_type=Path))
@click.option("--touched", multiple=True, type=GivenPath(path_type=Path), help="A file that the agent works on.")
@click.option("--also", multiple=True, help="Another file name that counts: AGENTS.md, GEMINI.md.")
@click.option("--list", "listing", is_flag=True, help="Only the files and their sizes.")
@json_option
def memory(
    *, folder: Path | None, touched: tuple[Path, ...], also: tuple[str, ...], listing: bool, as_json: bool
) -> None:
    """Print what an agent gets to read: CLAUDE.md files in order, with their imports."""
    root = project_root(folder)
    found = _memory(load(root), root, touched, also)
    if as_json:
        print_json(
            {
                "parts": [
                    {
                        "file": str(part.path),
                        "origin": str(part.origin),
                        "bytes": part.size,
                        "imported_by": str(part.imported_by) if part.imported_by else None,
                        "text": part.text,
                    }
                    for part in found.parts
                ],
                "bytes": found.size,
                "problems": [_problem(one) for one in found.problems],
            }
        )
        return
    if listing:
        rows = [(part.path, part.origin, part.size, part.imported_by or "") for part in found.parts]
        print_table(["FILE", "ORIGIN", "BYTES", "IMPORTED BY"], rows, empty="No memory files.")
    else:
        if not found.parts:
            say("No memory files.", err=True)
        for part in found.parts:
            say(f"# {part.path} ({part.origin}, {part.size} bytes)\n\n{part.text.rstrip()}\n")
    for one in found.problems:
        say(f"serena-central: {one}", err=True)
