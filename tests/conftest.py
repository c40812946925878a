"""What every test shares: anyio on asyncio only, since the product runs on uvloop's asyncio and nothing else."""

import os
import signal
from collections.abc import Generator

import pytest

from serena_central.island import private

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    # In the background, and under nohup, these are ignored, and programs that the tests start would inherit it.
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(scope="session", autouse=True)
def _a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the person who runs the tests is read or written: memories, modes, settings."""
    os.environ["SERENA_HOME"] = str(tmp_path_factory.mktemp("serena-home"))


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="Write what tools answer now into the text cases.")
