"""docs/connecting.md, made of the clients themselves: `python -m serena_central.clients.page`."""

import sys
from pathlib import Path

from serena_central.clients.client import Client, Machine, Proxy, Server
from serena_central.clients.forms import Entry
from serena_central.clients.table import CLIENTS
from serena_central.clients.toml_form import TomlForm

READER = Machine(Path("~"), "linux", {})
URL = "http://127.0.0.1:24280/mcp"
PROXY = Proxy("user", "/path/to/serena-proxy", {})
SERVER = Server("user", URL, "<token>", "/path/to/serena-proxy --print-headers")
SHARED_SERVER = Server("project", URL, None, "serena-proxy --print-headers")

HEAD = """\
# Connecting clients

Made by `make docs` from what `serena-central connect` writes; change it there.

```
serena-central connect claude-code codex     # in your own configuration
serena-central connect cursor --dry-run      # shows what would change
serena-central connect vscode --scope project    # in the project's file, to be shared
serena-central connect --list                # what is configured where, and whether it is current
serena-central disconnect codex
```

Only our entry (`serena`) in a file changes; everything else, comments included, stays byte for byte. A copy of the
file as it was is kept in `backups/` in the server's home. A malformed or read-only file is left alone, and named with
the line. After `disconnect` the file is what it was, if nothing else changed it meanwhile.

By **stdio** the client starts [serena-proxy](proxy.md): each window is a session of its own, the server is started
when none runs, and a restart goes unnoticed. By **HTTP** (`--http`) the client connects by itself: no process for each
window, but the server must run (`serena-central serve --daemon`, `serena-central service install`). Without a flag,
each client is connected as suits it best; in a project's file always by stdio.

A **project's file** may be committed, so it holds neither the token nor a path of yours: the proxy is named without its
folder and must be on the PATH of whoever uses it. With `--http` it refers to `SERENA_TOKEN`, which has to be in the
client's environment: `export SERENA_TOKEN="$(cat "$(serena-central config token-file)")"`. Your own files with a
token are readable by you alone. The proxy, the command line and the hooks have the server prove itself before they send
the token; a client that connects by HTTP can't, and sends it to whatever listens at that port.
"""

TAIL = """\
## Any other client

By stdio: the command `serena-proxy`, without arguments. By HTTP: `http://127.0.0.1:24280/mcp` with these headers:

| header | value |
|---|---|
| `Authorization` | `Bearer <token>`; `serena-central config token-file` says where it is |
| `X-Serena-Project` | the folder you work in: calls that name no project mean the repository around it |
| `X-Serena-Session` | an id of your own for each window; else windows that speak MCP 2026-07-28 share a session |

`serena-proxy --print-headers` prints all of them as JSON, with a new session each time.

## Keeping the server running

`serena-central serve --daemon` runs it in the background, `serena-central service install` at each login (systemd,
launchd). `serena-central logs -f` follows its log, `--session ID` for one session.

Upgrade: `pip install --upgrade serena-central && serena-central restart`. Sessions, with their projects and modes,
go on; clients need do nothing.
"""


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join([HEAD, *(_section(client) for client in CLIENTS.values()), TAIL])


def _section(client: Client) -> str:
    files = [f"`{file}`" for file in client.user_files(READER)]
    where = f"Files: {' or '.join(files)}"
    if client.project_files:
        where += f"; in a project {' or '.join(f'`{name}`' for name in client.project_files)}"
    usual = client.http(SERVER) if client.http and client.usual == "http" else client.stdio(PROXY)
    parts = [
        f"## {client.title}\n",
        f"`serena-central connect {client.name}`. {client.about}".rstrip() + "\n",
        f"{where}.\n",
        _block(client, usual),
        *_others(client),
        f"{client.then}\n",
    ]
    return "\n".join(parts)


def _others(client: Client) -> list[str]:
    if client.http is None:
        return []
    other, entry = ("--stdio", client.stdio(PROXY)) if client.usual == "http" else ("--http", client.http(SERVER))
    shown = [f"With `{other}`:\n", _block(client, entry)]
    if client.project_files and client.http_by_reference:
        shown += ["With `--http --scope project`:\n", _block(client, client.http(SHARED_SERVER))]
    return shown


def _block(client: Client, entry: Entry) -> str:
    language = "toml" if isinstance(client.form, TomlForm) else "json"
    return f"```{language}\n{client.form.put('', (*client.servers, 'serena'), entry)}```\n"


if __name__ == "__main__":
    sys.stdout.write(page())
