"""The model makers' own SDKs with a scripted model: `models.py URL`. Prints what each makes of its answer, a line each:
format, way, text, and calls with their arguments."""

import json
import sys
from collections.abc import Iterable
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

URL = sys.argv[1]

PROMPT = "Where is Cart?"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


def tell(form: str, way: str, text: str | None, calls: Iterable[tuple[str, Any]]) -> None:
    sys.stdout.write(json.dumps([form, way, text, list(calls)]) + "\n")


def ask_anthropic() -> None:
    client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 10,
        "tools": [{"name": "find", "input_schema": SCHEMA}],
        "messages": [{"role": "user", "content": PROMPT}],
    }
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for way, message in (("whole", whole), ("streamed", streamed)):
        assert message.stop_reason == "tool_use"
        text = "".join(block.text for block in message.content if block.type == "text")
        tell("anthropic", way, text, [(b.name, b.input) for b in message.content if b.type == "tool_use"])


def ask_openai() -> None:
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
    chat: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": PROMPT}],
        "tools": [{"type": "function", "function": {"name": "find", "parameters": SCHEMA}}],
    }
    whole = client.chat.completions.create(**chat)
    with client.chat.completions.stream(**chat) as stream:
        streamed = stream.get_final_completion()
    for way, completion in (("whole", whole), ("streamed", streamed)):
        message = completion.choices[0].message
        functions = [call.function for call in message.tool_calls]
        tell("chat", way, message.content, [(one.name, json.loads(one.arguments)) for one in functions])
    tools = [{"type": "function", "name": "find", "parameters": SCHEMA, "strict": False}]
    asked: dict[str, Any] = {"model": "m", "input": PROMPT, "tools": tools}
    response = client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    for way, answer in (("whole", response), ("streamed", final)):
        calls = [item for item in answer.output if item.type == "function_call"]
        tell("responses", way, answer.output_text, [(one.name, json.loads(one.arguments)) for one in calls])


def ask_gemini() -> None:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=URL))
    tool = types.Tool(function_declarations=[{"name": "find", "parameters_json_schema": SCHEMA}])
    automatic = types.AutomaticFunctionCallingConfig(disable=True)
    asked: dict[str, Any] = {
        "model": "m",
        "contents": PROMPT,
        "config": types.GenerateContentConfig(tools=[tool], automatic_function_calling=automatic),
    }
    whole = [client.models.generate_content(**asked)]
    streamed = list(client.models.generate_content_stream(**asked))
    assert len(streamed) > 1
    for way, answers in (("whole", whole), ("streamed", streamed)):
        parts = [part for answer in answers for part in answer.candidates[0].content.parts]
        calls = [part.function_call for part in parts if part.function_call]
        tell("gemini", way, "".join(part.text or "" for part in parts), [(one.name, one.args) for one in calls])


ask_anthropic()
ask_openai()
ask_gemini()
