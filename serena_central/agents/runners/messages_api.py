"""Anthropic's messages API, for machines without a coding agent: a loop over the tools of this server and its hub.

The key is in the environment alone (`ANTHROPIC_API_KEY`, or `ANTHROPIC_AUTH_TOKEN`). The model sees the agent's system
prompt, CLAUDE.md and the instruction. Before the conversation fills the model's window it is compacted: the model
summarises it, and goes on with the instruction and the summary.
"""

import importlib.util
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import anyio.to_thread

from serena_central.agents.context_window import WINDOW, ContextWindow
from serena_central.agents.provider_limits import ProviderLimits
from serena_central.agents.runners.commands import called
from serena_central.agents.runners.surroundings import Surroundings
from serena_central.agents.task_transcripts import TaskTranscripts
from serena_central.agents.tasks import Emission, Emit, Ending, TaskResult, TaskSpec, Usage, ends
from serena_central.config.policies import AgentPolicy
from serena_central.core.errors import SerenaCentralError
from serena_central.core.masking import MASK, masked
from serena_central.transcripts.resuming import Conversation

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

MAX_OUTPUT = 16_000
"""Tokens of one answer."""

MAX_CONTINUED = 5
"""Answers in a row that are cut at their maximum."""

MAX_ATTEMPTS = 8
"""Of one request, while the provider refuses it or can't be reached."""

REQUEST_S = 600.0

OVERLOADED = (429, 529)

SUMMARISE = (
    "The conversation is about to be compacted: after this, only the task and your next message are left of it. "
    "Summarise all that you need to go on: what was found, with files and symbols, what was changed, and what is left "
    "to do. Call no tools."
)

GO_ON = "Go on where you were cut off."

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")

BASE_URL = "ANTHROPIC_BASE_URL"

INSTALL = "pipx install --force '.[messages]'"


class OfferedTool(NamedTuple):
    name: str
    description: str
    schema: Mapping[str, Any]


class ToolAnswer(NamedTuple):
    text: str
    failed: bool = False


