"""Hooks for the tools of clients themselves: what a client's own hook says of an event, decided by the same rules.

Calls of this server's own tools are left alone here: their hooks run with the call, whichever way it came. Of Claude
Code's events only those hooks run that it does not run by itself.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serena_central.core.clock import utc
from serena_central.core.errors import SerenaCentralError
from serena_central.gates.checks import Baseline, Checks
from serena_central.gates.conditions import EDITED_BY_OTHERS, SYMBOL
from serena_central.gates.engine import Asked, Matched, matching, run_hooks
from serena_central.gates.events import CheckEnd, GateEvent, Outcome
from serena_central.gates.matching import ToolUse, is_rule
from serena_central.gates.rules import Hook
from serena_central.hook.payload import event_of, tool_use_of
from serena_central.projects.project import Project
from serena_central.projects.registry import opener_in
from serena_central.projects.root_policy import has_marker
from serena_central.sessions.session import Session
from serena_central.tools.context import Services
from serena_central.tools.gated_call import means_of
from serena_central.tools.gating import GateAnswer

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective
    from serena_central.claude_config.rules import Effect

_RUN = frozenset(
    ("bash", "shell", "run_shell_command", "run_in_terminal", "runterminalcommand", "local_shell", "exec_command")
)
_EDIT = frozenset(
    (
        *(
            "edit",
            "write",
            "multiedit",
            "notebookedit",
            "apply_patch",
            "write_file",
            "replace",
            "edit_file",
            "create_file",
        ),
        *("replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file", "search_replace"),
        *("delete_file", "delete"),
    )
)
_READ = {
    **dict.fromkeys(("read", "read_file"), "Read"),
    **dict.fromkeys(("grep", "grep_search", "search_file_content"), "Grep"),
    **dict.fromkeys(("glob", "file_search"), "Glob"),
    **dict.fromkeys(("ls", "list_directory"), "LS"),
}

_PATHS = ("file_path", "filePath", "path", "target_file", "absolute_path", "notebook_path")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
"""Files in the patches of Codex's and VS Code's apply_patch."""

CLAUDE_CODE = "claude-code"
BEFORE, AFTER = "PreToolUse", "PostToolUse"


NOTHING = GateAnswer()


async def native_event(
    services: Services, session: Session, name: str, client: str, said: dict[str, Any]
) -> GateAnswer:
    """Runs the hooks of one event of a client."""
    happened, use = event_of(said), tool_use_of(said)
    folder = Path(happened.folder or session.working_folder or "/")
    if not folder.is_absolute() or (use.tool and is_own(use.tool, services)):
        return NOTHING
    root = root_around(folder)
    found = services.claude.of(root)
    if found is None or not found.has_hooks:
        return NOTHING
    halt = services.gating.halted().get(session.id)
    if halt is not None:
        return GateAnswer(decision="deny", reason=_halted(session.id, halt.reason, halt.at), halted=True)
    rules = services.gating.rules(root, found)
    event = GateEvent(
        name,
        session.id,
        root,
        native_use(use.tool, use.arguments, folder) if use.tool else None,
        happened.why or str(said.get("notification_type") or ""),
        summary=str(said.get("last_assistant_message") or "") if name in ("Stop", "SubagentStop") else "",
        client=client,
        more={key: said[key] for key in ("prompt", "message", "source", "trigger", "tool_response") if key in said},
    )
    gate = _NativeGate(services, session, root, found, event)
    await gate.note(rules.checks, client)
    wanted = [hook for hook in rules.of(name) if client != CLAUDE_CODE or not runs_by_itself(hook)]
    matched = matching(wanted, event)
    after = {hook.name for hook in rules.of(AFTER)}
    return await gate.run([one for one in matched if not one.hook.background], after) if matched else NOTHING


def is_own(tool: str, services: Services) -> bool:
    """Whether a client's name of a tool means one of this server's: `mcp__serena__find_symbol`, `MCP:find_symbol`."""
    last = re.split(r"__|[:/.]", tool)[-1]
    return tool.lower().startswith("mcp") and services.catalogue.get(last) is not None


def runs_by_itself(hook: Hook) -> bool:
    """Whether Claude Code runs a hook, too: it knows neither rules as matchers, nor checks and conditions of ours."""
    ours = hook.condition.startswith((SYMBOL, "path(", EDITED_BY_OTHERS)) or " and " in hook.condition
    return hook.kind != "check" and not is_rule(hook.matcher) and not ours


def native_use(tool: str, arguments: Mapping[str, Any], folder: Path) -> ToolUse:
    """A client's tool in the format's terms."""
    name = tool.lower()
    effect: Effect = "other"
    kinds: tuple[str, ...] = ()
    if name in _RUN:
        effect, kinds = "run", ("Bash",)
    elif name in _EDIT:
        effect, kinds = "edit", ("Edit", "Write", "MultiEdit")
    elif name in _READ:
        effect, kinds = "read", (_READ[name],)
    command = arguments.get("command")
    if isinstance(command, list):
        command = " ".join(map(str, command))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    texts = [value for value in arguments.values() if isinstance(value, str)] if name == "apply_patch" else []
    paths = [arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)]
    paths += [path.strip() for text in texts for path in _PATCHED.findall(text)]
    return ToolUse(
        tuple(dict.fromkeys((tool, *kinds))),
        effect,
        arguments,
        command=command if effect == "run" and isinstance(command, str) else None,
        files=list(dict.fromkeys(str(folder / path) for path in paths if path)),
    )


def root_around(folder: Path) -> Path:
    """The nearest folder around one that looks like a project, else that itself."""
    real = folder.resolve()
    home = Path.home().resolve()
    around = (at for at in (real, *real.parents) if not home.is_relative_to(at))
    return next((at for at in around if has_marker(at) or (at / ".claude").is_dir()), real)


class _NativeGate:
    def __init__(self, services: Services, session: Session, root: Path, found: "Effective", event: GateEvent) -> None:
        self._services = services
        self._session = session
        self._root = root
        self._found = found
        self._event = event
        self._opened: Project | None = None

    async def note(self, checks: frozenset[str], client: str) -> None:
        """Has the checks know what is there before an edit, what is edited, and what succeeded."""
        use = self._event.use
        if not checks or use is None or use.effect not in ("edit", "run"):
            return
        try:
            made = await self._checks()
            if use.effect == "edit" and self._event.name == BEFORE:
                await made.learn(checks, self._inside(use.files))
                made.edited(self._inside(use.files))
            elif self._event.name == AFTER and client == CLAUDE_CODE and use.command:
                await made.succeeded(use.command)  # it reports failures by another event
        except SerenaCentralError:
            return  # the check itself says what it can't know

    async def run(self, matched: Sequence[Matched], after: Collection[str]) -> GateAnswer:
        """`after`: names of the hooks after tools."""
        gating, session, root = self._services.gating, self._session.id, str(self._root)
        due = gating.states.due(session, root, matched)
        if self._event.name == BEFORE and (
            failed := gating.states.failed_stage(session, root, after, self._event, due)
        ):
            return GateAnswer(decision="deny", reason=failed)
        means = means_of(gating, self._root, self._found, self._check, self._decide)
        outcome = await run_hooks(due, self._event, means)
        gating.states.ran(session, root, due, outcome)
        if outcome.halted:
            halt = gating.halt(self._session.id, outcome.halted, outcome.ran[-1].hook, self._root)
            return GateAnswer(decision="deny", reason=_halted(self._session.id, halt.reason, halt.at), halted=True)
        return _answer(outcome)

    async def _check(self, asked: Asked) -> CheckEnd:
        return await (await self._checks()).check(asked.hook)

    async def _decide(self, asked: Asked, condition: str) -> bool:
        """Symbols that a client's own edit is about are not known, and so the condition holds."""
        if condition != EDITED_BY_OTHERS:
            return asked.event.use is not None and asked.event.use.effect == "edit"
        inside = self._inside([asked.file]) if asked.file else []
        return not inside or await (await self._checks()).edited_by_others(inside[0])

    async def _checks(self) -> Checks:
        services = self._services
        if self._opened is None:
            root = services.projects.find(str(self._root), opener_in(str(self._root), person=False))
            self._opened = await services.projects.open(root)
        state = services.gating.states.of(self._session.id)
        baseline = state.baselines.setdefault(str(self._root), Baseline())
        return Checks(self._opened, self._session.id, baseline, services.history, services.validation)

    def _inside(self, files: Sequence[str]) -> list[str]:
        paths = [Path(file) for file in files]
        return [path.relative_to(self._root).as_posix() for path in paths if path.is_relative_to(self._root)]


def _answer(outcome: Outcome) -> GateAnswer:
    decision = "deny" if outcome.blocked else "ask" if outcome.asks else ""
    return GateAnswer(
        decision=decision,
        reason=outcome.blocked or outcome.asks,
        context="\n".join(outcome.context),
        updated_input=outcome.updated if not decision else None,
    )


def _halted(session: str, reason: str, at: float) -> str:
    return f"This session was halted at {utc(at)}: {reason}. A person can resume it: serena-central resume {session}"
