"""`serena-hook`: what clients run at their hooks. A fault of ours never fails a client's tool: whatever goes wrong, the
answer is silence and exit code 0, and the log says why.

What only some runs need is imported when they do: a client waits for each of them.
"""

import argparse
import json
import os
import sys
import time
from typing import Any, NoReturn, cast

from serena_central.hook.code import SOURCE_FOLDERS
from serena_central.hook.enforce import MODES, decide
from serena_central.hook.log import log
from serena_central.hook.payload import DIALECTS, Json, event_of, tool_use_of
from serena_central.standalone.home import Home, Unusable, user_home
from serena_central.standalone.private import NotPrivate, is_loose, restrict_umask, secure
from serena_central.standalone.streams import open_missing_streams

LARGEST_BYTES = 8 * 1024 * 1024
MODE_VARIABLE = "SERENA_HOOK_MODE"
GATE_EVENTS = (
    *("PreToolUse", "PostToolUse", "UserPromptSubmit", "Notification", "Stop", "SubagentStop", "PreCompact"),
    *("SessionStart", "SessionEnd"),
)

SHOWN_CHARACTERS = 200
"""In the log, of what others wrote."""

DESCRIPTION = "Hooks for coding agents that point them from text search to the tools of serena-central."
EPILOG = """\
environment:
  SERENA_HOOK_MODE        deny, nudge, ask or off, in place of --mode
  SERENA_HOOK_WAIT_MS     how long to wait for the server (250)
  SERENA_CENTRAL_HOME     the server's folder, if not the usual one"""


class Misused(Exception):
    """Arguments that a hook does not have. A client would take argparse's exit code 2 for "block this tool"."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Misused(f"{message}. {self.format_usage().strip()}")


def parser(program: str) -> argparse.ArgumentParser:
    made = _Parser(
        prog=program, description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    enforce = commands.add_parser(
        "enforce", help="before a tool runs: block text searches for code and name the tool to call"
    )
    enforce.add_argument("--mode", choices=MODES, default="deny", help="block all, every third, ask the user, or none")
    enforce.add_argument("--source-folder", metavar="NAME", action="append", help="a source folder; repeatable")
    start = commands.add_parser("session-start", help="when a conversation starts: warm up and describe the tools")
    end = commands.add_parser("session-end", help="when a conversation ends: notify the server")
    for command in (enforce, start, end):
        command.add_argument(
            "--client", choices=tuple(DIALECTS), default="claude-code", help="the client that runs the hook"
        )
    gate = commands.add_parser("gate", help="run the hooks of the settings for the client's own tools")
    gate.add_argument("event", choices=GATE_EVENTS)
    gate.add_argument("--client", choices=tuple(DIALECTS), default="claude-code", help="the client that runs the hook")
    warm = commands.add_parser("warm", help="have the server warm up a project once it is running")
    warm.add_argument("folder", metavar="DIR")
    return made


def main() -> None:
    """The console script."""
    run("serena-hook", sys.argv[1:])


def run(program: str, arguments: list[str]) -> None:
    """Reads the client's JSON from stdin, answers on stdout."""
    open_missing_streams()
    restrict_umask()
    try:
        home = user_home()
    except Unusable as error:  # which can't be logged: the client's tool runs
        print(f"{program}: {error}", file=sys.stderr)
        return
    try:
        asked = parser(program).parse_args(arguments)
        if is_loose(home.folder) and (repaired := secure(home.folder)):
            log(home, repaired)
        if asked.command == "warm":
            from serena_central.hook.session import warm_up

            warm_up(asked.folder, home)
            return
        answer = _answer(asked, home, _said())
        if answer is not None:
            print(json.dumps(answer), flush=True)
    except NotPrivate as error:
        print(f"{program}: {error}", file=sys.stderr)
    except Misused as error:
        log(home, f"{' '.join(arguments)[:SHOWN_CHARACTERS]}: {error}")
        print(f"{program}: {error}", file=sys.stderr)
    except Exception:  # noqa: BLE001 - the border of a hook: the client's tool must run
        import traceback

        log(home, traceback.format_exc())


def _said() -> Json:
    """Raises ValueError: no JSON object."""
    said: Any = json.loads(sys.stdin.buffer.read(LARGEST_BYTES))
    if not isinstance(said, dict):
        raise ValueError("the client's input is not a JSON object")
    return cast("Json", said)


def _answer(asked: argparse.Namespace, home: Home, said: Json) -> Json | None:
    if asked.command == "gate":
        from serena_central.hook.gate import gate

        return gate(asked.client, asked.event, said, home)
    dialect = DIALECTS[asked.client]
    if asked.command == "enforce":
        named = os.environ.get(MODE_VARIABLE, "")
        if named and named not in MODES:
            log(
                home,
                f"{MODE_VARIABLE}={named[:SHOWN_CHARACTERS]} is not one of {', '.join(MODES)}; {asked.mode} is used",
            )
        mode: str = named if named in MODES else asked.mode
        folders = asked.source_folder or SOURCE_FOLDERS
        verdict = decide(tool_use_of(said), home, mode=mode, now=time.time(), folders=folders)
        if verdict is None:
            return None
        return dialect.stop(verdict.verdict if dialect.can_ask else "deny", verdict.reason)

    from serena_central.hook.session import begin, end

    if asked.command == "session-start":
        return dialect.tell(begin(event_of(said), home))
    end(event_of(said), home)
    return None
