"""A scripted MCP server over stdio, run as a real child process: what public ones can't be made to do on demand.

    python upstream.py '{"crash_in": ["boom"], "log": "/tmp/x/log.jsonl"}'

Its behaviours are the fields of `Script`. Each line that it reads is appended to `log`, one JSON object per line,
beside `{"event": …}` lines of its own. Standard library only, so that it starts as quickly as it can.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


@dataclass
class Script:
    """Defaults are those of a well-behaved server."""

    log: str = ""
    version: str = "1.0"
    tools: list[dict[str, Any]] = field(default_factory=list)
    """Beside its own."""
    tools_file: str = ""
    """Where more of them are: a command line has no room for many."""
    banner: str = ""
    """Written to stdout before everything else, and after each answer."""
    stderr_bytes: int = 0
    """Written to stderr at the start."""
    never_initialize: bool = False
    exit_at_start: int | None = None
    ignore_sigterm: bool = False
    fork: bool = False
    """Starts a child that holds its stdout and outlives it."""
    silent_pings: bool = False
    failing_lists: list[int] = field(default_factory=list)
    """Which listings of its tools fail, counted from 1."""
    restless: bool = False
    """Says whenever its tools are listed that they have changed."""
    modern_only: bool = False
    expands: bool = False
    """`$NAME` in what its tools are asked for is its own variable: what it answers then was not in the question."""
    last_stderr: str = "cannot start: no database"


class Server:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.lock = threading.Lock()
        self.answers: dict[Any, Any] = {}
        self.came = threading.Condition()
        self.cancelled: set[Any] = set()
        self.next_id = 1000
        self.state: dict[str, int] = {}
        self.subscribed: set[str] = set()
        self.lists = 0
        self.level = "error"
        """Of log messages: less severe ones are not sent."""

    def note(self, **what: Any) -> None:
        if self.script.log:
            with Path(self.script.log).open("a", encoding="utf-8") as log:
                log.write(json.dumps(what) + "\n")

    def send(self, message: dict[str, Any]) -> None:
        with self.lock:
            if self.script.banner:
                sys.stdout.write(self.script.banner + "\n")
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """A request to the client; its result or error."""
        with self.lock:
            self.next_id += 1
            own = self.next_id
        self.send({"id": own, "method": method, "params": params})
        with self.came:
            self.came.wait_for(lambda: own in self.answers, timeout=30)
            return self.answers.pop(own, None)

    def run(self) -> None:
        script = self.script
        self.note(event="started", pid=os.getpid(), environment=dict(os.environ), folder=str(Path.cwd()))
        if script.ignore_sigterm:
            signal.signal(signal.SIGTERM, lambda *_: self.note(event="sigterm"))
        if script.stderr_bytes:
            for _ in range(script.stderr_bytes // 1000):
                sys.stderr.write("e" * 999 + "\n")
        if script.fork:
            subprocess.Popen(["sleep", "600"], start_new_session=True)
        if script.exit_at_start is not None:
            sys.stderr.write(os.path.expandvars(script.last_stderr) + "\n")
            sys.exit(script.exit_at_start)
        for line in sys.stdin:
            message = json.loads(line)
            self.note(read=message)
            if "method" not in message:
                with self.came:
                    self.answers[message["id"]] = message.get("result", message)
                    self.came.notify_all()
            elif message["method"] == "notifications/cancelled":
                self.cancelled.add(message["params"]["requestId"])
            elif "id" in message:
                threading.Thread(target=self.handle, args=(message,), daemon=True).start()
                while message.get("params", {}).get("name") == "deaf":
                    time.sleep(60)
        self.note(event="eof")
        while script.ignore_sigterm:
            time.sleep(0.1)

    def handle(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        result = getattr(self, message["method"].replace("/", "_"), lambda *_: None)(message["id"], params)
        if result is None:
            return
        if self.script.modern_only:
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        if "error" in result:
            self.send({"id": message["id"], "error": result["error"]})
        else:
            self.send({"id": message["id"], "result": result})

    def initialize(self, _id: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        if self.script.never_initialize:
            return None
        if self.script.modern_only:
            return {"error": {"code": -32601, "message": "Method not found"}}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {},
                "resources": {"subscribe": True},
                "logging": {},
            },
            "serverInfo": {"name": "scripted", "version": self.script.version},
        }

    def server_discover(self, _id: Any, _params: Any) -> dict[str, Any]:
        if not self.script.modern_only:
            return {"error": {"code": -32601, "message": "Method not found"}}
        about = {"name": "scripted", "version": self.script.version}
        return {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": about},
        }

    def ping(self, _id: Any, _params: Any) -> dict[str, Any] | None:
        return None if self.script.silent_pings else {}

    def prompts_list(self, _id: Any, _params: Any) -> dict[str, Any]:
        return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}

    def prompts_get(self, _id: Any, params: Any) -> dict[str, Any]:
        text = f"Greet {params['arguments']['who']}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    def resources_list(self, _id: Any, _params: Any) -> dict[str, Any]:
        return {"resources": [{"uri": "scripted://one", "name": "one", "mimeType": "text/plain"}]}

    def resources_templates_list(self, _id: Any, _params: Any) -> dict[str, Any]:
        return {"resourceTemplates": [{"uriTemplate": "scripted://n/{number}", "name": "numbered"}]}

    def resources_subscribe(self, _id: Any, params: Any) -> dict[str, Any]:
        if params["uri"].endswith("refused"):
            return {"error": {"code": -32002, "message": "no such resource"}}
        self.subscribed.add(params["uri"])
        return {}

    def resources_unsubscribe(self, _id: Any, params: Any) -> dict[str, Any]:
        self.subscribed.discard(params["uri"])
        return {}

    def logging_setLevel(self, _id: Any, params: Any) -> dict[str, Any]:  # noqa: N802 (MCP's name)
        self.level = params["level"]
        return {}

    def resources_read(self, _id: Any, params: Any) -> dict[str, Any]:
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"content of {params['uri']}"}]}

    def tools_list(self, _id: Any, _params: Any) -> dict[str, Any]:
        self.lists += 1
        if self.lists in self.script.failing_lists:
            return {"error": {"code": -32603, "message": "the tools can't be listed now"}}
        if self.script.restless:
            self.send({"method": "notifications/tools/list_changed"})
        own = (
            "echo",
            "who",
            "slow",
            "boom",
            "never",
            "progress",
            "ask",
            "elicit",
            "roots",
            "grow",
            "error",
            "refuse",
            "needs_input",
            "log",
            "large",
            "all",
            "hold",
            "touch",
            "complain",
            "raw",
            "mute",
            "pester",
            "deaf",
            "chatter",
        )
        return {
            "tools": [
                *({"name": name, "description": f"Does {name}", "inputSchema": TEXT} for name in own),
                {
                    "name": "strict",
                    "description": "Checks its arguments",
                    "inputSchema": {
                        "type": "object",
                        "properties": {"count": {"type": "integer", "minimum": 1}, "name": {"type": "string"}},
                        "required": ["count"],
                        "additionalProperties": False,
                    },
                },
                *self.script.tools,
                *(json.loads(Path(self.script.tools_file).read_text()) if self.script.tools_file else ()),
            ]
        }

    def tools_call(self, request: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        name, arguments = params["name"], params.get("arguments") or {}
        text = arguments.get("text", "")
        if self.script.expands:
            text = os.path.expandvars(text)
        match name:
            case "needs_input":
                responses = params.get("inputResponses")
                if not responses:
                    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
                    asked = {"mode": "form", "message": text, "requestedSchema": schema}
                    question = {"method": "elicitation/create", "params": asked}
                    questions = {"q": question} | {f"q{number}": question for number in range(arguments.get("more", 0))}
                    return {"resultType": "input_required", "inputRequests": questions, "requestState": "s"}
                text = json.dumps(responses["q"])
            case "complain":
                sys.stderr.write(text + "\n")
                sys.stderr.flush()
            case "raw":
                with self.lock:
                    sys.stdout.write(text.replace("ID", str(request)) + "\n")
                    sys.stdout.flush()
                return None
            case "mute":
                os.close(1)
                return None
            case "refuse":
                return {"error": {"code": -32001, "message": text}}
            case "log":
                wanted = params.get("_meta", {}).get("io.modelcontextprotocol/logLevel", self.level)
                for level in ("debug", "info", "error"):
                    if LEVELS.index(level) >= LEVELS.index(wanted):
                        self.send({"method": "notifications/message", "params": {"level": level, "data": text}})
            case "chatter":
                for number in range(int(text)):
                    self.send({"method": "notifications/message", "params": {"level": "error", "data": number}})
            case "touch":
                if text in self.subscribed:
                    self.send({"method": "notifications/resources/updated", "params": {"uri": text}})
            case "who":
                text = f"{os.getpid()}"
            case "slow":
                for _ in range(int(float(text or 1) * 50)):
                    time.sleep(0.02)
                    if request in self.cancelled:
                        self.note(event="cancelled", id=request)
                        return None
            case "hold":
                self.progress(params.get("_meta", {}).get("progressToken"), 1, f"holding {text}")
                deadline = time.monotonic() + 30
                while request not in self.cancelled and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.note(event="cancelled" if request in self.cancelled else "held", text=text)
                return None
            case "boom":
                os.kill(os.getpid(), signal.SIGKILL)
            case "never":
                return None
            case "progress":
                token = params.get("_meta", {}).get("progressToken")
                for step in range(1, 4):
                    self.progress(token, step, f"{text} {step}")
                    time.sleep(0.02)
            case "ask":
                asked = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 5}
                answer = self.ask("sampling/createMessage", asked)
                text = json.dumps(answer)
            case "pester":
                asked = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5}
                with ThreadPoolExecutor(int(text)) as asking:
                    every = [asking.submit(self.ask, "sampling/createMessage", asked) for _ in range(int(text))]
                    text = json.dumps([one.result() for one in every])
            case "deaf":
                for number in range(int(text)):
                    self.send({"id": f"own-{number}", "method": "ping"})
            case "elicit":
                schema = {"type": "object", "properties": {"name": {"type": "string"}}}
                text = json.dumps(self.ask("elicitation/create", {"message": text, "requestedSchema": schema}))
            case "roots":
                text = json.dumps(self.ask("roots/list", {}))
            case "grow":
                more = {"name": text, "description": "was added", "inputSchema": TEXT}
                self.script.tools.append(more)
                self.send({"method": "notifications/tools/list_changed"})
            case "error":
                return {"content": [{"type": "text", "text": f"failed: {text}"}], "isError": True}
            case "large":
                text = "".join(f"line {number}\n" for number in range(int(text)))
            case "all":
                return {
                    "content": [
                        {"type": "text", "text": "one"},
                        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
                        {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
                        {"type": "resource_link", "uri": "scripted://one", "name": "one"},
                        {"type": "resource", "resource": {"uri": "scripted://two", "text": "embedded"}},
                    ],
                    "structuredContent": {"value": [1, 2, {"three": None}]},
                    "_meta": {"own": "kept"},
                }
            case _:
                pass
        return {"content": [{"type": "text", "text": text}]}

    def progress(self, token: Any, step: int, message: str) -> None:
        if token is not None:
            params = {"progressToken": token, "progress": step, "total": 3, "message": message}
            self.send({"method": "notifications/progress", "params": params})


if __name__ == "__main__":
    Server(Script(**json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})).run()
