"""`serena-central hooks`: the hooks that hold in a project, what is wrong with them, a trial, the log of their runs.

`serena-central hook` is another thing: it puts this product's own hooks into clients.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import click
import msgspec

from serena_central.claude_config.checks import EVENTS
from serena_central.claude_config.effective import Effective
from serena_central.cli.exits import WrongSettings
from serena_central.cli.given import GivenPath, json_given
from serena_central.cli.hook_uses import use_of
from serena_central.cli.hooks_replay import replay
from serena_central.cli.output import json_option, print_json, print_table, printable
from serena_central.cli.trust import project_root
from serena_central.config.load import load_server_config
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.core.words import counted
from serena_central.gates import log
from serena_central.gates.commands import interpreter_trouble
from serena_central.gates.conditions import EDITED_BY_OTHERS, SYMBOL, holds, parts_of
from serena_central.gates.engine import Asked, Means, matching, run_hooks
from serena_central.gates.events import CheckEnd, GateEvent, Ran
from serena_central.gates.listing import ListedHook, listed
from serena_central.gates.matching import is_rule
from serena_central.gates.rules import Hook, Rules, rules_of
from serena_central.projects.root_settings import RootSettings
from serena_central.projects.trust.trust_decisions import Standing

EXAMPLES = """\b
Examples:
  serena-central hooks list
  serena-central hooks check
  serena-central hooks test PreToolUse --tool execute_shell_command --input '{"command": "git commit -m x"}'
  serena-central hooks log --limit 50
  serena-central hooks replay 'Bash(git push:*)' --since 7d
