"""A server as it is on a working day: agents of several clients in two small projects, calls, an edit, a kill."""

import json
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from serena_central.analysis.analysis_run import Kind
from tests.support.central import RunningCentral, running_central
from tests.support.upstreams import QUICK, scripted, settings_of_user

CART = '''"""What a customer is about to buy."""

from dataclasses import dataclass, field


@dataclass
class Line:
    """So many of one article."""

    article: str
    price: float
    count: int = 1


@dataclass
class Cart:
    """Lines, and what they cost."""

    lines: list[Line] = field(default_factory=list)

    def add(self, line: Line) -> None:
        self.lines.append(line)

    def total(self) -> float:
        return sum(line.price for line in self.lines)
'''

ORDERS = {
    "main.py": "from orders.order import Order\n\nprint(Order().customer)\n",
    "orders/__init__.py": "",
    "orders/order.py": "from cart import Cart\nfrom orders.customer import Customer\n\n\n"
    "class Order:\n    cart: Cart\n    customer: Customer\n",
    "orders/customer.py": "from __future__ import annotations\n\nimport orders.order\n\n\n"
    "class Customer:\n    orders: list[orders.order.Order]\n\n\ndef forgotten() -> None:\n    print(missing)\n",
}
"""Two files that need each other, and something wrong."""

BODY = '''def total(self) -> float:
        """The price of everything, with its count."""
        return sum(line.price * line.count for line in self.lines)'''


KINDS: tuple[Kind, ...] = ("graph", "findings")


@dataclass
class Life:
    """A busy server. `paths` fills the words in pages' paths; `queries` are of pages that need one, by their path."""

    central: RunningCentral
    paths: dict[str, str]
    queries: dict[str, str]


@asynccontextmanager
async def busy_server(home: Path) -> AsyncGenerator[Life]:
    shop, billing = (_project(home / "src" / name) for name in ("shop", "billing"))
    settings = {"pool.memory_budget_mb": 1024, **QUICK}
    settings_of_user(home / "claude", {"notes": scripted()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
        async with _busy(home, shop, billing, settings) as life:
            yield life


@asynccontextmanager
async def _busy(home: Path, shop: Path, billing: Path, settings: dict[str, Any]) -> AsyncGenerator[Life]:
    async with running_central(home, settings, patience_s=300) as central, central.http() as http:
        _an_hour_passed(central)

        async def agent(name: str, version: str, root: Path) -> str:
            body = {"client_name": name, "client_version": version, "working_folder": str(root)}
            return (await http.post("/api/v1/sessions", json=body)).json()["session_id"]

        async def call(session: str, tool: str, **arguments: Any) -> None:
            await http.post(f"/api/v1/tools/{tool}", json={"session": session, "arguments": arguments})

        claude = await agent("claude-code", "2.1.4", shop)
        codex = await agent("codex", "0.63.0", billing)
        cursor = await agent("cursor", "2.0.1", shop)
        gone, killed = await agent("zed", "0.211", billing), await agent("opencode", "1.0.80", shop)
        for session, root in ((claude, shop), (codex, billing), (cursor, shop)):
            await call(session, "activate_project", project=str(root))
            for _ in range(4):
                await call(session, "find_symbol", name_path_pattern="Cart/total", include_body=True)
            await call(session, "get_symbols_overview", relative_path="cart.py")
            await call(session, "search_for_pattern", substring_pattern="price")
        await call(codex, "find_symbol", name_path_pattern="[")
        assert (await http.get("/api/v1/upstreams/notes")).json()["tools"]
        await call(claude, "replace_symbol_body", relative_path="cart.py", name_path="Cart/total", body=BODY)
        await http.post(f"/api/v1/sessions/{gone}/close")
        await http.delete(f"/api/v1/sessions/{killed}", params={"by": "a user in the dashboard"})
        edits = (await http.get("/api/v1/edits")).json()["edits"]
        (server, *_) = (await http.get("/api/v1/servers")).json()["servers"]
        await _analysis_run(central, shop)
        (made, *_) = (await http.get("/api/v1/calls", params={"tool": "replace_symbol_body"})).json()["calls"]
        paths = {
            "session": claude,
            "call": made["id"],
            "edit": edits[0]["id"],
            "server": server["id"],
            "tool": "find_symbol",
            "upstream": "notes",
        }
        one = f"?root={quote(str(shop))}"
        pages = ("", "/graph", "/findings")
        queries = {
            **{f"/projects/one{page}": one for page in pages},
            "/projects/one/uses": f"{one}&of=orders/order.py",
            "/projects/one/memory": one,
            "/projects/one/settings": one,
            "/configuration": one,
        }
        yield Life(central, paths, queries)


async def _analysis_run(central: RunningCentral, root: Path) -> None:
    analysis_runs = central.central.dashboard.parts.analysis_runs
    for kind in KINDS:
        with central.central.bus.subscribe() as news:
            analysis_runs.start(root, kind)
            async for event in news:
                if event.kind == "analysis.ended":
                    break


def _an_hour_passed(central: RunningCentral) -> None:
    """Calls as they would have been: two spells of work, and a slow one now and then."""
    minutes, now = central.central.dashboard.parts.tally.minutes, time.time()
    for ago in range(1, 58):
        for number in range(max(0, round(14 * math.sin(ago / 9) ** 2) + ago % 3)):
            slow = number % 7 == 0
            minutes.add(now - 60 * ago, 3 + number + (60 + ago) * slow, failed=number % 11 == 10)


def _project(root: Path) -> Path:
    (root / ".serena").mkdir(parents=True)
    (root / ".serena" / "project.yml").write_text(f"project_name: {root.name}\n")
    (root / "cart.py").write_text(CART)
    for path, text in ORDERS.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    _configure(root)
    return root


def _configure(root: Path) -> None:
    """Settings with all that their page shows: shadowed values, a problem, servers, memory, and pending trust."""
    files: dict[str, Any] = {
        ".claude/settings.json": {
            "model": "opus",
            "permissions": {"allow": ["Edit(src/**)"], "deny": ["Read(./.env)", "Read("]},
            "env": {"TOKEN": "${TOKEN:-none}", "A_RATHER_LONG_NAME_OF_A_VARIABLE_THAT_SOMEBODY_CHOSE": "x" * 90},
            "hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "make format"}]}]},
        },
        ".claude/settings.local.json": {"model": "haiku", "enabledMcpjsonServers": ["db"]},
        ".mcp.json": {
            "mcpServers": {
                "db": {"command": "dbhub", "args": ["--dsn", "${DSN:-postgres://localhost/shop}"]},
                "web": {"url": "https://mcp.example.com/a/long/path/that/has/no/place/to/break"},
            }
        },
    }
    for path, content in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(json.dumps(content))
    (root / "CLAUDE.md").write_text("Use tabs. @notes.md @gone.md\n")
    (root / "notes.md").write_text("More notes.\n")
