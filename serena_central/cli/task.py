"""`serena-central task`: runs sub-agents by the running server, and shows what they did."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import Finite
from serena_central.cli.output import age, json_option, json_text, print_json, print_table, say, span
from serena_central.cli.remote import Remote, named

TASKS = "/api/v1/tasks"

WAIT_S = 30
"""Of one request; the command asks until the task is over."""

LINES = 1000
POLL_S = 0.3
INSTRUCTION_CHARS = 60


@click.group(epilog="Examples: serena-central task run 'Explain the cart' --agent reviewer    serena-central task list")
def command() -> None:
    """Run sub-agents: each task has a session of its own, and the tools of its agent."""


@command.command(
    epilog="Example: serena-central task run 'Find unused helpers in src/' --agent reviewer --max-usd 0.50"
)
@click.argument("instruction")
@click.option("--agent", default="", help="An agent of `serena-central agents list`.")
@click.option("--project", default="", help="Name or root; else the folder you are in.")
@click.option("--runner", default="", help="claude-code, codex, gemini or messages; else as the settings say.")
@click.option("--model", default="", help="As the runner names it.")
@click.option(
    "--isolation", type=click.Choice(["none", "worktree"]), default=None, help="worktree: in a git worktree of its own."
)
@click.option("--timeout", "timeout_s", type=Finite(0, min_open=True), help="Seconds that it may run.")
@click.option("--max-tokens", type=int, help="Tokens that it may use.")
@click.option("--max-usd", type=Finite(0, min_open=True), help="Dollars that it may cost.")
@click.option(
    "--resume",
    default="",
    metavar="SESSION",
    help="Go on with the conversation of a task or session (runner messages).",
)
@click.option("--new", is_flag=True, help="With --resume: in a session of its own; the other one stays as it is.")
@click.option("--no-cleanup", is_flag=True, help="Keep its transcript whatever its age.")
@click.option("--background", is_flag=True, help="Print its id and do not wait.")
@json_option
def run(*, background: bool, as_json: bool, **asked: Any) -> None:
    """Run a task and print its result. INSTRUCTION - is read from stdin. Ctrl-C cancels it."""
    if asked["instruction"] == "-":
        asked["instruction"] = sys.stdin.read()
    remote = Remote()
    found = remote.post(TASKS, {name: value for name, value in asked.items() if value not in (None, "", False)})
    if not background:
        try:
            found = waited(remote, found)
        except KeyboardInterrupt:
            remote.post(f"{_path(found['id'])}/cancel")
            raise
    _show_result(found, as_json=as_json, background=background)


def waited(remote: Remote, task: dict[str, Any]) -> dict[str, Any]:
    """The task when it is over."""
    while task["state"] in ("queued", "running"):
        task = remote.get(_path(task["id"]), wait_s=WAIT_S)
    return task


def _show_result(task: dict[str, Any], *, as_json: bool, background: bool) -> None:
    if as_json:
        print_json(task)
    elif background:
        say(task["id"])
    else:
        if task["text"]:
            say(task["text"])
        for _, words in worktree_lines(task["verified"]):
            say(f"serena-central: task {task['id']}: {words}", err=True)
        if task["error"]:
            say(f"serena-central: task {task['id']}: {task['state']}: {task['error']}", err=True)
    if not background and task["state"] != "done":
        raise Unsuccessful


@command.command("list", epilog="Example: serena-central task list --state running")
@click.option("--state", help="Only tasks in this state: queued, running, done, failed, cancelled, 'over budget'.")
@click.option("--project", help="Only tasks in the project of this name or root.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@json_option
def list_tasks(*, state: str | None, project: str | None, limit: int, as_json: bool) -> None:
    """List tasks, the newest first."""
    found = Remote().get(TASKS, state=state, project=project, limit=limit)["tasks"]
    if as_json:
        print_json(found)
        return
    print_table(
        ["TASK", "STATE", "AGENT", "RUNNER", "STARTED", "TOOK", "COST", "PARENT", "INSTRUCTION"],
        [
            (
                one["id"],
                one["state"] if one["position"] is None else f"queued, {one['position']}.",
                one["agent"] or "-",
                one["runner"],
                age(one["started_at"]),
                span(_took(one)),
                _cost(one),
                one["parent"] or "-",
                " ".join(one["instruction"].split())[:INSTRUCTION_CHARS],
            )
            for one in found
        ],
        empty="No tasks of these." if state or project else "No tasks. Run one: serena-central task run 'INSTRUCTION'",
    )


@command.command(epilog="Example: serena-central task show t-1f2e3d4c5b6a")
@click.argument("task")
@json_option
def show(task: str, *, as_json: bool) -> None:
    """Show one task: its result, what it cost, and what the server saw of its work."""
    found = Remote().get(_path(task))
    if as_json:
        print_json(found)
        return
    facts = {
        "state": found["state"] if found["position"] is None else f"queued, place {found['position']}",
        "agent": found["agent"],
        "runner": " ".join(filter(None, (found["runner"], found["model"]))),
        "project": found["project_root"],
        "parent": found["parent"],
        "session": found["session"],
        "started": f"{age(found['started_at'])} ago" if found["started_at"] else None,
        "took": span(_took(found)) if found["started_at"] else None,
        "tokens": ", ".join(f"{name} {count}" for name, count in found["usage"].items() if count),
        "cost": _cost(found),
        "error": found["error"],
    }
    for name, value in facts.items():
        if value:
            say(f"{name:9}{value}")
    say(f"\n{found['instruction']}")
    if found["text"]:
        say(f"\n{found['text']}")
    if found["verified"]:
        say("\nSeen by the server:")
        for name, words in seen_lines(found["verified"]):
            say(f"  {name:18}{words}")


def seen_lines(verified: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the server saw of a task's work, as names and values."""
    if "calls" in verified:
        yield "calls", ", ".join(f"{name} {count}" for name, count in verified["calls"].items()) or "none"
    for name in ("edits", "files", "symbols", "changed_otherwise"):
        if verified.get(name):
            yield name.replace("_", " "), ", ".join(verified[name])
    for name in ("new_errors", "broken_references", "fixed_errors", "undated"):
        for one in verified.get(name, ()):
            yield name.replace("_", " "), f"{one['path']}:{one['line']}: {one['message']}"
    for one in verified.get("tests", ()):
        yield "tests", f"{one['command']}: exit code {'not known' if one['exit_code'] is None else one['exit_code']}"
    yield from worktree_lines(verified)
    for note in (*verified.get("notes", ()), *verified.get("caveats", ())):
        yield "note", note


