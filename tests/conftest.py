"""What every test shares: anyio on asyncio only, since the product runs on uvloop's asyncio and nothing else."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the person who runs the tests is read or written: memories, modes, settings."""
    os.environ["SERENA_HOME"] = str(tmp_path_factory.mktemp("serena-home"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="Write what tools answer now into the text cases.")
