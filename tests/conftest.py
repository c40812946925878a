"""What every test shares: anyio on asyncio only, since the product runs on uvloop's asyncio and nothing else."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="Write what tools answer now into the text cases.")
