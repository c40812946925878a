import subprocess
import sys

import anyio
import pytest

from tests.support.patience import while_children_work

pytestmark = pytest.mark.anyio

BUSY = "import time\nwhile time.process_time() < 1: pass"


async def test_a_child_that_computes_may_take_longer_than_one_that_waits() -> None:
    async with while_children_work(idle_s=0.5):
        done = await anyio.run_process([sys.executable, "-c", BUSY])
    assert done.returncode == 0


async def test_a_child_that_only_waits_is_given_up() -> None:
    with pytest.raises(TimeoutError, match="next to nothing"):
        async with while_children_work(idle_s=0.5):
            await anyio.run_process(["sleep", "60"])


async def test_what_fails_inside_fails_as_it_is() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        async with while_children_work():
            await anyio.run_process(["false"])
