"""Reads many transcripts at a time: in processes of its own if there is much to read, else here.

A process ends when its stdin does, whatever ended the one that started it. Run as
`python -P -m serena_central.transcripts.parallel_reading`: reads jobs from stdin, answers each on stdout, in order.
"""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import msgspec

from serena_central.core.decoding import msgpack_decoder
from serena_central.store.usage_store import KnownFile
from serena_central.transcripts.reading import Reading, read_transcript
from serena_central.transcripts.roots import FORMS, FoundFile, Root

PARALLEL_BYTES = 64_000_000
"""Less than this is read here: two processes take as long to start as 50 MB to be read."""

MOST_PROCESSES = min(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1, 4)
"""More than four would wait for the one that writes the store."""

AHEAD_BYTES = 100_000_000
"""To be read before their results are taken: the processes go on while the store is written. Twice as much takes 12 MB
more, and no less time."""

_COMMAND = [sys.executable, "-P", "-m", "serena_central.transcripts.parallel_reading"]

Result = Reading | OSError


class Job(msgspec.Struct, frozen=True):
    """A transcript to read, and how it was known before."""

    found: FoundFile
    before: KnownFile | None

    @property
    def is_due(self) -> bool:
        """Whether the file has changed."""
        now, then = self.found, self.before
        return then is None or (then.size, then.mtime_ns, then.inode) != (now.size, now.mtime_ns, now.inode)

    @property
    def size(self) -> int:
        """Bytes to read, about."""
        return max(self.found.size - (self.before.consumed if self.before else 0), 0)


class _Asked(msgspec.Struct, array_like=True):
    """A job as it is sent."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    folder: str
    client: str
    before: KnownFile | None


class _Answer(msgspec.Struct, array_like=True):
    """A reading, or the number and the text of an OSError."""

    reading: Reading | None = None
    errno: int = 0
    error: str = ""


_ASKED = msgpack_decoder(_Asked)
_ANSWER = msgpack_decoder(_Answer)


@contextmanager
def readings(jobs: Sequence[Job]) -> "Generator[Iterator[tuple[Job, Result]]]":
    """Results in the order of the jobs. No process is left when the block is. Blocks."""
    count = min(len(jobs), MOST_PROCESSES)
    if count < 2 or sum(job.size for job in jobs) < PARALLEL_BYTES:
        yield ((job, _read_here(job)) for job in jobs)
        return
    processes = [_ReadingProcess() for _ in range(count)]
    idle: SimpleQueue[_ReadingProcess] = SimpleQueue()
    for one in processes:
        idle.put(one)

    def read(job: Job) -> Result:
        process = idle.get()
        try:
            return process.read(job)
        finally:
            idle.put(process)

    threads = ThreadPoolExecutor(count, "transcripts")
    try:
        yield _in_order(threads, read, jobs, count)
    finally:
        for one in processes:
            one.kill()  # which wakes the threads
        threads.shutdown(cancel_futures=True)
        for one in processes:
            one.close()


def _in_order(threads: ThreadPoolExecutor, read: Any, jobs: Sequence[Job], count: int) -> Iterator[tuple[Job, Result]]:
    """`count` jobs are always given out, more as far as `AHEAD_BYTES` reach."""
    left = deque(jobs)
    given: deque[tuple[Job, Future[Result]]] = deque()
    size = 0
    while left or given:
        while left and (len(given) < count or size + left[0].size <= AHEAD_BYTES):
            job = left.popleft()
            given.append((job, threads.submit(read, job)))
            size += job.size
        job, future = given.popleft()
        size -= job.size
        yield job, future.result()


def _read_here(job: Job) -> Result:
    try:
        return read_transcript(job.found, job.before)
    except OSError as error:
        return error


class _ReadingProcess:
    """One process. If it cannot be started, or has ended, what it is asked for is read here."""

    def __init__(self) -> None:
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            return

    def read(self, job: Job) -> Result:
        try:
            answer = self._ask(job)
        except (OSError, msgspec.MsgspecError):
            answer = None
        if self._stopped:
            return OSError("stopped")
        if answer is None:
            return _read_here(job)
        return answer.reading or OSError(answer.errno, answer.error)

    def _ask(self, job: Job) -> _Answer | None:
        if self._process is None:
            return None
        assert self._process.stdin
        assert self._process.stdout
        found = job.found
        root = found.root
        asked = _Asked(
            found.path, found.size, found.mtime_ns, found.inode, str(root.folder), root.form.client, job.before
        )
        _send(self._process.stdin, asked)
        content = _received(self._process.stdout)
        return None if content is None else _ANSWER.decode(content)

    def kill(self) -> None:
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Once it is killed and nobody asks it any more."""
        if self._process is not None:
            with suppress(OSError), self._process:  # what it was to be sent cannot be sent
                pass


def _send(stream: IO[bytes], message: msgspec.Struct) -> None:
    content = msgspec.msgpack.encode(message)
    stream.write(len(content).to_bytes(8) + content)
    stream.flush()


def _received(stream: IO[bytes]) -> bytes | None:
    """None where the stream ends."""
    head = stream.read(8)
    length = int.from_bytes(head)
    content = stream.read(length) if len(head) == 8 else b""
    return content if content and len(content) == length else None


def serve(jobs: IO[bytes], answers: IO[bytes]) -> None:
    forms = {form.client: form for form in FORMS}
    while (content := _received(jobs)) is not None:
        asked = _ASKED.decode(content)
        root = Root(Path(asked.folder), forms[asked.client])
        result = _read_here(Job(FoundFile(asked.path, asked.size, asked.mtime_ns, asked.inode, root), asked.before))
        if isinstance(result, OSError):
            _send(answers, _Answer(None, result.errno or 0, result.strerror or str(result)))
        else:
            _send(answers, _Answer(result))


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
