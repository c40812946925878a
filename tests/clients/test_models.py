"""The scripted model speaks as the SDKs of the models' makers expect it."""

import json
import os

import anyio
import pytest

from tests.clients.agents import INSTALLED
from tests.clients.test_interop import HERE
from tests.support.child import PATIENCE_S
from tests.support.models import Call, Text, scripted_model

pytestmark = pytest.mark.anyio


async def test_each_sdk_reads_a_text_and_two_calls_whole_and_streamed() -> None:
    turn = [Text("It is here."), Call("find", {"name": "Ünï"}), Call("find", {})]
    program = [str(INSTALLED.parent / "python" / "bin" / "python"), "-I", str(HERE / "models.py")]
    with anyio.fail_after(PATIENCE_S):
        async with scripted_model([turn]) as model:
            ended = await anyio.run_process([*program, model.url], stderr=None, env={"PATH": os.environ["PATH"]})
    told = [json.loads(line) for line in ended.stdout.decode().splitlines()]
    said = ["It is here.", [["find", {"name": "Ünï"}], ["find", {}]]]
    formats = ("anthropic", "chat", "responses", "gemini")
    assert told == [[form, way, *said] for form in formats for way in ("whole", "streamed")]
    assert [(request.format, request.streamed) for request in model.requests] == [
        (form, streamed) for form in formats for streamed in (False, True)
    ]
    assert {tuple(request.prompts) for request in model.requests} == {("Where is Cart?",)}
