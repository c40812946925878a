"""Installs a missing language server in the background when it is first needed, if the settings allow it.

One installation of a server at a time, a few altogether, owned by `run` and not by the call that needed the server.
Callers that need it meanwhile get its state, and may wait; its end is published as an event. Installations that
other processes started are waited for as well.
"""

import logging
import time
from collections.abc import Callable
from typing import Literal, Protocol

import anyio
import anyio.to_thread
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskGroup, TaskStatus

from serena_central.core.errors import LanguageServerError
from serena_central.core.event_kinds import ServerInstalled, ServerInstallFailed, ServerInstallStarted
from serena_central.core.events import EventBus, Severity
from serena_central.core.places import Places
from serena_central.core.progress import report
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.installers.install import Installed, install, recipes_of, sweep_all
from serena_central.lsp.installers.install_methods import INSTALL_METHODS, OUTSIDE
from serena_central.lsp.installers.underway import underway_of

logger = logging.getLogger(__name__)

"""The event that says that a server is there now; its `server` is the name."""

RETRY_AFTER_S = 3600.0
"""How long a server that could not be installed is not tried again: registries do not change by the minute."""

AT_ONCE = 2

LOOKED_EVERY_S = 0.5
"""How often it is looked whether another process has installed what somebody waits for."""

TOLD_EVERY_S = 2.0
"""Interval of progress messages while a caller waits for an installation, in seconds."""

_ALLOWED: dict[str, tuple[str, ...]] = {
    "off": (),
    "pinned": ("pip", "npm"),  # quick, and pinned exactly
    "all": tuple(sorted(INSTALL_METHODS.keys() - OUTSIDE)),
}


class Install(Protocol):
    """`install` of the module beside, or what stands in for it."""

    async def __call__(
        self, spec: ServerSpec, places: Places, *, methods: tuple[str, ...], tell: Callable[[str], None]
    ) -> Installed: ...


class _Attempt:
    """One server's installation: under way while `error` is empty."""

    def __init__(self) -> None:
        self.error = ""
        self.failed_at = 0.0
        self.over = anyio.Event()


