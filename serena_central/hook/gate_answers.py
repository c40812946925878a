"""Turns the decision of a gate into what each client reads, by event."""

from typing import Any

from serena_central.hook.payload import DIALECTS, Json

BEFORE, AFTER, PROMPT = "PreToolUse", "PostToolUse", "UserPromptSubmit"
STOPS = ("Stop", "SubagentStop")

NO_SERVER = (
    "serena-central is not running, so that its hooks did not run for this client's own tools. "
    "Start it with: serena-central serve"
)


REFUSED = "serena-central did not run its hooks for this client's own tools:"


def answer_for(client: str, event: str, said: Json) -> Json | None:
    """What a client reads; None to say nothing, and it continues. `said` is the server's answer."""
    decision, reason = _text(said, "decision"), _text(said, "reason")
    context, halted = _text(said, "context"), said.get("halted") is True
    dialect = DIALECTS[client]
    answer: Json = {}
    if event == BEFORE and decision:
        answer = dialect.stop(decision if dialect.can_ask else "deny", reason)
        if "user_message" in answer:  # which is about searches otherwise
            answer["user_message"] = reason
    elif decision and event in (AFTER, PROMPT, *STOPS):
        answer = _stopped(client, event, reason)
    elif context:
        answer = _context(client, event, context)
    elif event == BEFORE and client in ("claude-code", "vscode") and isinstance(said.get("updated_input"), dict):
        changed = {"hookEventName": BEFORE, "permissionDecision": "allow", "updatedInput": said["updated_input"]}
        answer = {"hookSpecificOutput": changed}
    # Cursor has no such answer; Codex runs the tool if the one that denies it says `continue`, too.
    if halted and client != "cursor" and (client, event) != ("codex", BEFORE):
        answer |= {"continue": False, "stopReason": reason}
    return answer or None


def _stopped(client: str, event: str, reason: str) -> Json:
    """After a tool it is what must be fixed; at a stop, why the agent has to go on."""
    if client == "cursor":
        if event == PROMPT:
            return {"continue": False, "user_message": reason}
        return {"followup_message": reason} if event in STOPS else {"additional_context": reason}
    return {"decision": "deny" if client == "gemini" else "block", "reason": reason}


def _context(client: str, event: str, text: str) -> Json:
    if client == "cursor":
        return {"additional_context": text}
    names = {BEFORE: "BeforeTool", AFTER: "AfterTool", PROMPT: "BeforeAgent"} if client == "gemini" else {}
    inner: dict[str, Any] = {"hookEventName": names.get(event, event), "additionalContext": text}
    return (
        {"hookSpecificOutput": inner} if event in (BEFORE, AFTER, PROMPT, "SessionStart") else {"systemMessage": text}
    )


def _text(said: Json, name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""
