"""A scripted language server, run as a real child process: what real ones can't be made to do on demand.

    python fake_server.py '{"crash_on": ["textDocument/hover"], "log": "/tmp/x/log.jsonl"}'

Its behaviours are the fields of `Script`. Every message that it reads is appended to `log`, one JSON object per line,
beside `{"event": …}` lines of its own (`started` with its pid, `child` with a child's pid, `eof`, `sigterm`).
Standard library only, so that it starts as quickly as it can.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

DEFAULT_CAPABILITIES: dict[str, Any] = {
    "positionEncoding": "utf-8",
    "textDocumentSync": 1,
    "documentSymbolProvider": True,
    "hoverProvider": True,
    "referencesProvider": True,
    "definitionProvider": True,
}


WORK = "import time; until = time.process_time() + 0.3\nwhile time.process_time() < until: pass"


@dataclass
class Script:
    """Defaults are those of a well-behaved server."""

    log: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    version: str = "1.0"
    answers: dict[str, Any] = field(default_factory=dict)
    """Method → result; else hover echoes the open document's text and version, other requests answer null."""
    first_answers: dict[str, list[Any]] = field(default_factory=dict)
    """Method → results that are given before."""
    never_initialize: bool = False
    fail_initialize: str = ""
    """initialize is answered with an error of this message."""
    exit_at_start: int | None = None
    crash_on: list[str] = field(default_factory=list)
    """The process kills itself when it reads one of these methods."""
    crash_times: str = ""
    """A file that counts crashes down: it holds a number, and at 0 the server no longer crashes."""
    hang_on: list[str] = field(default_factory=list)
    """These are never answered; everything else is."""
    freeze_on: list[str] = field(default_factory=list)
    """After one of these, nothing is read any more."""
    work_on: list[str] = field(default_factory=list)
    """So, too, but one program after another works for it."""
    late_on: dict[str, float] = field(default_factory=dict)
    """Answered after so many seconds, while other requests are served."""
    cancels_late: bool = False
    """Those are cancelled when a notification comes meanwhile."""
    errors: dict[str, list[int]] = field(default_factory=dict)
    """Method → error codes, one per request, before it is answered properly."""
    nulls: dict[str, int] = field(default_factory=dict)
    """Method → how many requests are answered null before it is answered properly."""
    garbage_on: dict[str, str] = field(default_factory=dict)
    """Method → `json` (a frame that is not JSON, with the id), `shape` (a result of another shape), `framing`."""
    flood_stderr_bytes: int = 0
    ignore_eof: bool = False
    ignore_sigterm: bool = False
    ignore_shutdown: bool = False
    detached_child: bool = False
    """A child in a session of its own, that outlives its parent for an hour."""
    say: list[dict[str, Any]] = field(default_factory=list)
    """Messages sent after `initialized`: requests when they have an id, else notifications."""
    say_on: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Messages sent when a method is read, before it is answered."""
    say_after: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Messages sent in one go with the answer to a method, right behind it."""