class AutoInstaller:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        places: Places,
        bus: EventBus,
        *,
        allowed: Literal["pinned", "all", "off"],
        install: Install = install,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = places
        self._bus = bus
        self._methods = _ALLOWED[allowed]
        self._install = install
        self._clock = clock
        self._attempts: dict[str, _Attempt] = {}
        self._at_once = anyio.Semaphore(AT_ONCE)
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Removes what crashes left, then owns the installations until it is cancelled; none leaves a part behind."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            try:
                await anyio.to_thread.run_sync(sweep_all, self._places)
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    def want(self, spec: ServerSpec) -> str | None:
        """Starts the installation of a missing server where that is allowed, and immediately returns its state.

        None if only a person can install it.
        """
        self._begin(spec)
        return self.standing(spec)

    def standing(self, spec: ServerSpec) -> str | None:
        """The current state of its installation; None if there is none. Starts nothing."""
        attempt = self._attempts.get(spec.name)
        if self._goes_on(spec):
            return (
                f"The language server {spec.name} is being installed; until then, answers for its files are "
                "incomplete. "
                "Call again in a moment."
            )
        if attempt is None:
            return None
        return f"Installing the language server {spec.name} failed: {attempt.error}\nTo install it: {spec.how_to_get}"

    @property
    def methods_of_people(self) -> tuple[str, ...]:
        """What a person may have installed by this server: all that it can do, whatever the settings allow agents."""
        return _ALLOWED["all"]

    def install_for_person(self, spec: ServerSpec) -> bool:
        """Starts an installation that a person asks for, unless one is running; False if this server knows no way."""
        if self._tasks is None or not recipes_of(spec, self.methods_of_people):
            return False
        if not self._goes_on(spec):
            attempt = self._attempts[spec.name] = _Attempt()
            self._tasks.start_soon(self._get, spec, attempt, self.methods_of_people)
        return True

    def expected(self, spec: ServerSpec) -> bool:
        """Whether it is being installed, or will be by the next `want`."""
        attempt = self._attempts.get(spec.name)
        begins = bool(self._methods and recipes_of(spec, self._methods)) and not (attempt and attempt.error)
        return (self._tasks is not None and begins) or self._goes_on(spec)

    def is_installing(self, spec: ServerSpec) -> bool:
        """Whether this server, or another process, installs it at the moment."""
        return self._goes_on(spec)

    @property
    def is_working(self) -> bool:
        """Whether this server installs anything at the moment."""
        return any(not attempt.over.is_set() for attempt in self._attempts.values())

    def failure(self, spec: ServerSpec) -> str:
        """Why its last installation failed; empty if none did."""
        attempt = self._attempts.get(spec.name)
        return attempt.error if attempt is not None else ""

    def _begin(self, spec: ServerSpec) -> None:
        """Starts an attempt, unless one is running or failed recently, or the settings forbid it."""
        if self._tasks is None or not self._methods or not recipes_of(spec, self._methods):
            return
        attempt = self._attempts.get(spec.name)
        if attempt is None or (attempt.error and self._clock() - attempt.failed_at >= RETRY_AFTER_S):
            attempt = self._attempts[spec.name] = _Attempt()
            self._tasks.start_soon(self._get, spec, attempt, self._methods)

    async def settled(self, spec: ServerSpec) -> bool:
        """Returns when a server is not being installed any more; whether it was. The caller bounds the wait."""
        if not self._goes_on(spec):
            return False
        began = told = self._clock()
        report(f"installing the missing {spec.name}")
        while self._goes_on(spec):
            attempt = self._attempts.get(spec.name)
            over = attempt.over if attempt is not None and not attempt.over.is_set() else anyio.Event()
            with anyio.move_on_after(LOOKED_EVERY_S):
                await over.wait()
            if self._clock() - told >= TOLD_EVERY_S:
                told = self._clock()
                now = underway_of(spec.name, self._places)
                report(now.text(time.time()) if now else f"installing {spec.name} for {told - began:.0f} s")
        return True

    def _goes_on(self, spec: ServerSpec) -> bool:
        attempt = self._attempts.get(spec.name)
        if attempt is not None and not attempt.over.is_set():
            return True
        return underway_of(spec.name, self._places) is not None

    async def _get(self, spec: ServerSpec, attempt: _Attempt, methods: tuple[str, ...]) -> None:
        async with self._at_once:
            started = f"installing the missing {spec.name}"
            self._bus.publish(ServerInstallStarted(message=started, server=spec.name))
            try:
                done = await self._install(spec, self._places, methods=methods, tell=self._log(spec))
            except LanguageServerError as error:
                self._failed(spec, attempt, str(error))
            except Exception as error:
                logger.exception("Installing %s failed", spec.name)
                self._failed(spec, attempt, repr(error))
            else:
                # Forgotten, so that a server that is removed again is got again.
                del self._attempts[spec.name]
                words = f"installed {spec.name} {done.version} by {done.via} in {done.seconds:.0f} s"
                self._bus.publish(ServerInstalled(message=words, server=spec.name, version=done.version, via=done.via))
            finally:
                if not attempt.error:  # an interrupted one has not failed: it starts again when it is wanted again
                    self._attempts.pop(spec.name, None)
                attempt.over.set()

    def _failed(self, spec: ServerSpec, attempt: _Attempt, why: str) -> None:
        attempt.error, attempt.failed_at = why, self._clock()
        self._bus.publish(ServerInstallFailed(message=why, severity=Severity.WARNING, server=spec.name))

    def _log(self, spec: ServerSpec) -> Callable[[str], None]:
        return lambda line: logger.debug("%s", line, extra={"server": spec.name, "action": "install"})
