"""Sends alerts about chosen events to the outside: to a webhook, and as notifications on the desktop.

Nobody waits for an alert: events are queued, bounded; of one kind and subject one is sent a minute, and what can't be
sent is logged and dropped. Texts are masked and shortened. Redirects are not followed.
"""

import logging
import platform
import shutil
import time
from pathlib import Path
from typing import Any

import anyio
import httpx
from anyio.abc import TaskStatus

from serena_central.config.policies import AlertPolicy
from serena_central.core.events import Event, EventBus, Severity
from serena_central.core.masking import masked
from serena_central.core.periodic import follow
from serena_central.core.quoting import escaped
from serena_central.core.tls import trusted_certificates
from serena_central.processes import child
from serena_central.processes.output import Tail

logger = logging.getLogger(__name__)

QUEUE = 100
"""Events that alerts may be behind; the oldest are dropped."""

EVERY_S = 60.0
"""Between two alerts of one kind about one subject."""

MOST_SUBJECTS = 1000

SEND_S = 5.0

TEXT_CHARS = 400

OUTPUT_BYTES = 1000

TITLE = "serena-central"

_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Alerts:
    """Belongs to the event loop's thread."""

    def __init__(self, policy: AlertPolicy, bus: EventBus) -> None:
        self._policy = policy
        self._bus = bus
        self._sent: dict[tuple[str | None, ...], float] = {}
        """When the last alert of each kind and subject was sent."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Sends alerts until cancelled."""
        with self._bus.subscribe(limit=QUEUE) as news:
            task_status.started()
            await follow("sending alerts", news, self._take)

    async def _take(self, event: Event) -> None:
        if self._is_wanted(event):
            await self._send(event)

    def _is_wanted(self, event: Event) -> bool:
        policy = self._policy
        if not {event.kind, event.kind.partition(".")[0]} & set(policy.events):
            return False
        if _RANKS[event.severity] < _RANKS[Severity(policy.severity)]:
            return False
        subject, now = (event.kind, event.server, event.project), time.monotonic()
        if now - self._sent.get(subject, -EVERY_S) < EVERY_S:
            return False
        if len(self._sent) >= MOST_SUBJECTS:
            self._sent.clear()
        self._sent[subject] = now
        return True

    async def _send(self, event: Event) -> None:
        said = alert_of(event)
        async with anyio.create_task_group() as tasks:
            if self._policy.webhook is not None:
                tasks.start_soon(_post, self._policy.webhook, said)
            if self._policy.desktop:
                tasks.start_soon(_notify, said)


def alert_of(event: Event) -> dict[str, Any]:
    """What a webhook gets as JSON: `text` in one line, and the event's own fields."""
    about = [part for part in (event.server, (event.project or "").rpartition("/")[2]) if part]
    message = escaped(masked(event.message[: 2 * TEXT_CHARS])[:TEXT_CHARS])
    return {
        "text": ": ".join([f"{TITLE} {event.kind}", *([" in ".join(about)] if about else []), message]),
        "kind": event.kind,
        "severity": str(event.severity),
        "server": event.server,
        "project": event.project,
        "session": event.session,
        "message": message,
        "at": event.at,
    }


async def _post(url: str, said: dict[str, Any]) -> None:
    try:
        with anyio.fail_after(SEND_S):
            # Neither proxies nor credentials of the environment: the setting alone says where alerts go.
            async with httpx.AsyncClient(
                timeout=SEND_S, follow_redirects=False, trust_env=False, verify=trusted_certificates()
            ) as http:
                status = (await http.post(url, json=said)).status_code
        if status >= 300:
            logger.warning("the webhook answered an alert with %d", status)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
        logger.warning("an alert could not be sent to the webhook: %s", type(error).__name__)


async def _notify(said: dict[str, Any]) -> None:
    command = notification(TITLE, said["text"].removeprefix(f"{TITLE} "))
    if command is None:
        logger.warning("this machine has no program that shows notifications")
        return
    try:
        await child.run(command, Path("/"), deadline_s=SEND_S, stdout=Tail(OUTPUT_BYTES))
    except OSError as error:
        logger.warning("a notification could not be shown: %s", error)


def notification(title: str, text: str) -> list[str] | None:
    """The command that shows a notification; the texts are its arguments, never code. None if there is no program."""
    if platform.system() == "Darwin":
        script = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")
        return ["osascript", *(part for line in script for part in ("-e", line)), title, text]
    program = shutil.which("notify-send")
    return [program, "--app-name=serena-central", "--", title, text] if program else None
