"""The scripted runner, for tests: plays what a file says, with real calls, real processes and no model.

The file is JSON: a list of `{"match": REGEX, "steps": [...]}`; the first whose expression is found in the instruction
is played. It is used only where the settings or a task name it, and where there is no file it does nothing.
"""

import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from serena_central.agents.tasks import Emission, Emit, Ending, TaskResult, TaskSpec, Usage, ends
from serena_central.core.decoding import from_json
from serena_central.core.errors import SerenaCentralError
from serena_central.core.paths import expanded
from serena_central.processes.child import run
from serena_central.processes.environment import HARMLESS, allowed, inherited
from serena_central.processes.ladder import Ladder
from serena_central.processes.output import Head

OUTPUT_BYTES = 20_000

INTERRUPTED = Ladder(0.0, 1.0, interrupt_s=1.0)

CallTool = Callable[[TaskSpec, str, dict[str, Any]], Awaitable[str]]
"""Calls a tool in the task's own session; raises SerenaCentralError."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to do. `${last}` in `text` and in `arguments` stands for what came of the step before; `may_fail`: a
    call's error is its result."""

    call: str | None = None
    arguments: dict[str, Any] = {}
    may_fail: bool = False
    wait_s: float | None = None
    run: list[str] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    text: str | None = None
    """The final text so far."""
    fail: str | None = None


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    match: str
    steps: list[Step]


class ScriptedRunner:
    """See `tasks.Runner`."""

    name = "scripted"

    def __init__(self, file: str | None, call: CallTool) -> None:
        self._file = expanded(file) if file else None
        self._call = call

    def missing(self) -> str | None:
        if self._file is None:
            return "The scripted runner is for tests, and needs agents.script_file."
        return None

    async def run(self, spec: TaskSpec, emit: Emit, ending: Ending = ends) -> TaskResult:
        assert self._file is not None
        try:
            content = await anyio.to_thread.run_sync(self._file.read_bytes)
            scripts = from_json(content, list[Script])
        except (OSError, msgspec.MsgspecError) as error:
            return TaskResult(status="error", error=f"agents.script_file can't be used: {error}.")
        while True:
            chosen = next((one for one in scripts if re.search(one.match, spec.instruction)), None)
            if chosen is None:
                return TaskResult(status="error", error="No script fits this instruction.")
            result = await self._play(chosen, spec, emit)
            reason = await ending(result.text) if result.status == "ok" else None
            if reason is None:
                return result
            spec = replace(spec, instruction=reason)

    async def _play(self, script: Script, spec: TaskSpec, emit: Emit) -> TaskResult:
        last, text = "", ""
        usage: Usage | None = None
        cost: float | None = None
        for step in script.steps:
            if step.wait_s is not None:
                await anyio.sleep(step.wait_s)
            if step.usage is not None or step.cost_usd is not None:
                usage, cost = step.usage or usage, cost if step.cost_usd is None else step.cost_usd
                emit(Emission(kind="usage", usage=usage, cost_usd=cost))
            if step.run is not None:
                last, code = await self._run(step.run, spec)
                line = shlex.join(step.run)
                emit(Emission(kind="tool", text=f"{line}: {last}", command=line, exit_code=code))
            if step.call is not None:
                last, failed = await self._called(step, spec, last)
                emit(Emission(kind="tool", text=f"{step.call}: {last}"))
                if failed:
                    return TaskResult(status="error", error=last, usage=usage, cost_usd=cost, cost_source="runner")
            if step.text is not None:
                text = step.text.replace("${last}", last).replace("${instruction}", spec.instruction)
                emit(Emission(kind="text", text=text))
            if step.fail is not None:
                return TaskResult(status="error", error=step.fail, usage=usage, cost_usd=cost, cost_source="runner")
        source = "runner" if cost is not None else ""
        return TaskResult(status="ok", text=text, usage=usage, cost_usd=cost, cost_source=source)

    async def _called(self, step: Step, spec: TaskSpec, last: str) -> tuple[str, bool]:
        arguments = {
            name: value.replace("${last}", last) if isinstance(value, str) else value
            for name, value in step.arguments.items()
        }
        try:
            return await self._call(spec, step.call or "", arguments), False
        except SerenaCentralError as error:
            return str(error), not step.may_fail

    async def _run(self, command: list[str], spec: TaskSpec) -> tuple[str, int | None]:
        output = Head(OUTPUT_BYTES)
        ended = await run(
            command,
            Path(spec.root),
            deadline_s=None,
            stdout=output,
            merged=True,
            environment=allowed(HARMLESS, inherited()),
            ladder=INTERRUPTED,
        )
        return output.text.strip(), ended.exit_code
