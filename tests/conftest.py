"""What every test shares: anyio on asyncio only, since the product runs on uvloop's asyncio and nothing else."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
