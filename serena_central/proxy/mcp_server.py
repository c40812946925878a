"""`serena-mcp-server`: the command that existing configurations name. Starts a proxy as `serena-proxy` does. Starts a
proxy as `serena-proxy` does.

It takes the flags that are usual there, says which of them mean nothing here, and hands `--standalone` over to another
program: one process, no server beside it.
"""

import argparse
import os
import sys

from serena_central.proxy.main import parser, print_config, proxy_stdio

DESCRIPTION = """\
An MCP server over stdio: it connects the client to this user's serena-central server, which
is started if none is running. With --standalone, everything runs in this process and ends with it."""

EPILOG = """\
examples:
  serena-mcp-server                                for most clients
  serena-mcp-server --project ~/src/app --context ide
  serena-mcp-server --standalone                   without a background process

Other flags of Serena's start-mcp-server are accepted and ignored; `serena-central config show` lists the settings."""


def main() -> None:
    """The console script."""
    made = parser("serena-mcp-server")
    made.description, made.epilog = DESCRIPTION, EPILOG
    made.add_argument("--project-file", dest="project", help=argparse.SUPPRESS)
    made.add_argument("--transport", default="stdio", metavar="stdio", help="the transport: stdio only")
    made.add_argument("--standalone", action="store_true", help="run everything in this process, over stdio")
    arguments = sys.argv[1:]
    if arguments[:1] == ["start-mcp-server"]:
        arguments = arguments[1:]
    asked, unknown = made.parse_known_args(arguments)
    if asked.transport != "stdio":
        made.error("--transport must be stdio. For HTTP, all clients share one server: serena-central serve")
    if unknown:
        print(f"serena-mcp-server: ignored unsupported flags: {' '.join(unknown)}", file=sys.stderr)
    if asked.print_config:
        print_config("serena_central.proxy.mcp_server", arguments)
    elif asked.standalone:
        _become_standalone(asked)
    else:
        proxy_stdio(asked)


def _become_standalone(asked: argparse.Namespace) -> None:
    """Replaces this process by the standalone program; stdin, stdout and the process id stay."""
    about = [f"--{name}={value}" for name in ("project", "context") if (value := getattr(asked, name))]
    about += [f"--mode={mode}" for mode in asked.mode]
    os.execv(sys.executable, [sys.executable, "-I", "-m", "serena_central.cli.standalone", *about])


if __name__ == "__main__":
    main()
