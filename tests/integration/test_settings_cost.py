"""Who has no settings of Claude Code pays nothing for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from tests.support.central import running_parts, session_of

async def main(folder):
    root = folder / "shop"
    async with running_parts(folder) as central:
        for _ in range(2):
            await central.caller.call(session_of(central), "list_dir", {"project": str(root), "relative_path": "."})
    print(json.dumps([name for name in sys.modules if name.startswith("serena_central.claude_config")]))

asyncio.run(main(Path(sys.argv[1])))
"""


def modules_after_a_call(folder: Path) -> set[str]:
    (folder / "shop" / ".git").mkdir(parents=True, exist_ok=True)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return {name.rpartition(".")[2] for name in json.loads(ended.stdout.splitlines()[-1])}


@pytest.mark.timeout(120)
def test_nothing_is_imported_without_a_settings_file(tmp_path: Path) -> None:
    # `problems` is how plans of agents say what is wrong with them, too.
    assert modules_after_a_call(tmp_path) <= {"claude_config", "locations", "problems"}
    (tmp_path / "shop" / ".claude").mkdir()
    (tmp_path / "shop" / ".claude" / "settings.json").write_text("{}")
    assert {"effective", "permissions", "document"} <= modules_after_a_call(tmp_path)
