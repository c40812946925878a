"""Rows about a server that nobody asks anything: its CPU time, and its memory."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.bench import Bench, Server, processor_ms
from benchmarks.browser import Browser
from benchmarks.client import Client
from benchmarks.load import proportional_bytes
from benchmarks.table import Row

SESSIONS = 200
PAGES = ("/dashboard/live", "/dashboard/live/sessions", "/dashboard/live/servers", "/dashboard/live/projects")
DASHBOARDS = 10
PROMPT = {"type": "ref/prompt", "name": "onboarding"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
MEASURED_S = 60.0

INSTALLED_S = 120.0
"""For what a fresh home installs, at most."""

TAKEN_IN_S = 30.0
"""By then the background has asked a server that was installed about the files that were read without it."""


def resting(bench: Bench) -> Iterator[Row]:
    """CPU time with many idle sessions and open dashboards, and none of either."""
    server = Server(bench.fresh_home("idle"))
    try:
        with ExitStack() as stack:
            own = server.tree[0]
            server.client().call("activate_project", project=str(bench.django))
            server.await_index()
            _await_installed(server)
            server.await_quiet()
            alone = _share(server)
            yield Row(
                "memory of the server alone, Django open",
                "≤ 100 MB",
                proportional_bytes(own) / 1e6,
                unit="MB",
                note="PSS, nobody has searched or opened the dashboard",
            )
            agent = server.client()
            stack.callback(agent.follow().close)
            for method in LISTS:
                agent.ask(method)
            agent.ask("prompts/get", name="onboarding")
            agent.ask("resources/read", uri=f"serena://projects/{bench.django.name}/overview")
            agent.ask("completion/complete", ref=PROMPT, argument={"name": "project", "value": ""})
            server.await_quiet()
            yield Row(
                "… with a client as agents are",
                "≤ 100 MB",
                proportional_bytes(own) / 1e6,
                unit="MB",
                note="PSS; it follows the stream outside of calls, asked for all lists, read a resource, got a prompt",
            )
            agent.ask("prompts/get", name="onboarding", unknown="member")
            server.await_quiet()
            yield Row(
                "… when a message came that only the MCP SDK reads",
                "≤ 100 MB",
                proportional_bytes(own) / 1e6,
                unit="MB",
                note="PSS; one with a member that the protocol does not have. Tracing has it loaded, too",
            )
            clients = [_idle(stack, server, number) for number in range(SESSIONS)]
            for number in range(DASHBOARDS):
                _look(server, PAGES[number % len(PAGES)])
            time.sleep(5)
            share = _share(server)
            note = f"{alone:.2f} % with neither; the server's process, {MEASURED_S:.0f} s"
            what = f"CPU time of an idle server, {len(clients)} sessions, {DASHBOARDS} dashboards"
            yield Row(what, "< 0.2 %", share, unit="%", note=note)
    finally:
        server.stop()


def _await_installed(server: Server) -> None:
    """Until the language servers that Django misses are there and have read their files: that is no idle time."""
    deadline = time.monotonic() + INSTALLED_S
    while any(one["installing"] for one in server.get("/api/v1/projects?open=true")["projects"]):
        if time.monotonic() > deadline:
            raise TimeoutError("a language server is still being installed")
        time.sleep(1)
    time.sleep(TAKEN_IN_S)


def _idle(stack: ExitStack, server: Server, number: int) -> Client:
    client = server.client("handshake" if number % 2 else "modern")
    stack.callback(client.close)
    client.call("get_current_config")
    return client


def _look(server: Server, stream: str) -> None:
    """A browser that reads a page's stream until the server ends."""
    browser = Browser(server)
    threading.Thread(target=browser.follow, args=(stream,), daemon=True).start()


def _share(server: Server) -> float:
    """Per cent of one processor that the server itself takes."""
    own = server.tree[0]
    before, began = processor_ms(own), time.perf_counter()
    time.sleep(MEASURED_S)
    return (processor_ms(own) - before) / (time.perf_counter() - began) / 10
