"""Waves: tasks that run at the same time, verified by the server as a whole.

    wave1 = await execute_wave([Task("Map src/"), Task("Map tests/")])
    wave2 = await execute_wave([Task("Refactor by this: ${waves.1.results}")], after=wave1, transaction=True)

A wave is a list of its tasks' texts. It is cancelled with whoever awaits it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from serena_central.cli.remote import Remote
from serena_central.core.errors import SerenaCentralError
from serena_central.sdk.tasks import WAIT_S, Task

__all__ = ["WaveFailed", "WaveResult", "execute_wave"]

PLANS = "/api/v1/plans"

OF_TASKS = ("instruction", "agent", "runner", "model", "timeout_s", "max_tokens", "max_usd")


class WaveFailed(SerenaCentralError):
    """A task or check of a wave failed, or what a transaction promises did not hold. `result` is what there is."""

    def __init__(self, result: "WaveResult") -> None:
        super().__init__(f"Plan {result.plan['id']}: {result.plan['state']}: {result.plan['says']}")
        self.result = result


class WaveResult(list[str]):
    """The texts of a wave's tasks, in their order."""

    def __init__(self, plan: dict[str, Any]) -> None:
        """`plan` is what the server knows of the run."""
        self.plan = plan
        self.wave: dict[str, Any] = plan["waves"][-1]
        """Its tasks, checks, and what the server saw (`verified`)."""
        super().__init__(task["text"] for task in self.wave["tasks"])


async def execute_wave(
    tasks: Sequence[Task],
    *,
    after: WaveResult | None = None,
    transaction: bool = False,
    checks: Iterable[str] = (),
    allow_failures: bool = False,
    name: str = "waves",
    share: Iterable[str] = ("memory",),
) -> WaveResult:
    """Runs tasks as a wave and waits for all. With `after` it follows an earlier wave, whose results its instructions
    may refer to; `checks` are built-in ones; `name` and `share` are those of the plan that the first wave begins.

    Raises:
        WaveFailed, NoServer, Refused
    """
    remote = await asyncio.to_thread(Remote)
    wave = {
        "tasks": [{key: one.asked[key] for key in OF_TASKS if one.asked[key] not in (None, "")} for one in tasks],
        "transaction": transaction,
        "checks": list(checks),
        "allow_failures": allow_failures,
    }
    if after is not None:
        path, body = f"{PLANS}/{quote(after.plan['id'], safe='')}/waves", {"waves": [wave]}
    else:
        projects = {one.asked["project"] for one in tasks if one.asked["project"]}
        if len(projects) > 1:
            raise ValueError("the tasks of a wave are in one project")
        project = projects.pop() if projects else str(Path.cwd())
        path, body = PLANS, {"plan": {"name": name, "share": list(share), "waves": [wave]}, "project": project}
    starting = asyncio.ensure_future(asyncio.to_thread(remote.post, path, body))
    try:
        found: dict[str, Any] = await asyncio.shield(starting)
        of_plan = f"{PLANS}/{quote(found['id'], safe='')}"
        while found["state"] == "running":
            found = await asyncio.to_thread(remote.get, of_plan, wait_s=WAIT_S)
    except asyncio.CancelledError:
        accepted = await starting
        await asyncio.to_thread(remote.post, f"{PLANS}/{quote(accepted['id'], safe='')}/cancel")
        raise
    result = WaveResult(found)
    if found["state"] != "done":
        raise WaveFailed(result)
    return result
