"""`serena-central mcp login` and `logout`: a person's login at a remote MCP server.

Imported by those commands alone: the MCP SDK takes most of a second.
"""

import webbrowser
from functools import partial

import anyio

from serena_central.cli.output import print_json, say
from serena_central.core.places import Places
from serena_central.hub.oauth import TokenFile, log_in_at


def log_in(name: str, url: str, kind: str, *, browser: bool, timeout_s: float, as_json: bool) -> None:
    """Waits for the person; prints what came of it.

    Raises:
        SerenaCentralError: nobody logged in, or the server refused it.
    """

    def show(address: str) -> None:
        say(f"Log in here: {address}", err=as_json)
        if browser:
            webbrowser.open(address)

    tokens = TokenFile(Places.of_user().logins, url)
    before = tokens.kept()
    anyio.run(partial(log_in_at, name, url, kind, tokens, show, timeout_s))
    if as_json:
        print_json({"name": name, "logged_in": tokens.kept() not in (None, before), "file": str(tokens.path)})
    elif tokens.kept() in (None, before):
        say(f"{name} asks for no login.")
    else:
        say(f"Logged in at {name}. The tokens are in {tokens.path}; `serena-central mcp logout {name}` removes them.")


def log_out(name: str, url: str, *, as_json: bool) -> None:
    removed = TokenFile(Places.of_user().logins, url).remove()
    if as_json:
        print_json({"name": name, "removed": removed})
    else:
        say(f"The tokens for {name} are removed." if removed else f"There is no login at {name}.")
