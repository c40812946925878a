"""Somebody who has nothing to do with what is measured, and asks a server all the time.

In a process of its own: the bench reads large answers and samples memory meanwhile, and what its threads wait for each
other is no wait for the server.
"""

import multiprocessing
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from statistics import median

from benchmarks.bench import Server
from benchmarks.client import Connection, Refused
from benchmarks.scaling import generated
from benchmarks.table import Row, percentile

SMALL = 100
"""Files of the other project."""

EVERY_S = 0.02
END_S = 60.0


class Others:
    """How long each of their requests took, in milliseconds, since last asked."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def take(self) -> list[float]:
        """At least one. Raises Refused if they were refused, or their process has ended."""
        try:
            self._pipe.send(True)
            waits = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise Refused("who asked all the time has ended") from error
        if isinstance(waits, str):
            raise Refused(waits)
        return waits

    def row(self, meanwhile: str) -> Row:
        waits = self.take()
        note = f"median {median(waits):.2f} ms, 99 % within {percentile(waits, 0.99):.0f} ms, of {len(waits):,} calls"
        return Row(f"longest wait of another session, {meanwhile}", "≤ 100 ms", max(waits), note=note)


@contextmanager
def others_calls(server: Server) -> Generator[Others]:
    """Finds a symbol of a small project every 20 ms."""
    client = server.client()
    client.call("activate_project", project=str(generated(SMALL)))
    request = client.prepare("find_symbol", name_path_pattern="Part7/work")
    client.send(request)
    server.await_index()
    with asked_all_the_time(server, request, b'"isError":false') as others:
        yield others
    client.close()


@contextmanager
def asked_all_the_time(server: Server, request: bytes, expected: bytes) -> Generator[Others]:
    """Sends a request every 20 ms; each answer holds what is `expected`."""
    spawning = multiprocessing.get_context("spawn")  # a fork would take along what threads hold
    pipe, theirs = spawning.Pipe()
    asking = spawning.Process(target=_ask, args=(theirs, server.port, server.token, request, expected), daemon=True)
    asking.start()
    theirs.close()  # else its end would not be heard of
    others = Others(pipe)
    try:
        others.take()  # it has begun
        yield others
    finally:
        with suppress(OSError):
            pipe.send(False)
        asking.join(END_S)


def _ask(pipe: Pipe, port: int, token: str, request: bytes, expected: bytes) -> None:
    connection = Connection(port, token)
    waits: list[float] = []
    refused = ""
    while True:
        if not refused:
            began = time.perf_counter()
            head, body = connection.exchange(request)
            waits.append((time.perf_counter() - began) * 1000)
            if b" 200 " not in head[:16] or expected not in body:
                refused = body.decode(errors="replace")[:1000]
        if pipe.poll(None if refused else EVERY_S):
            if not pipe.recv():
                return
            pipe.send(refused or waits)
            waits = []
