"""Hooks of type http: what they may reach, what they are sent, what their answers decide."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from serena_central.app import Application
from serena_central.core.errors import HookBlocked, SessionHalted
from serena_central.gates.http_hooks import may_reach
from tests.support.central import running_parts, session_of
from tests.support.serving import serving

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(answer: Callable[[Request], Awaitable[Response]]) -> AsyncGenerator[str]:
    app = Starlette(routes=[Route("/{path:path}", answer, methods=["POST", "GET"])])
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    async with serving(uvicorn.Server(config)) as url:
        yield url


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path) as central:
        yield central


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop/.claude").mkdir(parents=True)
    return tmp_path / "shop"


def hook(root: Path, url: str, **more: Any) -> None:
    group = {"matcher": "Write", "hooks": [{"type": "http", "url": url, **more}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))


async def write(central: Application, root: Path) -> str:
    asked = {"project": str(root), "relative_path": "a.txt", "content": "a"}
    answer = await central.caller.call(session_of(central), "create_text_file", asked)
    return "\n".join(answer.blocks)


async def test_an_answer_decides_as_a_commands_output_does(central: Application, root: Path) -> None:
    seen: list[tuple[dict[str, Any], str | None]] = []
    answers = [
        JSONResponse({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}}),
        Response("forbidden words", 403),
        Response("broken", 500),
        JSONResponse({"hookSpecificOutput": {"additionalContext": "mind the gap"}}),
        JSONResponse({"continue": False, "stopReason": "enough"}),
    ]

    async def answer(request: Request) -> Response:
        seen.append((await request.json(), request.headers.get("x-team")))
        return answers.pop(0)

    async with answering(answer) as url:
        hook(root, f"{url}/hook", headers={"X-Team": "shop", "Host": "elsewhere"})
        for reason in ("not today", "forbidden words", "status 500"):
            with pytest.raises(HookBlocked, match=reason):
                await write(central, root)
        assert not (root / "a.txt").exists()
        assert "mind the gap" in await write(central, root)
        with pytest.raises(SessionHalted, match="enough"):
            await write(central, root)
    said, team = seen[0]
    assert (said["tool_name"], said["tool_input"]["content"], team) == ("create_text_file", "a", "shop")


async def test_a_redirect_is_not_followed(central: Application, root: Path) -> None:
    reached: list[str] = []

    async def answer(request: Request) -> Response:
        reached.append(request.url.path)
        return RedirectResponse("/secret", 307)

    async with answering(answer) as url:
        hook(root, f"{url}/hook")
        with pytest.raises(HookBlocked, match="status 307"):
            await write(central, root)
    assert reached == ["/hook"]


async def test_answers_without_end_and_without_beginning_are_bounded(central: Application, root: Path) -> None:
    async def flood() -> AsyncGenerator[bytes]:
        while True:
            yield b"x" * 65536
            await anyio.lowlevel.checkpoint()

    async def answer(request: Request) -> Response:
        if request.url.path == "/flood":
            return StreamingResponse(flood())
        await anyio.sleep(3600)
        raise AssertionError

    async with answering(answer) as url:
        hook(root, f"{url}/flood")
        await write(central, root)
        hook(root, f"{url}/silence", timeout=0.2)
        with pytest.raises(HookBlocked, match="no answer within"):
            await write(central, root)


async def test_nobody_listening_and_other_machines_block_with_the_remedy(central: Application, root: Path) -> None:
    hook(root, "http://127.0.0.1:9/")
    with pytest.raises(HookBlocked, match="Start what listens there"):
        await write(central, root)
    hook(root, "http://192.0.2.1/hook")
    with pytest.raises(HookBlocked, match="allowedHttpHookUrls"):
        await write(central, root)


ALLOWED = ("https://hooks.example/*", "https://any*")


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("http://127.0.0.1:8080/x", True),
        ("http://[::1]/x", True),
        ("http://localhost/x", True),
        ("https://hooks.example/a", True),
        ("https://hooks.example.evil/a", False),
        ("https://any.evil/a", False),
        ("http://127.0.0.1@evil/", False),
        ("http://127.0.0.1.evil/", False),
        ("http://localhost:bad/", False),
        ("file:///etc/passwd", False),
        ("ftp://127.0.0.1/", False),
        ("http://0x7f.1.evil/", False),
        ("", False),
    ],
)
def test_which_urls_may_be_reached(url: str, may: bool) -> None:
    assert may_reach(url, ALLOWED) is may
