"""One call with hooks: what runs before it, what follows its edits, what runs after it.

Before an edit the files that it will change are learnt by planning it (a dry run), so that rules about paths and
FILE_PATH hold for every file of a rename; the edit may then change these and no others.
"""

import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from serena_central.claude_config.effective import Effective
from serena_central.claude_config.substitution import Resolved, revealed
from serena_central.claude_config.tiers import Tier
from serena_central.core.clock import utc
from serena_central.core.errors import HookBlocked, InvalidArguments, SerenaCentralError, SessionHalted
from serena_central.core.masking import is_secret_name
from serena_central.core.progress import waiting_for
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.gates.checks import TESTS, Baseline, Checks
from serena_central.gates.conditions import EDITED_BY_OTHERS, Decide, holds
from serena_central.gates.engine import Asked, Check, Matched, Means, matching, run_hooks
from serena_central.gates.events import CheckEnd, GateEvent, Outcome
from serena_central.gates.matching import ToolUse, may_match
from serena_central.gates.rules import Rules, rules_of
from serena_central.gates.symbol_condition import symbol_holds
from serena_central.projects.editing.edit_records import AppliedEdit
from serena_central.projects.editing.joint_edits import EditWatch, Holding, watching_edits
from serena_central.projects.project import Project
from serena_central.tools.answer import PassedOn
from serena_central.tools.catalogue import PATH_PARAMETERS, Tool
from serena_central.tools.context import ToolCall
from serena_central.tools.symbol_answers import ReadSet
from serena_central.tools.tool_effects import SHELL, hook_names
from serena_central.tools.upstream_tool import UpstreamTool

if TYPE_CHECKING:
    from serena_central.tools.gating import Gating

BEFORE, AFTER = "PreToolUse", "PostToolUse"


def is_concerned(found: Effective, tool: Tool, *, on_project: bool) -> bool:
    """Whether any hook of the settings may run around a tool, whatever that is called with and whoever trusts it."""
    rules = rules_of(found, None)
    if rules.checks and _learns(tool, on_project=on_project):
        return True
    effect, names = hook_names(tool)
    use = ToolUse(names, effect, {})
    return any(may_match(hook.matcher, hook.matches, use) for hook in (*rules.of(BEFORE), *rules.of(AFTER)))


def _learns(tool: Tool, *, on_project: bool) -> bool:
    """Whether checks follow what a tool does."""
    return on_project and ((tool.edits and tool.journaled) or tool.name == SHELL)


def means_of(gating: "Gating", root: Path, found: Effective, check: Check, decide: Decide) -> Means:
    """What the engine needs in a root: commands get the settings' `env`, as far as it is trusted."""
    of_tier = found.of_tier
    urls = [url for tier in (Tier.ENTERPRISE, Tier.USER) for url in of_tier(tier).get("allowedHttpHookUrls", ())]
    given = found.environment(trusted=gating.trusts(root))
    return Means(
        check,
        partial(holds, home=found.locations.home, decide=decide),
        urls,
        gating.forks,
        {name: str(revealed(value)) for name, value in given.items()},
        frozenset(
            str(revealed(value)) for name, value in given.items() if isinstance(value, Resolved) or is_secret_name(name)
        ),
    )


