"""The HTTP server of a scripted model: four wire formats at one port of loopback, each streamed and whole.

| path | format |
|---|---|
| /v1/messages, /v1/messages/count_tokens | Anthropic |
| /v1/responses | OpenAI's responses |
| /v1/chat/completions | OpenAI's chat completions |
| /{version}/models/{model}:generateContent, :streamGenerateContent, :countTokens | Gemini |
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.models import anthropic, chat, gemini, responses
from tests.support.models.request import Request
from tests.support.models.script import Refusal, Script, Step, Text, reply_to
from tests.support.serving import serving

FORMATS: Mapping[str, ModuleType] = {
    "anthropic": anthropic,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
}


OK = Text("ok")


@dataclass
class ScriptedModel:
    """A model that answers requests by its script, and keeps them.

    A request that offers no tools is an aside (a title, a summary, a check of the account): it is kept in `asides` and
    answered with the step `aside`, and the script does not count it. `elsewhere` are the paths that were asked for and
    are none of a model's. `faults` are what went wrong in the script itself; the client got status 400.
    """

    script: Script
    aside: Step = OK
    input_tokens: Callable[[Request], int] = lambda _request: 1
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    asides: list[Request] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        (self.requests if request.tools else self.asides).append(request)
        try:
            reply = await reply_to(self.script if request.tools else lambda _: self.aside, request)
        except Exception as fault:  # noqa: BLE001 - raised when the model ends
            self.faults.append(fault)
            reply = Refusal(400, repr(fault))
        if isinstance(reply, Refusal):
            return _refused(reply)
        form = FORMATS[request.format]
        request = replace(request, input_tokens=self.input_tokens(request))
        if not request.streamed:
            return JSONResponse(form.whole(request, reply))
        return StreamingResponse(_stream(request, form.events(request, reply)), media_type="text/event-stream")


@asynccontextmanager
async def scripted_model(
    script: Script, *, aside: Step = OK, input_tokens: Callable[[Request], int] = lambda _request: 1
) -> AsyncGenerator[ScriptedModel]:
    """Serves until the block ends. Raises then what a step of the script raised, or ScriptEnded if the model was asked
    for more turns than its script has."""
    model = ScriptedModel(script, aside, input_tokens)
    config = uvicorn.Config(_app(model), log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    async with serving(uvicorn.Server(config)) as model.url:
        yield model
    for fault in model.faults:
        raise fault


def _app(model: ScriptedModel) -> Starlette:
    def asked(form: ModuleType) -> Any:
        async def answer(http: HttpRequest) -> Response:
            return await model.answer(_with_headers(form.read(await http.json()), http))

        return answer

    async def gemini_asked(http: HttpRequest) -> Response:
        name, _, method = http.path_params["call"].rpartition(":")
        if method == "countTokens":
            return JSONResponse({"totalTokens": 1})
        request = gemini.read(await http.json(), name, streamed=method == "streamGenerateContent")
        return await model.answer(_with_headers(request, http))

    async def count(_: HttpRequest) -> Response:
        return JSONResponse({"input_tokens": 1})

    async def elsewhere(http: HttpRequest) -> Response:
        model.elsewhere.append(f"{http.method} {http.url.path}")
        return _refused(Refusal(404, "not found"))

    return Starlette(
        routes=[
            Route("/v1/messages", asked(anthropic), methods=["POST"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
            Route("/v1/responses", asked(responses), methods=["POST"]),
            Route("/v1/chat/completions", asked(chat), methods=["POST"]),
            Route("/{version}/models/{call:path}", gemini_asked, methods=["POST"]),
            Route("/{path:path}", elsewhere, methods=["GET", "HEAD", "POST", "PUT", "DELETE"]),
        ]
    )


def _with_headers(request: Request, http: HttpRequest) -> Request:
    return replace(request, headers=dict(http.headers))


def _stream(request: Request, events: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n"
    if request.format == "chat":
        yield "data: [DONE]\n\n"


def _refused(refusal: Refusal) -> Response:
    """In the shape of all formats at once."""
    error = {"type": "api_error", "code": refusal.status, "status": "UNKNOWN", "message": refusal.message}
    return JSONResponse({"type": "error", "error": error}, refusal.status)
