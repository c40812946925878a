"""What texts of hooks are shown as. How hooks run is tested in tests/integration."""

from typing import Any

from serena_central.core.masking import MASK
from serena_central.gates.engine import Means


async def nobody(*_: Any) -> Any:
    raise AssertionError


def test_nothing_is_left_of_a_secret_that_begins_as_another() -> None:
    means = Means(nobody, nobody, secrets=("hunter2", "hunter2-the-second"))
    assert means.masked("logged in as hunter2-the-second, not hunter2") == f"logged in as {MASK}, not {MASK}"