class Toolbox(Protocol):
    """What a task's session may list and call, and the hooks of its root."""

    async def tools(self, spec: TaskSpec) -> Sequence[OfferedTool]: ...

    async def answer(self, spec: TaskSpec, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Raises SerenaCentralError."""
        ...

    async def compacting(self, spec: TaskSpec, trigger: str) -> str | None:
        """Runs the PreCompact hooks; why one of them stops it, else None."""
        ...


class MessagesApi:
    """See `tasks.Runner`."""

    name = "messages"

    def __init__(
        self, policy: AgentPolicy, surroundings: Surroundings, toolbox: Toolbox, transcripts: TaskTranscripts
    ) -> None:
        self.transcripts = transcripts
        self._policy = policy
        self._surroundings = surroundings
        self._toolbox = toolbox
        self._limits = ProviderLimits()
        self._windows: dict[str, ContextWindow] = {}
        """Task id → its window, while it runs."""

    def missing(self) -> str | None:
        if importlib.util.find_spec("anthropic") is None:
            return f"Messages API: its package is not installed; install it with `{INSTALL}`."
        if not any(os.environ.get(name) for name in KEYS):
            return f"Messages API: the server's environment has no {KEYS[0]}; set it and restart the server."
        return None

    def compact(self, task: str) -> bool:
        """Has a task's conversation compacted before its next request; whether this runner runs it."""
        window = self._windows.get(task)
        if window is not None:
            window.wanted = True
        return window is not None

    async def run(self, spec: TaskSpec, emit: Emit, ending: Ending = ends) -> TaskResult:
        missing = self.missing()
        if missing:
            return TaskResult(status="error", error=missing)
        client = await anyio.to_thread.run_sync(_client, self._policy.messages_base_url)
        window = self._windows[spec.id] = ContextWindow(min(self._policy.compact_at_tokens, WINDOW))
        memory = await self._surroundings.memory(Path(spec.root))
        resumed = spec.transcript.resumes
        before = await self.transcripts.conversation(resumed) if resumed else None
        conversation = _Conversation(spec, memory, self._policy.model_names, before)
        self.transcripts.prompt(spec, spec.instruction, model=conversation.model, first=True)
        loop = _Loop(
            spec, emit, self._toolbox, self._limits, self._surroundings.cost, client, window, conversation,
            self.transcripts,
        )  # fmt: skip
        try:
            async with client:
                return await loop.run(ending)
        finally:
            self._windows.pop(spec.id, None)


def _client(base_url: str | None) -> "AsyncAnthropic":
    # Late: it takes most of a second, and only tasks of this runner need it.
    from anthropic import AsyncAnthropic

    key, token = (os.environ.get(name) or None for name in KEYS)
    address = base_url or os.environ.get(BASE_URL) or None
    return AsyncAnthropic(api_key=key, auth_token=token, base_url=address, max_retries=0, timeout=REQUEST_S)


class _Conversation:
    """What is sent to the model."""

    def __init__(
        self, spec: TaskSpec, memory: str, models: Mapping[str, str], before: Conversation | None = None
    ) -> None:
        """`before`: what was said earlier, where it goes on with a conversation."""
        wanted = spec.model or (before and before.model) or "sonnet"
        self.model = models.get(wanted, wanted)
        self._instruction = spec.instruction
        texts = [spec.system_prompt, f"You work in {spec.root} by your tools alone; nobody answers questions.", memory]
        self.system = [_text("\n\n".join(filter(None, texts)), cached=True)]
        self.messages: list[dict[str, Any]] = [*before.messages] if before else []
        self.say("user", [_text(spec.instruction)])

    def say(self, role: str, content: list[dict[str, Any]]) -> None:
        """Adds to the conversation; what one role says in a row is one message."""
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += content
        else:
            self.messages.append({"role": role, "content": content})

    def restart(self, summary: str) -> str:
        """All that was said is replaced by its summary; returns the prompt that the model sees instead."""
        text = f"{self._instruction}\n\n# What you have done so far\n\n{summary}"
        self.messages = [{"role": "user", "content": [_text(text)]}]
        return text

    def request(self) -> list[dict[str, Any]]:
        """The messages, of which the provider caches all up to the last."""
        *before, last = self.messages
        *blocks, end = last["content"]
        return [*before, {**last, "content": [*blocks, {**end, "cache_control": {"type": "ephemeral"}}]}]


class _Loop:
    """One task."""

    def __init__(
        self,
        spec: TaskSpec,
        emit: Emit,
        toolbox: Toolbox,
        limits: ProviderLimits,
        cost: Callable[[str, Usage], float | None],
        client: "AsyncAnthropic",
        window: ContextWindow,
        conversation: _Conversation,
        transcripts: TaskTranscripts,
    ) -> None:
        self._spec = spec
        self._emit = emit
        self._toolbox = toolbox
        self._limits = limits
        self._cost = cost
        self._client = client
        self._window = window
        self._conversation = conversation
        self._transcripts = transcripts
        self._usage = Usage()
        self._cost_usd: float | None = 0.0
        self._made = 0
        """Turns of the model."""
        self._blocked = False
        """A hook has stopped an automatic compaction: it is not asked again at each turn."""

    async def run(self, ending: Ending) -> TaskResult:
        from anthropic import APIConnectionError, APIStatusError

        try:
            while True:
                result = await self._turns()
                reason = await ending(result.text) if result.status == "ok" else None
                if reason is None:
                    return result
                self._say(reason)
        except APIStatusError as error:
            return self._ended("error", error=f"Messages API: {error.status_code}: {_without_keys(error.message)}")
        except APIConnectionError as error:
            return self._ended("error", error=f"Messages API: {_without_keys(str(error.__cause__ or error))}")

    def _say(self, text: str, *, after: Sequence[dict[str, Any]] = ()) -> None:
        """Tells the model something, behind the results of calls."""
        self._conversation.say("user", [*after, _text(text)])
        self._transcripts.prompt(self._spec, text, model=self._conversation.model)

    async def _turns(self) -> TaskResult:
        """To the model's end of its turn."""
        continued, text = 0, ""
        while True:
            if (trigger := self._window.trigger) is not None and not (self._blocked and trigger == "auto"):
                await self._compact(trigger)
            if self._spec.max_turns is not None and self._made >= self._spec.max_turns:
                return self._ended("budget", text=text, error="It reached its maximum of turns.")
            answer = await self._ask()
            self._made += 1
            blocks = answer["content"]
            said = "\n".join(str(one["text"]) for one in blocks if one["type"] == "text" and one["text"])
            text = text + said if continued else said
            if said:
                self._emit(Emission(kind="text", text=said))
            if blocks:
                self._conversation.say("assistant", blocks)
            calls = [one for one in blocks if one["type"] == "tool_use"]
            match answer["stop_reason"]:
                case "tool_use":
                    continued = 0
                    self._conversation.say("user", [await self._call(one) for one in calls])
                case "end_turn" | "stop_sequence":
                    return self._ended("ok", text=text)
                case "max_tokens" if continued < MAX_CONTINUED and blocks:
                    continued += 1
                    cut = [_result(one, "The answer was cut off before this call was complete.", True) for one in calls]
                    self._say(GO_ON, after=cut)
                case "pause_turn":
                    pass
                case reason:
                    return self._ended("error", text=text, error=f"Messages API: the model stopped: {reason}.")

    async def _ask(self, *, calls: bool = True) -> dict[str, Any]:
        """One request, tried until it is answered, or refused for good."""
        from anthropic import APIConnectionError, APIStatusError

        tools = [
            {"name": one.name, "description": one.description, "input_schema": one.schema}
            for one in await self._toolbox.tools(self._spec)
        ]
        asked: dict[str, Any] = {
            "model": self._conversation.model,
            "max_tokens": MAX_OUTPUT,
            "system": self._conversation.system,
            "messages": self._conversation.request(),
        }
        if tools:
            asked |= {"tools": tools, "tool_choice": {"type": "auto" if calls else "none"}}
        create: Any = self._client.messages.create  # its parameters are typed dictionaries of many shapes
        for attempt in range(1, MAX_ATTEMPTS + 1):
            await self._limits.ready()
            try:
                answer = await create(**asked)
            except (APIStatusError, APIConnectionError) as error:
                status = error.status_code if isinstance(error, APIStatusError) else 0
                if attempt == MAX_ATTEMPTS or (0 < status < 500 and status not in (408, 409, 429)):
                    raise
                named = error.response.headers.get("retry-after") if isinstance(error, APIStatusError) else None
                self._limits.refused(_seconds(named) if status in OVERLOADED else None)
                why = f"HTTP {status}" if status else "no connection"
                self._emit(Emission(kind="note", text=f"{why}; asked again after {self._limits.pause_s:.1f} s."))
                continue
            self._limits.accepted()
            found = cast("dict[str, Any]", answer.to_dict(mode="json"))
            used, cost = await self._count(found)
            blocks = found["content"]
            self._transcripts.answer(
                self._spec,
                "\n".join(str(one["text"]) for one in blocks if one["type"] == "text"),
                calls=[one for one in blocks if one["type"] == "tool_use"],
                stop_reason=str(found["stop_reason"]),
                usage=used,
                cost=cost,
                model=str(found["model"]),
            )
            return found
        raise AssertionError("the last attempt returns or raises")

    async def _count(self, answer: Mapping[str, Any]) -> tuple[Usage, float | None]:
        """What the answer took, and its cost."""
        given = answer["usage"]
        now = Usage(
            input=given.get("input_tokens") or 0,
            output=given.get("output_tokens") or 0,
            cache_write=given.get("cache_creation_input_tokens") or 0,
            cache_read=given.get("cache_read_input_tokens") or 0,
        )
        self._window.counted(now)
        self._usage = self._usage.plus(now)
        # In a thread: rates are read when a model is first met.
        cost = await anyio.to_thread.run_sync(self._cost, str(answer["model"]), now)
        self._cost_usd = None if cost is None or self._cost_usd is None else self._cost_usd + cost
        self._emit(Emission(kind="usage", usage=self._usage, cost_usd=self._cost_usd, estimated=True))
        return now, cost

    async def _call(self, one: Mapping[str, Any]) -> dict[str, Any]:
        self._emit(called(one["name"], one["input"]))
        began = time.perf_counter()
        try:
            answer = await self._toolbox.answer(self._spec, str(one["name"]), dict(one["input"] or {}))
        except SerenaCentralError as error:
            answer = ToolAnswer(str(error), failed=True)
        took_ms = (time.perf_counter() - began) * 1000
        self._transcripts.call(self._spec, one, answer.text, failed=answer.failed, duration_ms=took_ms)
        return _result(one, answer.text, answer.failed)

    async def _compact(self, trigger: str) -> None:
        blocked = await self._toolbox.compacting(self._spec, trigger)
        if blocked is not None:
            self._window.wanted, self._blocked = False, self._blocked or trigger == "auto"
            self._emit(Emission(kind="note", text=f"Not compacted: a hook for PreCompact says: {blocked}"))
            return
        before = self._window.used
        self._say(SUMMARISE)
        answer = await self._ask(calls=False)
        summary = "\n".join(str(one["text"]) for one in answer["content"] if one["type"] == "text")
        text = self._conversation.restart(summary)
        self._transcripts.summary(self._spec, text, model=self._conversation.model)
        self._window.compacted()
        self._emit(Emission(kind="note", text=f"Compacted: {before} tokens were used of {WINDOW}."))

    def _ended(self, status: Any, *, text: str = "", error: str = "") -> TaskResult:
        return TaskResult(
            status=status,
            text=text,
            error=error,
            usage=self._usage,
            cost_usd=self._cost_usd,
            cost_source="estimated" if self._cost_usd is not None else "",
            resume_id=self._spec.transcript.session,
        )


def _text(text: str, *, cached: bool = False) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    return {**block, "cache_control": {"type": "ephemeral"}} if cached else block


def _result(call: Mapping[str, Any], text: str, failed: bool) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text or "(empty)", "is_error": failed}


def _without_keys(text: str) -> str:
    for name in KEYS:
        if key := os.environ.get(name):
            text = text.replace(key, MASK)
    return masked(text)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None
