"""What many of these tests begin with: a server in their own process or in a child, its dashboard, a small project.

A file whose tests need another one has a fixture of the same name.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.browser import Visitor, visiting
from tests.support.central import RunningCentral, running_central
from tests.support.child import Child, serving_child


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path) as running:
        yield running


@pytest.fixture
async def visitor(central: RunningCentral) -> AsyncGenerator[Visitor]:
    async with visiting(central) as browser:
        yield browser


@pytest.fixture
async def child(tmp_path: Path) -> AsyncGenerator[Child]:
    async with serving_child(tmp_path) as serving:
        yield serving


@pytest.fixture(scope="module")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Child]:
    """One server for tests that disturb no other."""
    async with serving_child(tmp_path_factory.mktemp("serving")) as child:
        yield child


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root
