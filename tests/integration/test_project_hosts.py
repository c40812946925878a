"""A project host is another process with a home of its own: what a user may open, halts and hooks hold across it."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

from serena_central.app import Application
from serena_central.cluster.host import RunServer
from serena_central.cluster.remote_host import RemoteHost
from serena_central.cluster.remote_session import CarriedUsers, RecordedViews
from serena_central.core import progress
from serena_central.core.errors import SessionHalted, UnknownProject
from serena_central.sessions.users import new_account
from serena_central.tools.call import ToolCaller
from serena_central.tools.context import Services
from serena_central.tools.idempotency import Idempotency
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio


@dataclass
class Memory:
    """A wire that is none: bytes from one function to another."""

    server: RunServer

    async def send(
        self, call: str, message: bytes, take: Callable[[bytes], None], on_progress: progress.Listener | None
    ) -> None:
        reply = await self.server.run(message, on_progress or (lambda _text, _part: None))
        take(reply.message)
        reply.settle(True)


@dataclass
class Front:
    """A server whose tools run on the projects of another one."""

    near: Application
    far: Application
    caller: ToolCaller

    async def call(self, tool: str, credential: str = "owner", **arguments: object) -> str:
        session = session_of(self.near, explicit_id=f"of-{credential}", credential=credential)
        return "\n".join((await self.caller.call(session, tool, arguments)).blocks)


@asynccontextmanager
async def fronting(folder: Path) -> AsyncGenerator[Front]:
    settings = {"trusted_roots": [str(folder)], "execute_shell": True}
    settings |= {"included_optional_tools": ["execute_shell_command"]}
    async with running_parts(folder / "near", settings) as near, running_parts(folder / "far", settings) as far:
        here, there = (
            Services(**{one.name: getattr(parts, one.name) for one in fields(Services)}) for parts in (near, far)
        )
        remote = replace(there, views=RecordedViews(far.store), users=CarriedUsers())
        host = RemoteHost(Memory(RunServer(remote, Idempotency())), services=here)
        idempotency = Idempotency()
        idempotency.expect({}, complete=True)
        caller = ToolCaller(here, record=lambda _row: None, idempotency=idempotency, host=lambda _local: host)
        yield Front(near, far, caller)


def project(root: Path, text: str = "def helper(): ...\n") -> Path:
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text(text)
    return root


async def test_a_users_roots_hold_on_the_host_that_has_the_project(tmp_path: Path) -> None:
    shop, bank = project(tmp_path / "src/shop"), project(tmp_path / "src/bank")
    row, _token = new_account("ann", [str(shop)], 0.0, admin=False)
    async with fronting(tmp_path) as front:
        front.near.users.take([row])
        listed = {"relative_path": ".", "recursive": False}
        await front.call("list_dir", project=str(bank), **listed)  # the owner's; the host knows both from now on
        assert "cart.py" in await front.call("list_dir", row.credential, project=str(shop), **listed)
        for named in (str(bank), "bank", f"{shop}/../bank"):
            with pytest.raises(UnknownProject) as refused:
                await front.call("list_dir", row.credential, project=named, **listed)
            assert "bank" not in str(refused.value).replace(named, "")
        wider, _token = new_account("ann", [str(tmp_path / "src")], 0.0, admin=False)
        wider.credential = row.credential
        front.near.users.take([wider])
        assert "cart.py" in await front.call("list_dir", row.credential, project=str(bank), **listed)
        front.near.users.take([])
        with pytest.raises(UnknownProject):
            await front.call("list_dir", row.credential, project=str(shop), **listed)
        assert "cart.py" in await front.call("list_dir", project=str(bank), **listed)


async def test_a_hook_on_a_host_halts_the_session_where_a_person_can_resume_it(tmp_path: Path) -> None:
    root = project(tmp_path / "src/shop")
    (root / ".claude").mkdir()
    gate = {"matcher": "Bash(make:*)", "hooks": [{"type": "command", "command": "echo the disk is full >&2; exit 1"}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [gate]}}))
    async with fronting(tmp_path) as front:
        with pytest.raises(SessionHalted, match="the disk is full"):
            await front.call("execute_shell_command", project=str(root), command="make")
        assert list(front.near.gating.halted()) == ["of-owner"]
        assert front.far.gating.halted() == {}
        with pytest.raises(SessionHalted):
            await front.call("list_dir", project=str(root), relative_path=".", recursive=False)
        assert front.near.gating.resume("of-owner", "a person")
        assert "cart.py" in await front.call("list_dir", project=str(root), relative_path=".", recursive=False)
