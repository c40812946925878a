"""The command line `serena-central`: one module per command, imported when its command is run.

How commands end, and with which exit codes, is in `endings`.
"""

import importlib
import signal
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from serena_central.cli.exits import EXIT_CODES, end_with_code
from serena_central.core.errors import ConfigError
from serena_central.core.paths import expanded
from serena_central.standalone.home import NO_HOME_FOLDER, user_home
from serena_central.standalone.private import NotPrivate, is_loose, restrict_umask, secure
from serena_central.standalone.streams import open_missing_streams

COMMANDS = {
    "serve": "Run the server in the foreground.",
    "stop": "Stop the running server.",
    "restart": "Restart the server; sessions are kept.",
    "service": "Start the server at login (systemd, launchd).",
    "logs": "Show the server's log.",
    "status": "Show the server and its language servers.",
    "dashboard": "Open the dashboard in the browser.",
    "connect": "Connect clients: Claude Code, Codex, Gemini, Cursor, VS Code and others.",
    "disconnect": "Disconnect clients.",
    "sessions": "List sessions.",
    "users": "Add, list, rotate and revoke the users of a team.",
    "kill": "Terminate a session.",
    "resume": "Resume a session that a hook has halted.",
    "projects": "List projects.",
    "history": "List edits.",
    "undo": "Undo an edit.",
    "transcripts": "List sessions of coding agents, and resume, keep or delete their transcripts.",
    "blame": "Show which conversation of a coding agent wrote a line.",
    "usage": "Show tokens and cost of coding agents, from their transcripts.",
    "call": "Call a tool.",
    "hook": "Install hooks that point coding agents from text search to these tools.",
    "hooks": "List, check and try the hooks of the settings, and show their runs.",
    "graph": "Show the dependency graph: cycles, layers, hot spots.",
    "validate": "Find unused symbols and broken references.",
    "trust": "Trust a repository: let it name programs and have its code executed.",
    "config": "Show or create the settings.",
    "claude": "Show, check and change settings, rules and memory in Claude Code's format.",
    "task": "Run sub-agents, and list, show and cancel their tasks.",
    "waves": "Check, run, show, resume and undo plans: waves of tasks.",
    "agents": "List, show and check definitions of agents.",
    "mcp": "List, add, see and call the MCP servers of all configuration files.",
    "languages": "List languages and their language servers.",
    "warm": "Start language servers and fill indexes before they are needed.",
    "superrepo": "Propose a super-repo's settings from its submodules and workspaces.",
    "route": "Show which module of a super-repo a description routes to.",
    "node": "Offer this machine's projects to a cluster.",
    "cluster": "Show a cluster's nodes and project hosts, and move them.",
    "completion": "Print a shell completion script for commands and tools.",
    "doctor": "Check what is installed and what is missing.",
}
"""Command → help line: enough for `--help` without importing any command."""

ON_WINDOWS = (
    "The server runs on Linux and macOS; on Windows, run it in WSL. `serena-proxy --url` connects to it from Windows."
)

_NEVER_MENDS = ("serve", "doctor")
"""The server fixes the permissions of its folder itself and logs that; the doctor changes nothing."""


class _Lazy(click.Group):
    """Imports a command's module when it is asked for: `--help` and completion stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if sys.platform == "win32":
            raise click.ClickException(ON_WINDOWS)
        module: Any = importlib.import_module(f"serena_central.cli.{cmd_name}")
        # Only now: an exception in a callback of the import system is dropped, and the Ctrl-C with it.
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return module.command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        known = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return known + click.Command.shell_complete(self, ctx, incomplete)


@click.command(
    cls=_Lazy,
    epilog="Example: serena-central serve --open\n\n" + EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="serena-central", prog_name="serena-central")
def cli() -> None:
    """One MCP server per dev box: many agents, isolated sessions, one shared language server per project."""
    if not expanded("~").is_absolute():
        raise ConfigError("HOME", NO_HOME_FOLDER)
    if click.get_current_context().invoked_subcommand not in _NEVER_MENDS:
        _close_home()


def main() -> None:
    """The console script."""
    open_missing_streams()
    restrict_umask()
    end_with_code("serena-central", lambda: cli.main(prog_name="serena-central", standalone_mode=False))


def serve_main() -> None:
    """`serena-server`: another name of `serena-central serve`."""
    sys.argv[1:1] = ["serve"]
    main()


def _close_home() -> None:
    """The first process that finds the folder accessible to others makes it private."""
    home = user_home().folder
    try:
        if is_loose(home):
            click.echo(f"serena-central: {secure(home)}", err=True)
    except NotPrivate as error:
        raise ConfigError("SERENA_CENTRAL_HOME", str(error)) from error
