"""The parts of a server, for the contexts that pages are made of."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from serena_central.app import Application
from tests.support.central import running_parts


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path) as parts:
        yield parts
