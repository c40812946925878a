"""Regular expressions that a repository brings: a stranger's are not used, and one that never ends freezes nobody."""

import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from tests.support.child import Child, run_command, until_gone

pytestmark = pytest.mark.anyio

PATTERN = "(?P<scope>(a|aa|a?)+)(?P<name>b)"
NAMES = ["a" * 46, "a" * 46 + "bc", "a" * 46 + "b"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".serena").mkdir()
    (root / "long.py").write_text("\n\n".join(f"def {name}() -> None: ..." for name in NAMES) + "\n")
    (root / ".serena" / "project.yml").write_text(
        json.dumps({"language_servers": {"ty": {"naming": {"scoped": PATTERN}}}})
    )
    return root


async def test_a_strangers_pattern_is_not_used(serving: Child, repo: Path) -> None:
    found = await serving.call("get_symbols_overview", {"relative_path": "long.py", "project": str(repo)})
    assert all(name in json.dumps(found) for name in NAMES)
    async with serving.http() as http:
        said = (await http.get("/api/v1/events", params={"kind": "project.settings"})).json()["events"]
    assert "language_servers.ty.naming" in said[0]["message"]
    assert "project.yml:1" in said[0]["message"]
    assert "serena-central trust" in said[0]["message"]


async def test_a_trusted_pattern_that_never_ends_is_given_up_and_the_server_goes_on(serving: Child, repo: Path) -> None:
    assert (await run_command(serving.folder, "trust", str(repo), "--yes")).code == 0
    with anyio.fail_after(60):
        found = await serving.call("get_symbols_overview", {"relative_path": "long.py", "project": str(repo)})
        assert all(name in json.dumps(found) for name in NAMES[:2])
        async with serving.http() as http:
            (said,) = (await http.get("/api/v1/events", params={"kind": "server.pattern"})).json()["events"]
        assert said["severity"] == "warning"
        assert "ty naming.scoped is disabled" in said["message"]
        assert PATTERN in said["message"]
    os.kill(serving.process.pid, signal.SIGTERM)
    await until_gone([serving.process.pid])