class GatedCall:
    """Of one call in one root."""

    def __init__(
        self,
        gating: "Gating",
        call: ToolCall,
        tool: Tool,
        root: Path,
        project: Project | None,
        rules: Rules,
        found: Effective,
    ) -> None:
        self._gating = gating
        self._call = call
        self._tool = tool
        self._root = root
        self._project = project
        self._found = found
        self._edits = tool.edits and tool.journaled and project is not None
        self._approved: frozenset[str] | None = None
        self._before, self._after = rules.of(BEFORE), rules.of(AFTER)
        learns = _learns(tool, on_project=project is not None)
        self._checked: frozenset[str] = rules.checks if learns else frozenset()

    async def before(self, parsed: dict[str, Any]) -> dict[str, Any]:
        """Runs what comes before the tool; its arguments, as hooks may have changed them.

        Raises:
            HookBlocked: a hook stopped it, or asks for a person's consent.
            SessionHalted: a hook halted the session.
        """
        parsed = await self._allowed(parsed)
        if self._tool.name == SHELL and TESTS in self._checked:
            await self._checks().begins(self._call.id, str(parsed.get("command") or ""))
        return parsed

    async def _allowed(self, parsed: dict[str, Any]) -> dict[str, Any]:
        """The arguments, as hooks may have changed them. Raises as `before` does."""
        if parsed.get("dry_run"):
            self._before = self._after = ()
            self._checked = frozenset[str]()
            return parsed
        if self._checked and self._edits:
            await self._learn(parsed)
        # Which files an edit concerns is not known yet, and not worth a plan where no hook may look at any.
        if not matching(self._before, self._event(BEFORE, self._use({} if self._edits else parsed))):
            return parsed
        began = time.monotonic()
        try:
            event = self._event(BEFORE, await self._planned(parsed))
            matched = matching(self._before, event)
            after = {hook.name for hook in self._after}
            states, root = self._gating.states, str(self._root)
            if failed := states.failed_stage(event.session, root, after, event, matched):
                raise HookBlocked(self._tool.name, failed)
            outcome = await self._run(matched, event)
        finally:
            self._call.began += time.monotonic() - began  # hooks have deadlines of their own
        if outcome.blocked or outcome.asks:
            raise HookBlocked(self._tool.name, outcome.blocked or outcome.asks)
        if outcome.updated is not None:
            return await self._updated(parsed, outcome.updated)
        return parsed

    @contextmanager
    def watching(self) -> Generator[None]:
        """Around the tool: its edits change what hooks have seen, and hooks follow them."""
        follows = bool(self._after or self._checked)
        if not self._edits or self._project is None or not (follows or self._approved is not None):
            with nullcontext():
                yield
            return
        watch = EditWatch(
            self._root,
            self._approved,
            follow_up=self._follow if follows else None,
            later=self._later if self._after else None,
        )
        with watching_edits(watch):
            yield

    async def after(self, parsed: Mapping[str, Any], result: Any) -> None:
        """Runs what comes after a tool that made no edit. Never raises for what a hook says: the tool has run."""
        if self._edits:
            return  # what follows edits has run with each
        if self._tool.name == SHELL and TESTS in self._checked and getattr(result, "return_code", None) == 0:
            self._checks().succeeded(self._call.id, str(parsed.get("command") or ""))
        event = self._event(
            AFTER, self._use(parsed), tool_response=_plain(result.result if isinstance(result, PassedOn) else result)
        )
        matched = matching(self._after, event)
        await self._run_after([one for one in matched if not one.hook.background], event)
        for one in matched:
            if one.hook.background:
                self._gating.start_hooks(partial(self._in_background, [one], event))

    # --- edits -----------------------------------------------------------------------------------------------------

    async def _planned(self, parsed: dict[str, Any]) -> ToolUse:
        """The tool's use with the files that it concerns."""
        use = self._use(parsed)
        if not self._edits or self._project is None or "dry_run" not in parsed:
            return use
        files: set[str] = set()

        def planned(paths: Collection[str]) -> None:
            files.clear()  # of several attempts the last one counts
            files.update(paths)

        # A call of its own, whose notes nobody gets.
        part = self._call.part("")
        with watching_edits(EditWatch(self._root, planned=planned)):
            await self._tool.function(part, self._project, **{**parsed, "dry_run": True})
        self._approved = frozenset(files)
        return self._use(parsed, sorted(files))

    async def _learn(self, parsed: dict[str, Any]) -> None:
        """Has the checks know what is wrong before the edit."""
        began = time.monotonic()
        try:
            use = await self._planned(parsed)
            await self._checks().learn(self._checked, self._inside(use.files))
        finally:
            self._call.began += time.monotonic() - began

    def _inside(self, files: Sequence[str]) -> list[str]:
        return [Path(file).relative_to(self._root).as_posix() for file in files]

    async def _follow(self, edit: AppliedEdit) -> None:
        if self._checked:
            both = (path for file in edit.files for path in (file.path, file.moved_to) if path)
            self._checks().edited(list(both))
        event = self._event(AFTER, self._use_of(edit))._replace(holds=True)
        matched = matching(self._after, event)
        await self._run_after([one for one in matched if not one.hook.background], event)
        if matched and event.use is not None and (gone := _missing(event.use.files)):
            names = ", ".join(quoted(one) for one in self._inside(gone))
            self._call.note(f"After this edit {names} was removed, by one of its hooks or meanwhile.")

    def _later(self, edit: AppliedEdit, holding: Holding) -> None:
        event = self._event(AFTER, self._use_of(edit))._replace(holds=True)
        matched = [one for one in matching(self._after, event) if one.hook.background]
        if matched and self._project is not None:
            self._gating.start_hooks(partial(self._hold_and_run, matched, event, holding))

    async def _hold_and_run(self, matched: Sequence[Matched], event: GateEvent, holding: Holding) -> None:
        assert self._project is not None
        try:
            edited = await holding(partial(self._in_background, matched, event))
        except SerenaCentralError as error:
            self._gating.states.tell(self._call.session.id, f"a hook after {self._tool.name} did not run: {error}")
            return
        ReadSet(self._call, self._project).record(edited)

    def _use_of(self, edit: AppliedEdit) -> ToolUse:
        return self._use({}, [file.moved_to or file.path for file in edit.files if not file.deleted])

    # --- running ---------------------------------------------------------------------------------------------------

    async def _run(self, matched: Sequence[Matched], event: GateEvent) -> Outcome:
        """Raises SessionHalted."""
        outcome = await self._ran(matched, event)
        if outcome.halted:
            halt = self._gating.halt(event.session, outcome.halted, outcome.ran[-1].hook, self._root)
            raise SessionHalted(event.session, halt.reason, utc(halt.at))
        for text in outcome.context:
            self._call.note(text)
        return outcome

    async def _ran(self, matched: Sequence[Matched], event: GateEvent, *, waits: bool = True) -> Outcome:
        """`waits`: the call waits for them."""
        states, root = self._gating.states, str(self._root)
        due = states.due(event.session, root, matched)
        with waiting_for(lambda: (_named(due, event), None)) if waits and due else nullcontext():
            outcome = await run_hooks(due, event, self._means())
        states.ran(event.session, root, due, outcome)
        return outcome

    async def _run_after(self, matched: Sequence[Matched], event: GateEvent) -> None:
        if not matched:
            return
        outcome = await self._ran(matched, event)
        for text in _said(outcome):
            self._call.note(text)
        if outcome.halted:
            self._gating.halt(event.session, outcome.halted, outcome.ran[-1].hook, self._root)

    async def _in_background(self, matched: Sequence[Matched], event: GateEvent) -> None:
        outcome = await self._ran(matched, event, waits=False)
        for text in _said(outcome):
            self._gating.states.tell(event.session, text)
        if outcome.halted:
            self._gating.halt(event.session, outcome.halted, outcome.ran[-1].hook, self._root)

    def _means(self) -> Means:
        return means_of(self._gating, self._root, self._found, self._check, self._decide)

    async def _check(self, asked: Asked) -> CheckEnd:
        if self._project is None:
            return CheckEnd("it needs a project, and this call names none.")
        return await self._checks().check(asked.hook)

    async def _decide(self, asked: Asked, condition: str) -> bool:
        """Whether a condition holds; in doubt it does."""
        if self._project is None:
            return True
        if condition == EDITED_BY_OTHERS:
            return not asked.file or await self._checks().edited_by_others(*self._inside([asked.file]))
        return await symbol_holds(self._project, asked, condition)

    def _checks(self) -> Checks:
        assert self._project is not None
        state, services = self._gating.states.of(self._call.session.id), self._call.services
        baseline = state.baselines.setdefault(str(self._root), Baseline())
        return Checks(self._project, self._call.session.id, baseline, services.history, services.validation)

    # --- data ------------------------------------------------------------------------------------------------------

    def _event(self, name: str, use: ToolUse, **more: Any) -> GateEvent:
        session = self._call.session
        return GateEvent(name, session.id, self._root, use, client=session.client_name, more=more)

    def _use(self, parsed: Mapping[str, Any], files: Sequence[str] = ()) -> ToolUse:
        effect, names = hook_names(self._tool)
        if isinstance(self._tool, UpstreamTool):
            parsed = parsed.get("arguments", {})
        named = files or [path for name in PATH_PARAMETERS if isinstance(path := parsed.get(name), str) and path]
        command = parsed.get("command") if self._tool.name == SHELL else None
        return ToolUse(
            names,
            effect,
            parsed,
            command=command if isinstance(command, str) else None,
            files=[str(self._root / path) for path in named],
        )

    async def _updated(self, parsed: dict[str, Any], updated: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with what hooks changed.

        Raises:
            HookBlocked: for what the tool does not take.
        """
        of_upstream = isinstance(self._tool, UpstreamTool)
        own = parsed["arguments"] if of_upstream else parsed
        given = {name: value for name, value in updated.items() if of_upstream or name != "file_path" or name in own}
        try:
            checked = self._tool.parse({**own, **given})
        except InvalidArguments as error:
            raise HookBlocked(self._tool.name, f"a hook changed its input to what it does not take: {error}") from error
        if of_upstream:
            return {**parsed, "arguments": checked["arguments"]}
        fresh = {name: checked[name] for name in parsed}
        if self._approved is not None:
            await self._planned(fresh)
        return fresh


def _named(matched: Sequence[Matched], event: GateEvent) -> str:
    """The hooks that run, for progress."""
    first = quoted(matched[0].hook.name) if matched else ""
    return f"{counted(len(matched), f'{event.name} hook')} ({first}{', …' if len(matched) > 1 else ''})"


def _said(outcome: Outcome) -> list[str]:
    """What hooks said after a tool, in sentences."""
    problems = [text for text in (outcome.blocked, outcome.asks, outcome.halted) if text]
    return [*outcome.context, *(f"To be fixed: {text}" for text in problems)]


def _missing(files: Sequence[str]) -> list[str]:
    return [file for file in files if not os.path.lexists(file)]


def _plain(result: Any) -> Any:
    """A tool's result as JSON; what is another type is shown by its name."""
    if isinstance(result, PassedOn):
        result = result.result
    try:
        return msgspec.to_builtins(result)
    except (TypeError, msgspec.ValidationError):
        return type(result).__name__