def worktree_lines(verified: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where the work of a task is that had a worktree, as a name and a value."""
    worktree = verified.get("worktree", {})
    if worktree.get("kept") and "path" in worktree:  # older records of a failure have no place
        yield "worktree", f"its work is in {worktree['path']}, on the branch {worktree['branch']}"
    if note := worktree.get("note"):
        yield "note", note


@command.command(epilog="Example: serena-central task cancel t-1f2e3d4c5b6a")
@click.argument("task")
@json_option
def cancel(task: str, *, as_json: bool) -> None:
    """Cancel a task and all tasks that it started; their processes are gone when this returns."""
    found = Remote().post(f"{_path(task)}/cancel")
    if as_json:
        print_json(found)
    else:
        say(f"{found['id']}: {found['state']}")


@command.command(epilog="Example: serena-central task compact t-1f2e3d4c5b6a")
@click.argument("task")
@json_option
def compact(task: str, *, as_json: bool) -> None:
    """Have a running task's conversation summarised before its next request (runner messages)."""
    found = Remote().post(f"{_path(task)}/compact")
    if as_json:
        print_json(found)
    else:
        say(f"{found['id']}: will be compacted before its next request")


@command.command(
    epilog="Examples: serena-central task logs t-1f2e3d4c5b6a    serena-central task logs t-1f2e3d4c5b6a -f"
)
@click.argument("task")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the task is over.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def logs(task: str, *, follow: bool, as_json: bool) -> None:
    """Show what a task wrote and called."""
    remote, after = Remote(), 0
    while True:
        over = not follow or remote.get(_path(task))["state"] not in ("queued", "running")
        lines = remote.get(f"{_path(task)}/output", after=after, limit=LINES)["lines"]
        for one in lines:
            clock = time.strftime("%H:%M:%S", time.localtime(one["at"]))
            say(json_text(one) if as_json else f"{clock} {one['kind']:5} {one['text']}")
        after = lines[-1]["number"] if lines else after
        if len(lines) < LINES:
            if over:
                return
            time.sleep(POLL_S)


def _path(task: str) -> str:
    return named(TASKS, task)


def _took(task: dict[str, Any]) -> float | None:
    if task["started_at"] is None:
        return None
    return (task["ended_at"] or time.time()) - task["started_at"]


def _cost(task: dict[str, Any]) -> str:
    if task["cost_usd"] is None:
        return "-"
    return f"${task['cost_usd']:.4f}{' (estimated)' if task['cost_source'] == 'estimated' else ''}"
