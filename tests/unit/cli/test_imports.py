"""Commands begin soon: what a server is made of is imported by the few that need it, when they do."""

import subprocess
import sys

from serena_central.cli.main import COMMANDS

HEAVY = {
    "serena_central.analysis",
    "serena_central.projects.project",
    "serena_central.projects.registry",
    "serena_central.store.queries",
    "serena_central.tools.families",
    "httpx",
    "jinja2",
    "mcp",
    "pydantic",
    "sqlalchemy",
    "starlette",
    "uvicorn",
}


def test_no_command_imports_at_its_start_what_a_server_is_made_of() -> None:
    program = (
        "import importlib, sys\n"
        f"for name in {list(COMMANDS)}:\n"
        "    importlib.import_module('serena_central.cli.' + name)\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(ran.stdout.split())
    assert "serena_central.projects.root_settings" in imported
    assert imported & HEAVY == set()
