"""What tests with real clients share. They run by `make test-clients` alone, which installs the clients."""

import platform
import sys
from pathlib import Path

import pytest

from tests.clients.agents import AGENTS, OPENCODE, Agent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.clients)


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.name)
def agent(request: pytest.FixtureRequest) -> Agent:
    if request.param is OPENCODE and (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("opencode is pinned for Linux on x86_64 only (tests/clients/package.json)")
    return request.param
