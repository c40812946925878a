"""What every test shares: anyio on asyncio only, since the product runs on uvloop's asyncio and nothing else."""

import functools
import gc
import inspect
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

from serena_central.projects.root_policy import MARKERS, has_marker
from serena_central.standalone import private
from tests.support import postgresql

# On a loaded machine, making inputs is slow through no fault of theirs.
settings.register_profile("loaded", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")

# Each client would read the certificates of all authorities, for 20 ms, and then ask a server on loopback.
for transports in (httpx._transports.default, httpx2._transports.default):
    transports.create_ssl_context = functools.cache(transports.create_ssl_context)

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    # In the background, and under nohup, these are ignored, and programs that the tests start would inherit it.
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(scope="session", autouse=True)
def _a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the person who runs the tests is read or written: memories, modes, settings."""
    os.environ["SERENA_HOME"] = str(tmp_path_factory.mktemp("serena-home"))
    os.environ["CLAUDE_CONFIG_DIR"] = str(tmp_path_factory.mktemp("claude-home"))


@pytest.fixture(scope="session", autouse=True)
def _postgresql(request: pytest.FixtureRequest) -> Generator[None]:
    """With --postgresql every store that a test names by its file lies in a cluster of this process's own."""
    if not request.config.getoption("--postgresql"):
        yield
        return
    cluster = postgresql.Cluster()
    try:
        cluster.start()
        postgresql.use(cluster)
        yield
    finally:
        postgresql.forget()
        cluster.remove()


@pytest.fixture(autouse=True)
def _a_umask_of_its_own() -> Generator[None]:
    """Programs that are run in the tests' own process restrict its umask."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
    private._user_umask = None


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


TEST_S = 240
"""The bound of a test that awaits: it fails and names itself, and the fixtures that it shares live on. What this cannot
end (a loop that never awaits, a fixture that hangs) ends by pytest-timeout, and its worker with it."""

ENDING_S = 30
"""What remains to a test with a bound of its own (the marker `timeout`), to end before pytest-timeout comes."""


def pytest_configure(config: pytest.Config) -> None:
    """Refuses a temporary folder inside of a project: each test's own would be a part of it, and all of it indexed."""
    temporary = Path(config.getoption("basetemp") or tempfile.gettempdir()).resolve()
    if outer := next(filter(has_marker, (temporary, *temporary.parents)), None):
        pytest.exit(
            f"{outer} has a project's marker ({', '.join(MARKERS)}), and the tests' folders lie in it: remove that, or "
            "set TMPDIR to another folder.",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leaves modules and tests, which stay, alone: the garbage collector would go through all of them again and again,
    for nearly half of the time that collecting ten thousand tests takes, and at each full collection of a test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("sqlite") and item.config.getoption("--postgresql"):
            item.add_marker(pytest.mark.skip("is about SQLite's file"))
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(3600))
        elif isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            own = item.get_closest_marker("timeout")
            item.obj = _bounded(item.obj, TEST_S if own is None else own.args[0] - ENDING_S)


def _bounded(test: Callable[..., Awaitable[None]], within_s: float) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def bounded(*arguments: Any, **named: Any) -> None:
        with anyio.fail_after(within_s):
            await test(*arguments, **named)

    return bounded


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Saves what was measured while xdist still waits: a worker that takes more than ten seconds to end is killed."""
    measuring = Coverage.current()
    if measuring and hasattr(session.config, "workerinput"):
        measuring.stop()
        measuring.save()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgresql", action="store_true", help="Put every store into a PostgreSQL of the tests' own.")
    parser.addoption("--update", action="store_true", help="Write what tools answer now into the text cases.")
