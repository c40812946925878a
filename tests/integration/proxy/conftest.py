"""What the proxy's tests share: one server for those that disturb no other, and a small project."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.child import Child, serving_child


@pytest.fixture(scope="package")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Child]:
    async with serving_child(tmp_path_factory.mktemp("serving")) as child:
        yield child
