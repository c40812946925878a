"""Runners that are programs: how one is found, started under a supervisor, fed and read line by line, and ended.

The program's working folder is the project, so that it reads CLAUDE.md and its own settings as it always does. It gets
the instruction on stdin, a private folder with what hands our server over, and no variables but those that are allowed:
nothing of whoever asked for the task.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import anyio
import anyio.to_thread

from serena_central.agents.runners.surroundings import Server, Surroundings
from serena_central.agents.tasks import CostSource, Emission, Emit, Ending, TaskResult, TaskSpec, Usage, ends
from serena_central.config.policies import AgentPolicy
from serena_central.core.masking import masked
from serena_central.processes.child import run
from serena_central.processes.environment import HARMLESS, allowed, inherited, outside
from serena_central.processes.ladder import Ladder
from serena_central.processes.output import Tail

LADDER = Ladder(0.0, 3.0, interrupt_s=3.0)
"""SIGINT lets a client write its transcript."""

STDERR_BYTES = 16_384

MAX_LINE = 16_000_000
"""Of what a program prints; a longer line is dropped."""

TEXT_CHARS = 4000

MOST_TOKENS, MOST_DOLLARS = 10**12, 10**6
"""Of one task. What is beyond can only be damage, as in transcripts (`transcripts.requests`)."""

_HALVES = re.compile(r"\\u[dD][89a-fA-F]")
"""In JSON, where there may be any."""

TOKEN = "SERENA_TASK_TOKEN"  # noqa: S105 - the name of a variable
"""By which a program gets the server's token: neither a command line nor a file holds it."""

OF_NETWORK = (
    r"https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|all_proxy|ALL_PROXY|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS"
)


class Call(NamedTuple):
    """What an invocation is made of. `folder` is the task's own, private and empty; `memory` the text of CLAUDE.md
    files, where the program does not read them itself; `trusted`: what the repository brings may run. `environment` is
    the server's whole one, of which the program gets what is allowed."""

    spec: TaskSpec
    folder: Path
    server: Server
    memory: str
    trusted: bool
    environment: Mapping[str, str]

    def instructions(self) -> str:
        """The agent's system prompt and the memory, as one text."""
        return "\n\n".join(filter(None, (self.spec.system_prompt, self.memory)))


class Invocation(NamedTuple):
    """How a program is started. `given` is its stdin."""

    arguments: Sequence[str | Path]
    variables: Mapping[str, str]
    given: str


class Reading:
    """What was read of a program's output so far."""

    def __init__(self) -> None:
        self.text = ""
        self.error = ""
        self.over_budget = False
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.cost_source: CostSource = ""
        self.resume_id: str | None = None
        self.counted: set[str] = set()
        """Ids of messages whose tokens are in `usage`."""
        self.commands: dict[str, str] = {}
        """Command lines that run, by the ids of their calls."""
        self.ended = False
        """The program has reported its end."""
        self.by_model: dict[str, Usage] = {}
        """Where the program tells them apart."""
        self.pending = ""
        """Text that came in pieces, up to its end."""