class FakeServer:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.lock = threading.RLock()  # a signal may arrive while a note is written
        self.documents: dict[str, dict[str, Any]] = {}
        self.notified = 0
        self.log_file = open(script.log, "a", buffering=1, encoding="utf-8") if script.log else None  # noqa: SIM115, PTH123 - open for life

    def note(self, entry: dict[str, Any]) -> None:
        if self.log_file:
            with self.lock:
                self.log_file.write(json.dumps(entry) + "\n")

    def start(self) -> None:
        script = self.script
        self.note({"event": "started", "pid": os.getpid()})
        if script.exit_at_start is not None:
            sys.stderr.write("the fake server does not want to start\n")
            sys.exit(script.exit_at_start)
        if script.ignore_sigterm:
            signal.signal(signal.SIGTERM, lambda *_: self.note({"event": "sigterm"}))
        if script.detached_child:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)"], start_new_session=True
            )
            self.note({"event": "child", "pid": child.pid})
        if script.flood_stderr_bytes:
            sys.stderr.write("x" * script.flood_stderr_bytes + "\nthe end of the flood\n")
            sys.stderr.flush()
        while (message := read()) is not None:
            self.note(message)
            self.take(message)
        self.note({"event": "eof"})
        while script.ignore_eof:
            time.sleep(3600)

    def take(self, message: dict[str, Any]) -> None:
        script = self.script
        method = message.get("method", "")
        if method in script.crash_on and self.may_crash():
            os.kill(os.getpid(), signal.SIGKILL)
        for words in script.say_on.get(method, []):
            self.send(words)
        if method in script.freeze_on:
            while True:
                time.sleep(3600)
        while method in script.work_on:
            subprocess.run([sys.executable, "-I", "-S", "-c", WORK], check=False)
        if "id" not in message:
            self.hear(method, message.get("params") or {})
        elif method and method not in script.hang_on:
            delay = script.late_on.get(method)
            if delay is None:
                self.answer(message)
            else:
                threading.Timer(delay, self.answer_late, [message, self.notified]).start()

    def answer_late(self, message: dict[str, Any], notified: int) -> None:
        if self.script.cancels_late and self.notified > notified:
            self.send({"id": message["id"], "error": {"code": -32801, "message": "content modified"}})
        else:
            self.answer(message)

    def may_crash(self) -> bool:
        path = self.script.crash_times
        if not path:
            return True
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes its time to import
            left = int(file.read())
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
            file.write(str(max(left - 1, 0)))
        return left > 0

    def hear(self, method: str, params: dict[str, Any]) -> None:
        self.notified += 1
        if method == "initialized":
            for words in self.script.say:
                self.send(words)
        elif method == "textDocument/didOpen":
            self.documents[params["textDocument"]["uri"]] = dict(params["textDocument"])
        elif method == "textDocument/didChange":
            document = self.documents[params["textDocument"]["uri"]]
            document["version"] = params["textDocument"]["version"]
            document["text"] = params["contentChanges"][-1]["text"]
        elif method == "textDocument/didClose":
            del self.documents[params["textDocument"]["uri"]]
        elif method == "exit" and not self.script.ignore_shutdown:
            os._exit(0)

    def answer(self, message: dict[str, Any]) -> None:
        method, request_id = message["method"], message["id"]
        codes = self.script.errors.get(method)
        if codes:
            self.send({"id": request_id, "error": {"code": codes.pop(0), "message": "as scripted"}})
            return
        garbage = self.script.garbage_on.get(method)
        if garbage == "json":
            write(f'{{"jsonrpc": "2.0", "id": {request_id}, "result": [1, 2'.encode(), lock=self.lock)
        elif garbage == "framing":
            sys.stdout.buffer.write(b"this is no header\r\n\r\n")
            sys.stdout.buffer.flush()
        elif garbage == "shape":
            self.send(
                {
                    "id": request_id,
                    "result": {"contents": {}, "unexpected": [[]]} if method != "textDocument/hover" else 17,
                }
            )
        elif method == "initialize":
            self.initialize(request_id)
        elif method == "shutdown" and self.script.ignore_shutdown:
            return
        elif method.startswith("$/"):
            self.send({"id": request_id, "error": {"code": -32601, "message": "unknown"}})
        else:
            result = self.result(method, message.get("params") or {})
            self.send({"id": request_id, "result": result}, *self.script.say_after.get(method, []))

    def initialize(self, request_id: int) -> None:
        script = self.script
        if script.never_initialize:
            return
        if script.fail_initialize:
            self.send({"id": request_id, "error": {"code": -32603, "message": script.fail_initialize}})
            return
        capabilities = {**DEFAULT_CAPABILITIES, **script.capabilities}
        info = {"name": "fake", "version": script.version}
        self.send({"id": request_id, "result": {"capabilities": capabilities, "serverInfo": info}})

    def result(self, method: str, params: dict[str, Any]) -> Any:
        if self.script.nulls.get(method, 0) > 0:
            self.script.nulls[method] -= 1
            return None
        if self.script.first_answers.get(method):
            return self.script.first_answers[method].pop(0)
        if method in self.script.answers:
            return self.script.answers[method]
        if method == "textDocument/hover":
            document = self.documents.get(params["textDocument"]["uri"])
            said = f"v{document['version']}:{document['text']}" if document else "not open"
            return {"contents": {"kind": "plaintext", "value": said}}
        return None

    def send(self, *messages: dict[str, Any]) -> None:
        write(*(json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages), lock=self.lock)


def read() -> dict[str, Any] | None:
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        if line == b"\r\n":
            return json.loads(sys.stdin.buffer.read(length))
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)


def write(*bodies: bytes, lock: Any) -> None:
    with lock:
        sys.stdout.buffer.write(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    FakeServer(Script(**json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})).start()
