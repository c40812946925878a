"""`serena-central waves`: checks plans, runs them by the running server, shows, resumes and undoes them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from serena_central.agents.plans.plan import BadPlan, Plan, parse_plan
from serena_central.agents.plans.plan import schema as plan_schema
from serena_central.cli.exits import Unsuccessful, WrongSettings
from serena_central.cli.given import check_is_reachable
from serena_central.cli.output import age, json_option, print_json, print_table, say
from serena_central.cli.remote import BYTES, NoServer, Refused, Remote, named
from serena_central.cli.task import seen_lines
from serena_central.config.document import DocumentError, read_whole
from serena_central.core.errors import InvalidArguments
from serena_central.core.words import counted

PLANS = "/api/v1/plans"

WAIT_S = 30
"""Of one request; the command asks until the plan is over."""

PLAN_ID = re.compile(r"p-[0-9a-f]{12}")

LOOKED_AT = 200
"""The newest runs, among which one of a file is looked for."""

GOES_ON = ("running",)


@click.group(
    epilog="Examples: serena-central waves check plan.yml    serena-central waves run plan.yml    "
    "serena-central waves undo plan.yml --task parser"
)
def command() -> None:
    """Run plans: waves of tasks, with checks between them. PLAN is a file, the id of a run, or a plan's name."""


@command.command(epilog="Example: serena-central waves check plan.yml")
@click.argument("plan")
@click.option("--project", default="", help="Name or root, where the plan names none; else the folder you are in.")
@json_option
def check(plan: str, project: str, *, as_json: bool) -> None:
    """Check a plan file: problems with file and line; with a running server the order of its tasks, too."""
    text, read = _read(plan, as_json=as_json)
    try:
        found = Remote().post(f"{PLANS}/check", _body(plan, text, project))
    except NoServer:
        found = None
    except Refused as error:
        # Its agents, runner or references: the words name the place in the file.
        if as_json:
            print_json({"problems": [{"file": plan, "line": None, "key": "", "problem": str(error), "remedy": ""}]})
        else:
            say(f"serena-central: {error}", err=True)
        raise WrongSettings from error
    if as_json:
        print_json({"problems": [], **(found or {})})
        return
    say(f"{plan}: {counted(len(read.waves), 'wave')}, {counted(sum(len(one.tasks) for one in read.waves), 'task')}.")
    if found is None:
        say("No server is running: the order of tasks with targets is not shown.")
        return
    for one in found["order"]:
        say(f"{one['wave']}: {one['task']} runs after {one['after']}: {one['because']}.")
    for note in found["notes"]:
        say(f"Note: {note}")
    for line in found["commands"]:
        say(f"Runs{'' if found['allowed'] else ', if you allow it'}: {line}")


@command.command(epilog="Example: serena-central waves run refactoring.yml")
@click.argument("plan")
@click.option("--project", default="", help="Name or root, where the plan names none; else the folder you are in.")
@click.option("--allow-commands", is_flag=True, help="Run the commands of its checks without asking.")
@click.option("--background", is_flag=True, help="Print its id and do not wait.")
@json_option
def run(plan: str, project: str, *, allow_commands: bool, background: bool, as_json: bool) -> None:
    """Run a plan file and print what each wave came to. Ctrl-C cancels it."""
    text, _ = _read(plan, as_json=as_json)
    remote, body = Remote(), _body(plan, text, project)
    checked = remote.post(f"{PLANS}/check", body)
    if not checked["allowed"]:
        _ask(checked["commands"], allowed=allow_commands)
        body["commands"] = checked["digest"]
    _follow(remote, remote.post(PLANS, body), background=background, as_json=as_json)


@command.command(epilog="Example: serena-central waves resume refactoring.yml")
@click.argument("plan")
@click.option("--background", is_flag=True, help="Do not wait.")
@click.option("--keep-edits", is_flag=True, help="Go on although edits of an interrupted transaction can't be undone.")
@json_option
def resume(plan: str, *, background: bool, keep_edits: bool, as_json: bool) -> None:
    """Go on with what is not done, or was undone: after the server's end, a failed check, or a cancelled run."""
    remote = Remote()
    found = remote.post(f"{_path(_run_of(remote, plan))}/resume", {"keep_edits": keep_edits})
    _follow(remote, found, background=background, as_json=as_json)


