"""A configuration with upstreams for tests: scripted ones, and the settings of a user that name them."""

import json
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("upstream.py")

QUICK: dict[str, Any] = {
    "hub.restart_delay_s": 0.02,
    "hub.health_timeout_s": 1,
    "hub.start_timeout_s": 20,
    "hub.learn_wait_s": 20,
}
"""The hub's settings for tests: pauses are short, and a first listing waits for everything."""


def scripted(**script: Any) -> dict[str, Any]:
    """The entry of a scripted server."""
    return {"command": sys.executable, "args": ["-I", "-S", str(SCRIPT), json.dumps(script)]}


def settings_of_user(folder: Path, servers: dict[str, Any], **settings: Any) -> None:
    """Writes the user's settings; `folder` is what CLAUDE_CONFIG_DIR names."""
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"mcpServers": servers, **settings}))


def events_in(log: Path, kind: str) -> list[dict[str, Any]]:
    """What a scripted server noted: its own events, or messages by method."""
    if not log.exists():
        return []
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line.get("event") == kind or line.get("read", {}).get("method") == kind]
