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

_KEYS = {
    *("continue", "decision", "permissionDecision", "hookSpecificOutput"),
    *("updatedInput", "additionalContext", "systemMessage"),
}
"""Those by which an object decides something. A reason is also given in lines of a log."""

_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
MOST_OBJECTS = 100
"""Of an output that are looked at."""

_MEANT = re.compile(r"""[{,]\s*["']?(?:permissionDecision|decision|continue)["']?\s*:""")
"""A decision in what is not JSON: a comma too many, or an object as Python or Node prints it."""

_STOPS = ("Stop", "SubagentStop")
"""To deny these would be to go on."""

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
    """The decision in a hook's stdout. What holds none decides nothing, but for what was meant to be one and can't be
    read: that is no leave to go on."""
    text = stdout.strip().removeprefix("\ufeff")
    is_context = event in _CONTEXT_EVENTS
    said, trouble = _object_in(text) if text.startswith("{") or not is_context else (None, "")
    if trouble:
        return _unknown(event, trouble)
    if said is None:
        return Decision(context=shortened(text)) if text and is_context else Decision()
    for name, kind in (("continue", bool), ("hookSpecificOutput", dict)):
        if not isinstance(said.get(name), kind | None):
            return _unknown(event, f"{name} is of the wrong type")
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


def _object_in(text: str) -> tuple[dict[str, Any] | None, str]:
    """The first object at the beginning of a line that decides something, or that is the whole text; hooks print more
    than they should. Else why one can't be read that was meant to decide."""
    at, trouble = 0, ""
    for _ in range(MOST_OBJECTS if len(text) <= LARGEST_JSON else 0):
        begin = _OBJECT.search(text, at)
        if begin is None:
            break
        try:
            value, at = _DECODER.raw_decode(text, begin.end() - 1)
        except (ValueError, RecursionError) as error:
            at, trouble = begin.end(), trouble or str(error)
            continue
        if value.keys() & _KEYS or (begin.start() == 0 and not text[at:].strip()):
            return value, ""
    return None, trouble if _MEANT.search(text) else ""


def _unknown(event: str, trouble: str) -> Decision:
    said = f"what it decides is unknown: {trouble}"
    return Decision(context=said) if event in _STOPS else Decision("deny", said)


def shortened(text: str) -> str:
    """A hook's text, bounded; its end is kept, where programs say what went wrong."""
    return text if len(text) <= TEXT_CHARS else f"… {text[-TEXT_CHARS:]}"


def _text(said: dict[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := said.get(name), str) and value), "")
