"""Where remote file systems are mounted, as threads ask at the same time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from serena_central.files.mounts import RemoteMounts

_THREADS = 4


def test_threads_may_ask_for_remote_mounts_at_the_same_time() -> None:
    """Two that poll one object are an error of Python's."""
    mounts, start = RemoteMounts(), Barrier(_THREADS)

    def ask() -> set[frozenset[str]]:
        start.wait(5)
        return {mounts.points() for _ in range(5000)}

    with ThreadPoolExecutor(_THREADS) as threads:
        answers = [running.result() for running in [threads.submit(ask) for _ in range(_THREADS)]]

    assert set().union(*answers) == {mounts.points()}
