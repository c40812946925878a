"""What a hook's end means: its exit code, and the JSON that it may write to stdout.

Exit 0 goes on, and the JSON counts; 2 blocks, with stderr as the reason; any other halts the session, but for 126 and
127, by which a shell says that it could not run the command. After a tool has run nothing is left to block: a
failure is reported, and halts nothing.
"""

import json
import re
from typing import Any, NamedTuple

from serena_central.claude_config.document import as_object

BLOCKS = 2
NOT_EXECUTABLE, NOT_FOUND = 126, 127

LARGEST_JSON = 256 * 1024
"""Bytes of stdout that are looked at."""

TEXT_CHARS = 4000
"""Of what one hook says that is passed on."""

_PERMISSIONS = {"allow": "allow", "approve": "allow", "deny": "deny", "block": "deny", "ask": "ask", "defer": ""}
"""What a hook may decide, in any case. Another word is no leave to go on."""

_MEANT = re.compile(r"""["'](?:permissionDecision|decision|continue)["']\s*:""")
"""A decision in what is not JSON: a comma too many, a dictionary as Python prints it, or a line before it."""

_CONTEXT_EVENTS = ("SessionStart", "UserPromptSubmit")
"""At these, plain stdout is for the model."""


class Decision(NamedTuple):
    """`permission` is "allow", "deny", "ask" or "". `stop`: the session is halted, for `reason`."""

    permission: str = ""
    reason: str = ""
    context: str = ""
    updated: dict[str, Any] | None = None
    stop: bool = False


def decision_of(stdout: str, event: str) -> Decision:
    """The decision in a hook's stdout. What is not a JSON object decides nothing, but for one that was meant to be a
    decision: it is no leave to go on."""
    text = stdout.strip()
    said: Any = None
    trouble = "its stdout must be a JSON object and nothing else"
    if text.startswith("{") and len(text) <= LARGEST_JSON:
        try:
            said = as_object(json.loads(text))
        except (ValueError, RecursionError) as error:
            trouble = str(error)
    if said is None and _MEANT.search(text):
        return Decision("deny", f"what it decides is unknown: {trouble}")
    if said is None:
        return Decision(context=shortened(text)) if text and event in _CONTEXT_EVENTS else Decision()
    inner = as_object(said.get("hookSpecificOutput")) or {}
    reason = _text(inner, "permissionDecisionReason") or _text(said, "reason", "stopReason", "systemMessage")
    if said.get("continue") is False:
        return Decision("deny", _text(said, "stopReason") or reason or "the hook ended the session", stop=True)
    given = [one.get(name) for one in (inner, said) for name in ("permissionDecision", "decision")]
    decided = str(next(filter(None, given), "defer"))
    permission = _PERMISSIONS.get(decided.lower())
    if permission is None:
        permission, reason = "deny", f"its decision {decided} is none of allow, deny, ask. {reason}".rstrip()
    return Decision(
        permission,
        shortened(reason),
        shortened(_text(inner, "additionalContext") or _text(said, "additionalContext", "systemMessage")),
        as_object(inner.get("updatedInput")) or as_object(said.get("updatedInput")),
    )


def shortened(text: str) -> str:
    """A hook's text, bounded; its end is kept, where programs say what went wrong."""
    return text if len(text) <= TEXT_CHARS else f"… {text[-TEXT_CHARS:]}"


def _text(said: dict[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := said.get(name), str) and value), "")
