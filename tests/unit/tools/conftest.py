"""The parts of a server, shared by the tests of a file; edits are not followed by a look for new errors."""

from collections.abc import AsyncGenerator

import pytest

from serena_central.app import Application
from tests.support.central import running_parts


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path_factory.mktemp("home"), {"edit_diagnostics_s": 0}) as running:
        yield running
