"""A scripted model on loopback, which real coding agents and SDKs take for the one that they are configured for.

    script = [
        Call("mcp__serena__find_symbol", {"name_path_pattern": "Cart"}),
        lambda request: Text(request.results[-1].text),
    ]
    async with scripted_model(script) as model:
        ...  # run a client with its base URL set to model.url (OpenAI's: model.url + "/v1")
    assert "cart.py" in model.requests[-1].results[-1].text

`endpoint` says what it serves, `script` what a step can be, `request` what a test can read of each request. The wire
formats are one module each: `anthropic`, `responses`, `chat`, `gemini`.
"""

from tests.support.models.endpoint import ScriptedModel, scripted_model
from tests.support.models.request import Request, ToolResult
from tests.support.models.script import Call, Refusal, Script, Step, Text

__all__ = ["Call", "Refusal", "Request", "Script", "ScriptedModel", "Step", "Text", "ToolResult", "scripted_model"]
