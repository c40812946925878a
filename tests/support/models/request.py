"""What a client sent to the model, in one form for all wire formats."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Format = Literal["anthropic", "responses", "chat", "gemini"]


@dataclass(frozen=True)
class ToolResult:
    """What the client answered to a call of the model. `failed` is None where the format has no flag (OpenAI's)."""

    tool: str
    text: str
    failed: bool | None


@dataclass(frozen=True)
class Request:
    """One request for a turn of the model.

    `tools` maps the name of each tool that is offered to its definition as sent. `prompts` and `results` are the texts
    of the user and the results of tools in the whole conversation, oldest first; `turns` counts the model's turns.
    `system` holds the texts that are neither the user's nor the model's, wherever they stand. `body` is the JSON as it
    came; the names in `headers` are in lower case.
    """

    format: Format
    model: str
    streamed: bool
    system: str
    tools: Mapping[str, Mapping[str, Any]]
    prompts: list[str]
    results: list[ToolResult]
    turns: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    input_tokens: int = 1
    """What the model counts for it (Anthropic's format)."""


def texts_of(content: Any) -> str:
    """The text of a content that is a string, or a list of blocks of which some have a `text`."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if isinstance(block.get("text"), str))
