import anyio
import pytest

from serena_central.mcp_server import progress
from serena_central.mcp_server.progress import relaying

pytestmark = pytest.mark.anyio

Sent = tuple[float, float | None, str | None]


class Client:
    """Receives notifications; `arrived` tells of each."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.arrived = anyio.Semaphore(0)

    async def notify(self, value: float, total: float | None, message: str | None) -> None:
        self.sent.append((value, total, message))
        self.arrived.release()


async def test_of_a_burst_only_the_newest_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 3600)
    client = Client()
    with anyio.fail_after(60):
        async with relaying(client.notify) as report:
            for step in range(100):
                report(f"step {step}", step / 99)
            await client.arrived.acquire()
            report("too soon", 1.0)
            await anyio.wait_all_tasks_blocked()
    assert client.sent == [(100.0, 100.0, "step 99")]


async def test_the_value_always_grows_even_when_work_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 0)
    client = Client()
    with anyio.fail_after(60):
        async with relaying(client.notify) as report:
            for part in (0.5, 0.1, None, 0.5, 7.0):
                report("working", part)
                await client.arrived.acquire()
    values = [value for value, _, _ in client.sent]
    assert values == sorted(set(values))
    assert [total for _, total, _ in client.sent] == [100, 100, None, 100, 100]
    assert values[-1] == 100


async def test_nothing_is_sent_when_nothing_is_reported() -> None:
    client = Client()
    async with relaying(client.notify):
        await anyio.wait_all_tasks_blocked()
    assert client.sent == []
