"""Chosen events reach a webhook, masked and not too often; what can't be sent holds nothing up."""

from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from serena_central.core.event_kinds import ServerBreaker, StoreFailed
from serena_central.core.events import Severity
from serena_central.core.masking import MASK
from serena_central.web.alerts import notification
from tests.support.central import running_central
from tests.support.webhook import Webhook, listening

pytestmark = pytest.mark.anyio


@pytest.fixture
def webhook() -> Generator[Webhook]:
    with listening() as one:
        yield one


def breaker(root: str, reason: str, severity: Severity = Severity.ERROR) -> ServerBreaker:
    return ServerBreaker(
        server="ty", project=root, root=root, state="open", reason=reason, message=reason, severity=severity
    )


async def test_chosen_events_are_sent_masked_and_once_a_minute(tmp_path: Path, webhook: Webhook) -> None:
    given = {"alerts.webhook": webhook.url, "alerts.events": ["server.breaker"], "alerts.severity": "warning"}
    async with running_central(tmp_path, given) as central:
        bus = central.central.bus
        bus.publish(StoreFailed(message="not chosen", severity=Severity.ERROR))
        bus.publish(breaker("/src/calm", "not severe enough", Severity.INFO))
        bus.publish(breaker("/src/shop", "crashed: password=hunter22\n" + "x" * 5000))
        for _ in range(50):
            bus.publish(breaker("/src/shop", "again"))
        bus.publish(breaker("/src/billing", "last"))
        with anyio.fail_after(60):
            while len(webhook.got) < 2:
                await anyio.sleep(0.05)
    first, last = webhook.got
    assert (first["kind"], first["severity"], first["project"]) == ("server.breaker", "error", "/src/shop")
    assert f"password={MASK}" in first["text"]
    assert "\n" not in first["text"]
    assert len(first["text"]) < 600
    assert "ty in billing: last" in last["text"]


async def test_a_webhook_that_is_gone_is_logged_and_holds_nothing_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"alerts.webhook": "http://127.0.0.1:9/gone?token=hunter22", "alerts.events": ["server"]}
    async with running_central(tmp_path, given) as central:
        central.central.bus.publish(breaker("/src/shop", "crashed"))
        with anyio.fail_after(60):
            while "could not be sent" not in caplog.text:
                await anyio.sleep(0.05)
        async with central.http() as http:
            assert (await http.get("/api/v1/stats")).status_code == 200
    assert "hunter22" not in caplog.text


def test_texts_of_notifications_are_arguments_and_never_options_or_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "notify-send"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("platform.system", lambda: "Linux")
    hostile = "--icon=x"
    command = notification("title", hostile)
    assert command == [str(program), "--app-name=serena-central", "--", "title", hostile]
    monkeypatch.setenv("PATH", "")
    assert notification("title", hostile) is None
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    script = notification("title", '" & quit & "')
    assert script is not None
    assert script[-2:] == ["title", '" & quit & "']
    assert not any("quit" in part for part in script[:-1])
