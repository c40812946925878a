"""`python -m benchmarks.watched FILE serve …`: serena-central with a watcher that names what blocks its event loop.

A heartbeat runs on the loop. A thread checks it and appends a JSON line to FILE each time it came late: milliseconds of
wall time, of CPU time of the loop's thread and of the process (on a busy machine other programs take the rest), of the
garbage collector, and the stacks seen meanwhile, most frequent first. What holds the GIL holds the watcher, too: its
stack is seen when the GIL is released.
"""

import asyncio
import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

BEAT_S = 0.005
LATE_S = 0.03
"""Later than this is worth a line."""

SHOWN = 4
FRAMES = 9


class _Beat(NamedTuple):
    """Seconds, all but `at` of time taken so far."""

    at: float = 0.0
    loop: float = 0.0
    process: float = 0.0
    collector: float = 0.0


class Watcher:
    """Belongs to two threads: `beat` to the loop's, `watch` to its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._beaten = _Beat()
        self._loops_thread = 0
        self._collecting = self._collected = 0.0

    def begin(self) -> None:
        """On the loop."""
        self._loops_thread = threading.get_ident()
        gc.callbacks.append(self._collects)
        self._beat(asyncio.get_running_loop())
        threading.Thread(target=self._watch, daemon=True).start()

    def _collects(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.perf_counter()
        else:
            self._collected += time.perf_counter() - self._collecting

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beaten = _Beat(time.perf_counter(), time.thread_time(), time.process_time(), self._collected)
        loop.call_later(BEAT_S, self._beat, loop)

    def _watch(self) -> None:
        seen: Counter[tuple[str, ...]] = Counter()
        since = self._beaten
        with self._file.open("a", encoding="utf-8") as out:
            while True:
                time.sleep(BEAT_S)
                beaten = self._beaten
                if beaten != since:
                    if seen:
                        took = (round((now - then) * 1000) for now, then in zip(beaten, since, strict=True))
                        line = {
                            **dict(zip(("late_ms", "loop_ms", "process_ms", "collector_ms"), took, strict=True)),
                            "stacks": [[count, *stack] for stack, count in seen.most_common(SHOWN)],
                        }
                        out.write(json.dumps(line) + "\n")
                        out.flush()
                        seen.clear()
                    since = beaten
                if time.perf_counter() - beaten.at > LATE_S:
                    for thread, frame in sys._current_frames().items():
                        if thread != threading.get_ident() and (stack := _stack(frame)):
                            seen["LOOP" if thread == self._loops_thread else "thread", *stack] += 1


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """The innermost frames; nothing of a thread that waits."""
    frames: list[str] = []
    while frame is not None and len(frames) < FRAMES:
        code = frame.f_code
        frames.append(f"{'/'.join(Path(code.co_filename).parts[-2:])}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    idle = any(part in frames[0] for part in ("threading.py", "queue.py", "runners.py", "inotify", "selectors.py"))
    return () if idle else tuple(frames)


def main() -> None:
    watcher = Watcher(Path(sys.argv[1]))
    startup: Callable[..., Any] = uvicorn.Server.startup

    async def watched(self: uvicorn.Server, *arguments: Any, **more: Any) -> None:
        watcher.begin()
        await startup(self, *arguments, **more)

    uvicorn.Server.startup = watched
    sys.argv = ["serena-central", *sys.argv[2:]]
    from serena_central.cli.main import main as serve  # after its arguments are in place

    serve()


if __name__ == "__main__":
    main()
