"""Which language servers can run for a project: installed, trusted, being installed, or missing.

It starts no server, and knows no files.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from serena_central.core.errors import LanguageServerError, ServerBeingInstalled, ServerNotInstalled, ServerNotTrusted
from serena_central.core.places import Places
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.permitted import Permitted
from serena_central.lsp.installers.underway import Underway, underway_of
from serena_central.lsp.locate import locate
from serena_central.pool.key import digest_of

MISSING = "not-installed"
"""In place of a server's version."""

NOT_RUN = "not-trusted"
"""Likewise, where it would execute what a project brings that nobody trusts."""


class Installations(Protocol):
    """Installs servers that are missing."""

    def want(self, spec: ServerSpec) -> str | None:
        """Starts installing it; returns the state of the installation, or None if there is none."""
        ...

    def standing(self, spec: ServerSpec) -> str | None:
        """The state of an installation at this moment; None where there is none. Starts nothing."""
        ...

    def expected(self, spec: ServerSpec) -> bool:
        """Whether it is being installed, or will be as soon as it is needed."""
        ...

    async def settled(self, spec: ServerSpec) -> bool:
        """Returns when it is not being installed any more; whether that had to be waited for."""
        ...


class ServerAvailability:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        places: Places,
        choices: Permitted,
        *,
        untrusted: Path | None,
        installations: Installations | None,
    ) -> None:
        """`untrusted` is the root if the project is not trusted. Without `installations` only a person installs what
        is missing."""
        self._root = root
        self._places = places
        self._choices = choices
        self._untrusted = untrusted
        self._installations = installations
        self._identities: dict[str, str] = {}
        self.not_found: dict[str, ServerSpec] = {}
        """Servers that were missing when they were looked for, until `installed` is called for them."""

    def identity_of(self, spec: ServerSpec) -> str:
        """Server, version (`MISSING` and `NOT_RUN` are such) and settings digest."""
        known = self._identities.get(spec.name)
        if known is None:
            try:
                version = locate(spec, self._root, self._places, untrusted=self._untrusted).version
            except ServerNotTrusted:
                version = NOT_RUN
            except ServerNotInstalled:
                version = MISSING
                self.not_found[spec.name] = spec
            digest = digest_of(spec, self._choices.settings_of(spec.name))
            trust = " untrusted" if self._untrusted else ""
            known = self._identities[spec.name] = f"{spec.name} {version} {digest}{trust}"
        return known

    def not_run(self, languages: Iterable[str]) -> set[str]:
        """Names of these languages' servers that are not run, since the project is not trusted."""
        specs = [self._choices.server_for(language) for language in languages]
        return {spec.name for spec in specs if spec is not None and NOT_RUN in self.identity_of(spec)}

    def missing(self) -> list[ServerSpec]:
        """Servers that were looked for in vain, also those that some question has found since: the index of their
        files knows nothing of that yet."""
        return [spec for spec in self.not_found.values() if not spec.undriven]

    def missing_for_good(self) -> list[ServerSpec]:
        """Those of `missing` that only a person can install."""
        comes = self._installations.expected if self._installations is not None else _never
        return [spec for spec in self.missing() if not (self._may_install(spec) and comes(spec))]

    def installing(self) -> list[Underway]:
        """Installations of servers that are missing here, by whatever process."""
        found = (underway_of(spec.name, self._places) for spec in self.missing())
        return [one for one in found if one is not None]

    def installed(self, server: str) -> None:
        """A server is there now, or another version of it."""
        self._identities.pop(server, None)
        self.not_found.pop(server, None)

    def check(self, spec: ServerSpec) -> None:
        """Starts the installation of a missing server instead of a start that must fail.

        Raises:
            ServerBeingInstalled, ServerNotTrusted
        """
        if NOT_RUN in self.identity_of(spec):
            self._identities.pop(spec.name)  # what kept it from running may be gone
            locate(spec, self._root, self._places, untrusted=self._untrusted)
        state = self._installation_of(spec)
        if state is not None:
            raise ServerBeingInstalled(spec.name, state)

    @contextmanager
    def noticing_removal(self, spec: ServerSpec) -> Generator[None]:
        """A server that turns out to be gone is installed again.

        Raises:
            ServerBeingInstalled
        """
        try:
            yield
        except ServerNotInstalled:
            self._identities.pop(spec.name, None)
            self.check(spec)
            raise

    def reason_against(self, spec: ServerSpec) -> str | None:
        """Why it cannot run at this moment, as a sentence; None if it can."""
        if can_run(self.identity_of(spec)):
            return None
        try:
            locate(spec, self._root, self._places, untrusted=self._untrusted)
        except LanguageServerError as error:
            may_install = MISSING in self.identity_of(spec) and self._may_install(spec)
            state = self._installations.standing(spec) if self._installations and may_install else None
            return state or str(error)
        return None

    async def until_installed(self, spec: ServerSpec) -> bool:
        """Waits while a server is being installed; whether there was something to wait for."""
        if self._installations is None or self._installation_of(spec) is None:
            return False
        return await self._installations.settled(spec)

    def _installation_of(self, spec: ServerSpec) -> str | None:
        """The state of a missing server's installation; None if it is installed, or only a person can install it."""
        if MISSING not in self.identity_of(spec):
            return None
        self._identities.pop(spec.name)  # since then, perhaps
        if self._installations is None or MISSING not in self.identity_of(spec) or not self._may_install(spec):
            return None
        return self._installations.want(spec)

    def _may_install(self, spec: ServerSpec) -> bool:
        """Nothing is fetched that can't be run, nor what only a project that is not trusted has chosen."""
        return not spec.undriven and (self._untrusted is None or self._choices.is_users(spec))


def _never(_spec: ServerSpec) -> bool:
    return False


def can_run(identity: str) -> bool:
    """Whether what an identity names is installed, and may be run."""
    return MISSING not in identity and NOT_RUN not in identity
