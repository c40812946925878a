"""A small Python project with all that the pages of a project show: code with a cycle, an unused symbol and a broken
reference, settings with problems, MCP servers and memory files."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

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

TOTAL = '''def total(self) -> float:
        """The price of everything, with its count."""
        return sum(line.price * line.count for line in self.lines)'''
"""A better body of `Cart/total`."""


def example_project(root: Path) -> Path:
    """Makes the project at `root`, a folder that does not exist yet, and returns it."""
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


def page_queries(root: Path) -> dict[str, str]:
    """Path of a page in the route table → the query that it needs to show this project."""
    one = f"?root={quote(str(root))}"
    of_project = ("", "/graph", "/findings", "/memory", "/settings")
    return {
        **{f"/projects/one{page}": one for page in of_project},
        "/projects/one/references": f"{one}&of=orders/order.py",
        "/configuration": one,
    }
