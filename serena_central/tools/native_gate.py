"""Hooks for the tools of clients themselves: what a client's own hook says of an event, decided by the same rules.

Calls of this server's own tools are left alone here: their hooks run with the call, whichever way it came. Of Claude
Code's events only those hooks run that it does not run by itself.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serena_central.gates.conditions import EDITED_BY_OTHERS, SYMBOL
from serena_central.gates.engine import matching
from serena_central.gates.events import SESSION_EVENTS, GateEvent
from serena_central.gates.matching import ToolUse, is_rule
from serena_central.gates.rules import Hook
from serena_central.hook.payload import event_of, tool_use_of
from serena_central.projects.root_paths import check_is_there
from serena_central.projects.root_policy import has_marker
from serena_central.sessions.session import Session
from serena_central.tools.context import Services
from serena_central.tools.event_gate import CLAUDE_CODE, EventGate, halted_reason
from serena_central.tools.gated_call import AFTER
from serena_central.tools.gating import GateAnswer

if TYPE_CHECKING:
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

_PASSED_ON = ("prompt", "message", "source", "trigger", "tool_use_id", "tool_response")
"""What a client says of an event that hooks are given as it is."""

NOTHING = GateAnswer()


async def native_event(
    services: Services, session: Session, name: str, client: str, said: dict[str, Any], ancestors: Collection[int] = ()
) -> GateAnswer:
    """Runs the hooks of one event of a client. `ancestors`: ids of processes, the client's among them."""
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
        return GateAnswer(decision="deny", reason=halted_reason(session.id, halt.reason, halt.at), halted=True)
    rules = services.gating.rules(root, found)
    if name in SESSION_EVENTS and found.has_session_hooks:
        reports = services.gating.session_hooks(services)
        hooks = [hook.name for hook in rules.of(name)]
        if not reports.report(session, ancestors, name, root, happened.why, hooks):
            return NOTHING
    event = GateEvent(
        name,
        session.id,
        root,
        native_use(use.tool, use.arguments, folder) if use.tool else None,
        happened.why or str(said.get("notification_type") or said.get("agent_type") or ""),
        summary=str(said.get("last_assistant_message") or "") if name in ("Stop", "SubagentStop") else "",
        client=client,
        more={key: said[key] for key in _PASSED_ON if key in said},
    )
    gate = EventGate(services, found, event)
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
    """The nearest folder around one that looks like a project, else that itself.

    Raises:
        ProjectRefused: nobody can look at it now.
    """
    check_is_there(folder)
    real = folder.resolve()
    home = Path.home().resolve()
    around = (at for at in (real, *real.parents) if not home.is_relative_to(at))
    return next((at for at in around if has_marker(at) or (at / ".claude").is_dir()), real)
