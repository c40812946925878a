"""An answer of a project that nobody trusts says what is held back, once in a session, and how trust is given."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.projects.trust.approvals import Approvals
from serena_central.projects.trust.trust_decisions import Configuration, Trust
from tests.support.central import running_parts, session_of
from tests.support.scripted import scripted_project, scripted_ty

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    scripted_ty(tmp_path)
    async with running_parts(tmp_path, {"trusted_roots": []}) as central:
        yield central


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = scripted_project(tmp_path)
    name_programs(root, "evil")
    return root


def name_programs(root: Path, program: str) -> None:
    (root / ".serena").mkdir(exist_ok=True)
    (root / ".serena" / "project.yml").write_text(
        f"language_servers: {{go: {{command: {program}, args: [a]}}, rust: {{env: {{a: b}}}}}}\n"
    )


async def notes(central: Application, root: Path, tool: str = "list_dir", **facts: Any) -> list[str]:
    arguments = {"project": str(root), **({"relative_path": "."} if tool == "list_dir" else {})}
    answer = await central.caller.call(session_of(central, **facts), tool, arguments)
    return [line for block in answer.blocks[1:] for line in block.splitlines() if "not trusted. To trust it" in line]


async def test_it_is_said_once_in_a_session_and_again_when_something_else_is_held_back(
    central: Application, root: Path
) -> None:
    (said,) = await notes(central, root)
    assert said == (
        "shop: some of its settings are ignored (language_servers.go.command, language_servers.go.args, "
        "language_servers.rust.env): this repository is not trusted. To trust it, the user can review it and run "
        f"`serena-central trust {root}`."
    )
    assert await notes(central, root) == []
    assert len(await notes(central, root, explicit_id="other")) == 1
    (root / ".serena" / "project.yml").write_text("language_servers: {go: {command: evil}}\n")
    assert len(await notes(central, root)) == 1
    assert await notes(central, root) == []


async def test_activating_says_it_too(central: Application, root: Path) -> None:
    assert len(await notes(central, root, "activate_project")) == 1
    assert await notes(central, root) == []


async def test_nothing_is_said_of_what_is_trusted(central: Application, root: Path, tmp_path: Path) -> None:
    trust = Trust(Approvals(tmp_path / "home" / "trust.json"), [], [Configuration(lambda _root: None)])
    trust.approve(root, trust.standing(root).digest, by="me")
    assert await notes(central, root) == []
    name_programs(root, "worse")
    assert len(await notes(central, root)) == 1