"""

folder_option = click.option(
    "--project", "folder", type=GivenPath(path_type=Path), help="The project; else the one around the current folder."
)


@click.group(epilog=EXAMPLES)
def command() -> None:
    """Show, check and try the hooks that run around calls in a project."""


command.add_command(replay)


@command.command("list", epilog="Example: serena-central hooks list --project ~/src/app")
@folder_option
@json_option
def list_hooks(*, folder: Path | None, as_json: bool) -> None:
    """List the hooks of all settings, in the order in which they run, and why any of them are held back."""
    root, found, standing = _settings_of(folder)
    hooks = listed(found, standing) if found is not None else []
    held_back = sum(not hook.active for hook in hooks)
    if as_json:
        print_json({"root": str(root), "hooks": msgspec.to_builtins(hooks), "held_back": held_back})
        return
    print_table(
        ["EVENT", "MATCHER", "IF", "TYPE", "RUNS", "WHERE", *(["HELD BACK"] if held_back else [])],
        [tuple(map(printable, _row(hook, reason=bool(held_back)))) for hook in hooks],
        empty="No hooks run here.",
    )
    if held_back:
        click.echo(_held_back(held_back, root))


@command.command("check", epilog="Example: serena-central hooks check")
@folder_option
@json_option
def check(*, folder: Path | None, as_json: bool) -> None:
    """Say what is wrong with the hooks of a project. Ends with 2 if anything is."""
    root, found, rules = _of(folder)
    problems = [str(one) for one in found.problems if one.key.startswith("hooks")] if found is not None else []
    for event in EVENTS:
        for hook in rules.of(event):
            problems += _problems(hook, root)
    if as_json:
        print_json({"root": str(root), "problems": problems, "held_back": rules.held_back})
    else:
        for one in problems:
            click.echo(printable(one))
        if rules.held_back:
            click.echo(_held_back(rules.held_back, root))
        if not problems:
            click.echo("No problems.")
    if problems:
        raise WrongSettings


@command.command("test", epilog="Example: serena-central hooks test PreToolUse --tool create_text_file")
@click.argument("event", type=click.Choice(EVENTS))
@click.option("--tool", "tool_name", default="", help="A tool of this server, or of the format: Bash, Edit.")
@click.option("--input", "given", default="{}", help="The tool's arguments as JSON.")
@folder_option
@json_option
def test(*, event: str, tool_name: str, given: str, folder: Path | None, as_json: bool) -> None:
    """Run the hooks of EVENT as a call of --tool would. The tool itself does not run, nor do built-in checks."""
    root, found, rules = _of(folder)
    try:
        arguments = json_given(given)
    except ValueError as error:
        raise click.BadParameter(f"--input is not JSON: {error}.") from error
    if not isinstance(arguments, dict):
        raise click.BadParameter("--input must be a JSON object.")
    use = use_of(tool_name, cast("dict[str, Any]", arguments), root) if tool_name else None
    happening = GateEvent(event, "test", root, use)
    matched = matching(rules.of(event), happening)
    home = found.locations.home if found is not None else Path.home()

    async def condition(asked: Asked) -> bool:
        return await holds(asked, home=home, decide=_undecided)

    outcome = anyio.run(run_hooks, matched, happening, Means(_unchecked, condition))
    checks = {one.hook.name for one in matched if one.hook.kind == "check"}
    outcome.ran = [one._replace(outcome="not made") if one.hook in checks else one for one in outcome.ran]
    if as_json:
        print_json(
            {
                "matched": [one.hook.name for one in matched],
                "runs": [one._asdict() for one in outcome.ran],
                "blocked": outcome.blocked or outcome.asks,
                "halted": outcome.halted,
                "context": outcome.context,
                "updated_input": outcome.updated,
            }
        )
        return
    print_table(
        ["OUTCOME", "EXIT", "MS", "HOOK", "SAYS"],
        [tuple(map(printable, _ran(one))) for one in outcome.ran],
        empty="No hook runs at this.",
    )
    for text in filter(None, (outcome.blocked, outcome.asks, outcome.halted, *outcome.context)):
        click.echo(printable(text))


@command.command("log", epilog="Example: serena-central hooks log --limit 50")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many runs.")
@folder_option
@json_option
def show_log(*, limit: int, folder: Path | None, as_json: bool) -> None:
    """Show the newest runs of hooks in a project, the newest first."""
    lines = log.newest(project_root(folder).resolve(), limit)
    if as_json:
        print_json(msgspec.to_builtins(lines))
        return
    print_table(
        ["TIME", "EVENT", "TOOL", "OUTCOME", "EXIT", "MS", "HOOK"],
        [
            tuple(
                printable(str(msgspec.structs.asdict(line)[key]))
                for key in ("time", "event", "tool", "outcome", "exit_code", "duration_ms", "hook")
            )
            for line in lines
        ],
        empty="No hook has run in this project.",
    )


def _held_back(number: int, root: Path) -> str:
    return (
        f"Held back: {counted(number, 'hook')} of the repository; `serena-central trust {root}` shows and allows them."
    )


def _of(folder: Path | None) -> tuple[Path, Effective | None, Rules]:
    root, found, standing = _settings_of(folder)
    return root, found, rules_of(found, standing) if found is not None else Rules({})


def _settings_of(folder: Path | None) -> tuple[Path, Effective | None, Standing]:
    root = project_root(folder).resolve()
    settings = RootSettings(load_server_config({}), Places.of_user())
    return root, settings.claude.of(root), settings.trust.standing(root)


async def _unchecked(_asked: Asked) -> CheckEnd:
    return CheckEnd(note="the server makes this check around a real call; it is not made here")


async def _undecided(_asked: Asked, _condition: str) -> bool:
    return True


def _problems(hook: Hook, root: Path) -> list[str]:
    said: list[str] = []
    for one in map(str.strip, parts_of(hook.condition)) if hook.condition else ():
        known = one == EDITED_BY_OTHERS or one.startswith((SYMBOL, "path(")) or is_rule(one) or one.isalnum()
        if not known:
            said.append(f"{hook.name}: the condition {one!r} is not known, and is taken as true")
    program = hook.action.split(maxsplit=1)[0] if hook.kind == "command" and hook.action.strip() else ""
    if program.startswith(("./", "/", "~/", "../")):
        path = root / expanded(program)
        if not path.exists():
            said.append(f"{hook.name}: there is no file {path}")
        elif not os.access(path, os.X_OK):
            said.append(f"{hook.name}: {path} is not executable: chmod +x {path}")
        elif trouble := interpreter_trouble(path):
            said.append(f"{hook.name}: {path} can't start. {trouble}")
    return said


def _row(hook: ListedHook, *, reason: bool) -> Sequence[str]:
    row = hook.event, hook.matcher or "*", hook.condition, hook.type, hook.runs, hook.place
    return (*row, hook.held_back) if reason else row


def _ran(one: Ran) -> Sequence[str]:
    code = "" if one.exit_code is None else str(one.exit_code)
    return one.outcome, code, f"{one.duration_ms:.0f}", one.hook, one.text[:200]