class CommandRunner:
    """See `tasks.Runner`. A subclass for each program."""

    name: ClassVar[str]
    title: ClassVar[str]
    program: ClassVar[str]
    install: ClassVar[str]
    variables: ClassVar[re.Pattern[str]]
    """Names of variables that the program may have beside harmless ones: of its model and settings."""

    def __init__(self, policy: AgentPolicy, surroundings: Surroundings) -> None:
        self._policy = policy
        self._surroundings = surroundings

    def reads_memory(self, *, trusted: bool) -> bool:
        """Whether the program itself reads CLAUDE.md."""
        return False

    def missing(self) -> str | None:
        if self._found() is not None:
            return None
        named = self._policy.runner_paths.get(self.name)
        where = f"{named} is not a program" if named else f"{self.program} is not on PATH"
        return f"{self.title}: {where}; install it with `{self.install}`, or set agents.runner_paths."

    def _found(self) -> str | None:
        named = self._policy.runner_paths.get(self.name)
        return shutil.which(os.path.expanduser(named) if named else self.program)  # noqa: PTH111

    def invocation(self, call: Call) -> Invocation:
        """Blocks for small files.

        Raises:
            OSError, ValueError: the program's own settings can't be used; tells why.
        """
        raise NotImplementedError

    def model_of(self, call: Call) -> str:
        """The model whose rates hold where the program names neither model nor cost; empty where it is unknown."""
        return call.spec.model or ""

    def read(self, event: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        """Takes one line of output."""
        raise NotImplementedError

    def explained(self, call: Call, code: int | None, reading: Reading) -> None:
        """Takes what the program's exit code says."""

    async def run(self, spec: TaskSpec, emit: Emit, ending: Ending = ends) -> TaskResult:
        program = self._found()
        if program is None:
            return TaskResult(status="error", error=self.missing() or "It is not installed.")
        folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="serena-task-")))
        try:
            trusted = self._surroundings.trusted(Path(spec.root))
            memory = "" if self.reads_memory(trusted=trusted) else await self._surroundings.memory(Path(spec.root))
            call = Call(spec, folder, self._surroundings.server(), memory, trusted, inherited())
            started = await anyio.to_thread.run_sync(self.invocation, call)
            reading, stderr = Reading(), Tail(STDERR_BYTES)
            lines = _Lines(lambda event: self.read(event, reading, emit), emit)
            ended = await run(
                [program, *started.arguments],
                Path(spec.root),
                deadline_s=None,
                given=started.given.encode("utf-8", "replace"),
                stdout=lines,
                stderr=stderr,
                environment={**self._environment(spec), **started.variables, TOKEN: call.server.token},
                ladder=LADDER,
            )
            lines.finish()
            self.explained(call, ended.exit_code, reading)
            if reading.cost_usd is None and reading.usage is not None:
                await anyio.to_thread.run_sync(self._estimate, reading, call)
            return self._result(reading, ended.exit_code, stderr.text, lines.plain)
        except ValueError as error:
            return TaskResult(status="error", error=f"{self.title}: {error}")
        except OSError as error:
            return TaskResult(status="error", error=f"{self.title} can't be started: {error.strerror or error}.")
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))

    def _estimate(self, reading: Reading, call: Call) -> None:
        """The cost by the models' rates; unknown if those of any model are."""
        used = reading.by_model or {self.model_of(call): reading.usage or Usage()}
        costs = [self._surroundings.cost(model, usage) if model else None for model, usage in used.items()]
        known = [one for one in costs if one is not None]
        if len(known) == len(costs):
            reading.cost_usd, reading.cost_source = sum(known), "estimated"

    def _environment(self, spec: TaskSpec) -> dict[str, str]:
        ours = inherited()
        named = {name: ours[name] for name in self._policy.environment if name in ours}
        found = {**allowed(HARMLESS, ours), **allowed(self.variables, ours), **named}
        return {**found, "PATH": outside(found.get("PATH", os.defpath), Path(spec.root))}

    def _result(self, reading: Reading, code: int | None, stderr: str, plain: str) -> TaskResult:
        error = reading.error
        if not error and (code != 0 or not reading.ended):
            how = f"exit code {code}" if code != 0 else "no result"
            error = f"{self.title} ended with {how}: {masked(stderr or plain)[-TEXT_CHARS:]}"
        return TaskResult(
            status="budget" if reading.over_budget else "error" if error else "ok",
            text=reading.text,
            error=error,
            usage=reading.usage,
            cost_usd=reading.cost_usd,
            cost_source=reading.cost_source,
            resume_id=reading.resume_id,
            exit_code=code,
        )


class _Lines:
    """Splits output into lines of any length up to a bound, and parses each."""

    def __init__(self, take: Callable[[dict[str, Any]], None], emit: Emit) -> None:
        self._take = take
        self._emit = emit
        self._parts: list[bytes] = []
        self._size = 0
        self.plain = ""
        """The last of what was no JSON."""

    def take(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            self.finish()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= MAX_LINE:
            self._parts.append(part)

    def finish(self) -> None:
        line, whole = b"".join(self._parts).strip(), self._size <= MAX_LINE
        self._parts, self._size = [], 0
        if not line or not whole:
            return
        try:
            event = json.loads(_without_halves(line))
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict):
            try:
                self._take(cast("dict[str, Any]", event))
                return
            except (TypeError, ValueError, OverflowError):
                pass  # a field is of another kind than in the versions that are known: one line, not the task
        self.plain = line.decode("utf-8", "replace")
        self._emit(Emission(kind="note", text=self.plain))


def _without_halves(line: bytes) -> str:
    """A line of JSON with question marks for bytes that are no UTF-8, and for each half of a surrogate pair: what is
    left of an emoji where a program cuts a text. Neither can be stored or sent, and the rest is worth having."""
    text = line.decode("utf-8", "replace")
    if _HALVES.search(text):
        text = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
    return text


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list that came from outside."""
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", one) for one in cast("list[object]", value) if isinstance(one, dict)]


def own_tool(spec: TaskSpec, names: Collection[str]) -> bool | None:
    """Whether a definition allows a program's own tool that any of these names stand for; None where it does not say.
    A rule with an argument allows none: only Claude Code can hold its calls to it."""
    if not set(names).isdisjoint(spec.disallowed_tools):
        return False
    return None if spec.tools is None else not set(names).isdisjoint(spec.tools)


def mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def whole(value: object) -> int:
    """A count; 0 for what can be none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else 0


def dollars(value: object) -> float | None:
    """A cost; None for what can be none: sums with it would be neither a cost nor comparable with a budget."""
    is_cost = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_DOLLARS
    return float(value) if is_cost else None  # type: ignore[arg-type]


def called(name: object, arguments: object) -> Emission:
    """A tool call, as it is shown."""
    return Emission(kind="tool", text=f"{name} {json.dumps(arguments, ensure_ascii=False)}")
