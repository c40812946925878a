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
_OBJECT = re.compile(r"(?:^|\r)[ \t]*\{", re.MULTILINE)
MOST_BROKEN = 100
"""Objects of an output that can't be read: each may have been looked through to its end."""

_MEANT = re.compile(r"""[{,]\s*["']?(?:permissionDecision|decision|continue)["']?\s*:""")
"""A decision in what is not JSON: a comma too many, or an object as Python or Node prints it."""

_DROPPED = re.compile(
    rb"""[{,]\s*["']?(?:permissionDecision|decision|continue|hookSpecificOutput|updatedInput)["']?\s*:"""
)

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
    """The decision in a hook's stdout; of several that which lets the least pass. What holds none decides nothing, but
    for what was meant to be one and can't be read: that is no leave to go on."""
    text = stdout.strip().removeprefix("\ufeff")
    is_context = event in _CONTEXT_EVENTS
    objects, trouble = _objects_in(text) if text.startswith("{") or not is_context else ([], "")
    if objects:
        return max((_decision(said, event) for said in objects), key=_strictness)
    if trouble:
        return _unknown(event, trouble)
    return Decision(context=shortened(text)) if text and is_context else Decision()


def _strictness(decision: Decision) -> int:
    return 3 if decision.stop else {"deny": 2, "ask": 1}.get(decision.permission, 0)


def _decision(said: dict[str, Any], event: str) -> Decision:
    """What one object decides."""
    inner = as_object(said.get("hookSpecificOutput")) or {}
    for one, name, kind in (
        (said, "continue", bool),
        (said, "hookSpecificOutput", dict),
        (said, "updatedInput", dict),
        (inner, "updatedInput", dict),
    ):
        if not isinstance(one.get(name), kind | None):
            return _unknown(event, f"{name} is of the wrong type")
    reason = _text(inner, "permissionDecisionReason") or _text(said, "reason", "stopReason", "systemMessage")
    if said.get("continue") is False:
        return Decision("deny", _text(said, "stopReason") or reason or "the hook ended the session", stop=True)
    given = [one.get(name) for one in (inner, said) for name in ("permissionDecision", "decision")]
    decided = str(next((one for one in given if one not in (None, "")), "defer"))
    permission = _PERMISSIONS.get(decided.lower())
    if permission is None:
        permission, reason = "deny", f"its decision {decided} is none of allow, deny, ask. {reason}".rstrip()
    return Decision(
        permission,
        shortened(reason),
        shortened(_text(inner, "additionalContext") or _text(said, "additionalContext", "systemMessage")),
        as_object(inner.get("updatedInput")) or as_object(said.get("updatedInput")),
    )


def _objects_in(text: str) -> tuple[list[dict[str, Any]], str]:
    """The objects at the beginning of a line that decide something, or that are the whole text; hooks print more than
    they should. Where there are none: why one can't be read that was meant to decide."""
    found: list[dict[str, Any]] = []
    at, broken, trouble = 0, 0, ""
    while broken < MOST_BROKEN and (begin := _OBJECT.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, begin.end() - 1)
        except (ValueError, RecursionError) as error:
            at, broken, trouble = begin.end(), broken + 1, trouble or str(error)
            continue
        if value.keys() & _KEYS or (begin.start() == 0 and not text[at:].strip()):
            found.append(value)
    return found, trouble if _MEANT.search(text) else ""


def may_decide(output: bytes) -> bool:
    """Whether a part of an output, which is not kept, was meant to decide something."""
    return _DROPPED.search(output) is not None


def _unknown(event: str, trouble: str) -> Decision:
    said = f"what it decides is unknown: {trouble}"
    return Decision(context=said) if event in _STOPS else Decision("deny", said)


def shortened(text: str) -> str:
    """A hook's text, bounded; its end is kept, where programs say what went wrong."""
    return text if len(text) <= TEXT_CHARS else f"… {text[-TEXT_CHARS:]}"


def _text(said: dict[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := said.get(name), str) and value), "")