@command.command(epilog="Examples: serena-central waves approve p-1f2e3d4c5b6a    …approve p-1f2e3d4c5b6a --decline")
@click.argument("plan")
@click.option("--decline", is_flag=True, help="Stop the plan instead.")
@json_option
def approve(plan: str, *, decline: bool, as_json: bool) -> None:
    """Approve what a plan waits for."""
    remote = Remote()
    one = _run_of(remote, plan)
    found = remote.post(f"{_path(one)}/decision", {"approved": not decline})
    if as_json:
        print_json(found)
    else:
        say(f"{one}: {'declined' if decline else 'approved'}.")


@command.command("list", epilog="Example: serena-central waves list")
@click.option("--project", help="Only plans in the project of this name or root.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@json_option
def list_plans(*, project: str | None, limit: int, as_json: bool) -> None:
    """List runs of plans, the newest first."""
    found = Remote().get(PLANS, project=project, limit=limit)["plans"]
    if as_json:
        print_json(found)
        return
    print_table(
        ["RUN", "PLAN", "STATE", "WAVES", "STARTED", "COST", "FILE"],
        [
            (
                one["id"],
                one["name"],
                one["state"],
                f"{sum(wave['state'] == 'done' for wave in one['waves'])}/{len(one['waves'])}",
                age(one["created_at"]),
                f"${one['cost_usd']:.4f}",
                one["file"] or "-",
            )
            for one in found
        ],
        empty="No plans. Run one: serena-central waves run PLAN",
    )


@command.command(epilog="Example: serena-central waves show refactoring.yml")
@click.argument("plan")
@json_option
def show(plan: str, *, as_json: bool) -> None:
    """Show a run of a plan: waves, tasks, checks, and what the server saw."""
    remote = Remote()
    found = remote.get(_path(_run_of(remote, plan)))
    if as_json:
        print_json(found)
    else:
        _print(found, whole=True)


@command.command(epilog="Example: serena-central waves cancel p-1f2e3d4c5b6a")
@click.argument("plan")
@json_option
def cancel(plan: str, *, as_json: bool) -> None:
    """Cancel a plan and its tasks. What they edited stays; `waves undo` undoes it."""
    remote = Remote()
    found = remote.post(f"{_path(_run_of(remote, plan))}/cancel")
    if as_json:
        print_json(found)
    else:
        say(f"{found['id']}: {found['state']}")


@command.command(epilog="Example: serena-central waves undo refactoring.yml --wave 2 --task parser")
@click.argument("plan")
@click.option("--wave", default="", help="Only this wave: its name or number.")
@click.option("--task", default="", help="Only this task: its name or number.")
@json_option
def undo(plan: str, wave: str, task: str, *, as_json: bool) -> None:
    """Undo the edits of a plan, of one of its waves, or of one task."""
    remote = Remote()
    chosen = {name: value for name, value in (("wave", wave), ("task", task)) if value}
    path = f"{_path(_run_of(remote, plan))}/undo"
    done = remote.post(f"{path}?{urlencode(chosen, errors=BYTES)}" if chosen else path)
    if as_json:
        print_json(done)
    else:
        say(f"Undone: {', '.join(done['undone']) or 'nothing'}.")
        for edit, why in done["refused"].items():
            say(f"serena-central: {edit} is not undone: {why}", err=True)
    if done["refused"]:
        raise Unsuccessful


@command.command(epilog="Example: serena-central waves schema > plan.schema.json")
@json_option
def schema(*, as_json: bool) -> None:
    """Print the JSON schema of plan files, for editors; always JSON."""
    del as_json
    print_json(plan_schema())


def _read(plan: str, *, as_json: bool) -> tuple[str, Plan]:
    try:
        check_is_reachable(Path(plan))
        text = read_whole(Path(plan))
    except DocumentError as error:
        raise InvalidArguments(f"{plan} {error.problem}.") from error
    if text is None:
        raise InvalidArguments(f"There is no file {plan}.")
    try:
        return text, parse_plan(text, plan)
    except BadPlan as error:
        if as_json:
            found = [
                {
                    "file": one.place.file,
                    "line": one.place.line,
                    "key": one.key,
                    "problem": one.text,
                    "remedy": one.remedy,
                }
                for one in error.problems
            ]
            print_json({"problems": found})
        else:
            for one in error.problems:
                say(str(one))
        raise WrongSettings from error


def _body(plan: str, text: str, project: str) -> dict[str, Any]:
    return {"text": text, "file": str(Path(plan).resolve()), "project": project}


def _ask(commands: list[str], *, allowed: bool) -> None:
    """A person's word on commands; raises InvalidArguments without one."""
    if allowed:
        return
    say("After its waves this plan runs:")
    for line in commands:
        say(f"  {line}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidArguments("Nobody has allowed these commands. Pass --allow-commands.")
    if not click.confirm("Run them?"):
        raise Unsuccessful


def _run_of(remote: Remote, plan: str) -> str:
    """The id of a run, of the newest one of a file or of a plan's name."""
    if PLAN_ID.fullmatch(plan):
        return plan
    check_is_reachable(Path(plan))
    file = str(Path(plan).resolve())
    for one in remote.get(PLANS, limit=LOOKED_AT)["plans"]:
        if plan == one["name"] or file == one["file"]:
            return one["id"]
    raise InvalidArguments(f"No run of {plan} is known. `serena-central waves list` lists them.")


def _follow(remote: Remote, found: dict[str, Any], *, background: bool, as_json: bool) -> None:
    if not background:
        try:
            found = _waited(remote, found)
        except KeyboardInterrupt:
            remote.post(f"{_path(found['id'])}/cancel")
            raise
    if as_json:
        print_json(found)
    elif background:
        say(found["id"])
    else:
        _print(found, whole=False)
    if not background and found["state"] not in ("done", "waiting"):
        raise Unsuccessful


def _waited(remote: Remote, found: dict[str, Any]) -> dict[str, Any]:
    """The plan when it is over, or waits for a person."""
    while found["state"] in GOES_ON:
        found = remote.get(_path(found["id"]), wait_s=WAIT_S)
    return found


def _print(found: dict[str, Any], *, whole: bool) -> None:
    say(f"{found['id']}  {found['name']}: {found['state']}, ${found['cost_usd']:.4f}")
    if found["says"]:
        say(f"  {found['says']}")
    if found["state"] == "waiting":
        say(f"  serena-central waves approve {found['id']}    or with --decline")
    for number, wave in enumerate(found["waves"], 1):
        say(f"\nWave {number} {wave['name']}: {wave['state']}{', a transaction' if wave['transaction'] else ''}")
        for line in _lines_of(wave, whole=whole):
            say(f"  {line}")


def _lines_of(wave: dict[str, Any], *, whole: bool) -> Iterator[str]:
    for task in wave["tasks"]:
        yield from _lines_of_task(task, whole=whole)
    for check in wave["checks"]:
        yield f"check {check['name']}: {check['state']}{': ' + check['says'] if check['says'] else ''}"
    if whole and wave["verified"]:
        yield "Seen by the server:"
        yield from (f"  {name:18}{words}" for name, words in seen_lines(wave["verified"]) if name != "calls")
    if wave["undone"]:
        yield f"undone: {', '.join(wave['undone'])}"
    yield from (f"not undone: {edit}: {why}" for edit, why in wave["not_undone"].items())
    yield from (f"Note: {note}" for note in wave["notes"])
    if wave["results_file"]:
        yield wave["results_file"]


def _lines_of_task(task: dict[str, Any], *, whole: bool) -> Iterator[str]:
    yield f"{task['name']}  {task['state']}  {task['task']}"
    yield from (f"  after {after}: {why}" for after, why in task["after"].items())
    if task["error"]:
        yield f"  {task['error']}"
    if whole and task["text"]:
        yield "  " + task["text"].replace("\n", "\n    ")
    if task["undone"]:
        yield f"  undone: {', '.join(task['undone'])}"


def _path(plan: str) -> str:
    return named(PLANS, plan)
