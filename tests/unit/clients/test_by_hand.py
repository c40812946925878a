"""What a person pastes into clients that `connect` can't write to."""

import json

import yaml

from serena_central.clients.by_hand import BY_HAND
from serena_central.clients.client import Proxy

PROXY = Proxy("user", 'C:\\Program Files\\"odd"\\serena-proxy.exe', {"SERENA_CENTRAL_HOME": "/odd: home # here"})


def test_the_dialog_of_jetbrains_takes_json() -> None:
    pasted = json.loads(BY_HAND["jetbrains"].text(PROXY))
    entry = {"command": PROXY.command, "args": [], "env": PROXY.environment}
    assert pasted == {"mcpServers": {"serena": entry}}


def test_goose_takes_yaml() -> None:
    pasted = yaml.safe_load(BY_HAND["goose"].text(PROXY))
    (entry,) = pasted["extensions"].values()
    assert (entry["type"], entry["cmd"], entry["args"], entry["envs"]) == (
        "stdio",
        PROXY.command,
        [],
        PROXY.environment,
    )
    assert entry["enabled"] is True
