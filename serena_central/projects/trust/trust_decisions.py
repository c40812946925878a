"""Decides whether a person trusts a repository, for everything in it that can be executed.

Where the setting `trust` is not `prompt`, it decides alone; managed settings can fix it. Else a root is trusted if the
user's own settings name it (`trusted_roots`), or if a person approved it with the parts that
it has now. The parts come from *sources*: today the language servers' entries of its settings; whatever else a
repository may bring adds a source of its own. Parts that change are trusted no more until a person has seen the
difference. Not compared is what the repository's tools execute of its code (interpreters and compilers that lie in it,
build scripts, plug-ins): who trusts a root trusts that with it, as with an editor's workspace trust.

An approval is of one root. A module of a super-repo is approved together with it, and pinned on its own; any other
repository in a trusted one is asked about by itself.

Who may give trust: a person at a command line (which writes the file of approvals itself), in the dashboard (signed in,
by a form with the browser's CSRF token), or in a dialog of the client (MCP elicitation). There is no tool for it, and
no route of /api that a token alone opens: agents' clients send the same token as people's scripts, and a model calls
nothing but tools. A program that runs as this user, such as an agent's own shell, can do all that its user can (write
the file, ask for a link to the dashboard); nothing in here defends against that.
"""

import difflib
import shlex
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from serena_central.config.load import executable_parts, settings_stamp
from serena_central.config.trust import named_in_settings
from serena_central.core.errors import TrustRefused
from serena_central.core.lru import Lru
from serena_central.core.owners import put_above
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.trust.approvals import Approval, Approvals, ExecutablePart, Stamp, digest_of

MOST_KEPT = 1000
"""Roots whose standing is remembered; a box has fewer."""

MEANING = (
    "Trusting a repository allows the programs, hooks, agents, MCP servers, arguments and variables below, and lets "
    "language servers execute code from it: its interpreters and compilers, build scripts, macros and plug-ins. The "
    "items below are compared from now on, and you are asked again when they change; the repository's code is not "
    "compared."
)


def note(name: str, root: Path, restrictions: Iterable[str], above: Path | None = None) -> str:
    """The note on an answer that lacks something because the root is not trusted, or for what another user has put
    `above` it."""
    command = f"serena-central trust {shlex.quote(str(root))}"
    what = "".join(char if char.isprintable() else "�" for char in f"{name}: {'; '.join(restrictions)}")
    if above is not None:
        return f"{what}: {put_above(root, above)}"
    return f"{what}: this repository is not trusted. To trust it, the user can review it and run `{command}`."


class Source(Protocol):
    """One kind of things in a repository that can execute."""

    name: str

    def parts(self, root: Path) -> Mapping[str, str]:
        """Place → canonical text, in an order of its own that stays; empty where there is nothing. Blocks."""
        ...

    def stamp(self, root: Path) -> Hashable:
        """What differs when `parts` may do so. Costs some microseconds."""
        ...


class Configuration:
    """The source of what settings say about language servers."""

    name = "settings"

    def __init__(self, super_repo_of: Callable[[Path], SuperRepo | None]) -> None:
        """A super-repo's shared settings count for its modules, too."""
        self._super_repo_of = super_repo_of

    def parts(self, root: Path) -> Mapping[str, str]:
        repo = self._super_repo_of(root)
        return executable_parts(root, around=repo.root if repo else None)

    def stamp(self, root: Path) -> Hashable:
        repo = self._super_repo_of(root)
        return settings_stamp(root, repo.root if repo else None), repo.says_of(root) if repo else ()


class Policy(NamedTuple):
    """`choice`: the setting `trust` ("prompt": a person decides about each repository). `by`: where it is set."""

    choice: Literal["prompt", "never", "always"] = "prompt"
    by: str = "your settings"


class State(StrEnum):
    ALWAYS = "trusted, as every repository is by the setting trust: always"
    NEVER = "not trusted, as no repository is by the setting trust: never"
    SETTINGS = "trusted by your settings"
    APPROVED = "trusted"
    CHANGED = "changed since it was trusted"
    UNTRUSTED = "not trusted"


class Standing(NamedTuple):
    """How a root stands: what it brings now, and what was approved of it."""

    root: Path
    state: State
    parts: tuple[ExecutablePart, ...]
    approval: Approval | None

    @property
    def trusted(self) -> bool:
        return self.state in (State.ALWAYS, State.SETTINGS, State.APPROVED)

    @property
    def digest(self) -> str:
        """Of what it brings now: what a person was shown, and says yes to."""
        return digest_of(self.parts)

    def shown(self) -> str:
        """All parts, for people."""
        return "\n".join(_lines(self.parts))

    def difference(self) -> str:
        """What changed since the approval, as a unified diff; empty where nothing did, or nothing was approved."""
        if self.approval is None:
            return ""
        before, now = _lines(self.approval.parts), _lines(self.parts)
        return "\n".join(difflib.unified_diff(before, now, "approved", "now", lineterm=""))


def _lines(parts: Iterable[ExecutablePart]) -> list[str]:
    return [line for part in parts for line in (f"# {part.place} ({part.source})", *part.text.splitlines())]


class Trust:
    """Decides for all roots of this server. Blocks for the time of small files; remembers until their stamps differ."""

    def __init__(
        self,
        approvals: Approvals,
        trusted_roots: Iterable[str],
        sources: Sequence[Source],
        policy: Callable[[Path], Policy] = lambda _root: Policy(),
    ) -> None:
        """`policy` gives the setting `trust` as it is for a root now."""
        self._policy = policy
        self._approvals = approvals
        self._trusted_roots = list(trusted_roots)
        self._sources = sources
        self._kept: Lru[Path, tuple[Hashable, Standing]] = Lru(MOST_KEPT)

    def is_trusted(self, root: Path) -> bool:
        """Whether what the repository at a real root brings may run. Some microseconds where nothing changed."""
        return self.standing(root).trusted

    def allows(self, root: Path, texts: Mapping[str, str]) -> bool:
        """Whether a person trusts the root with exactly these parts of its settings, by file: what was just read, and
        not what is on the disk by now. Parts that were not read are not looked at."""
        choice = self._policy(root).choice
        if choice != "prompt":
            return choice == "always"
        if named_in_settings(root, self._trusted_roots):
            return True
        approval = self._approvals.of(root)
        if approval is None:
            return False
        approved = {part.place: part.text for part in approval.parts if part.source == Configuration.name}
        return all(approved.get(place, "") == text for place, text in texts.items())

    def standing(self, root: Path) -> Standing:
        stamp = self._approvals.stamp(), self._policy(root), self._stamps_of_sources(root)
        kept = self._kept.get(root)
        if kept is None or kept[0] != stamp:
            kept = self._kept[root] = stamp, self._standing(root)
        return kept[1]

    def stamp(self, root: Path) -> Hashable:
        """What differs when the root's settings may, or a person decided about it. Costs some microseconds."""
        approval = self._approvals.of(root)
        return approval and approval.digest, self._policy(root), self._stamps_of_sources(root)

    def file_stamp(self) -> Stamp:
        """What differs when anything was approved or revoked."""
        return self._approvals.stamp()

    def approvals(self) -> list[Approval]:
        return self._approvals.all()

    def approve(self, root: Path, digest: str, *, by: str) -> Standing:
        """Trusts a root with what a person was shown of it.

        Raises:
            TrustRefused: that is not what it brings now, or it can't be kept.
        """
        self.keep(self.shown(root, digest), by)
        return self.standing(root)

    def shown(self, root: Path, digest: str) -> Standing:
        """The standing that a person saw, if it still is so.

        Raises:
            TrustRefused
        """
        found = self._standing(root)
        if found.digest != digest:
            raise TrustRefused(f"What {root} can execute changed after it was displayed. Review it again.")
        return found

    def keep(self, shown: Standing, by: str) -> None:
        """Keeps a person's yes to what was shown. May wait for another process: call it in a thread of a server.

        Raises:
            TrustRefused: also where the setting `trust` leaves nothing to decide.
        """
        if shown.state is State.NEVER:
            by_whom = self._policy(shown.root).by
            raise TrustRefused(f"No repository can be trusted: trust is never in {by_whom}. Nothing was changed.")
        self._approvals.put(shown.root, shown.parts, by)

    def revoke(self, root: Path) -> bool:
        """Whether there was an approval; what the settings name stays trusted. As `keep`."""
        return self._approvals.remove(root)

    def _stamps_of_sources(self, root: Path) -> Hashable:
        return tuple(source.stamp(root) for source in self._sources)

    def _standing(self, root: Path) -> Standing:
        parts = tuple(
            ExecutablePart(source.name, place, text)
            for source in self._sources
            for place, text in source.parts(root).items()
            if text
        )
        approval = self._approvals.of(root)
        return Standing(root, self._state(root, parts, approval), parts, approval)

    def _state(self, root: Path, parts: Iterable[ExecutablePart], approval: Approval | None) -> State:
        choice = self._policy(root).choice
        if choice != "prompt":
            return State.ALWAYS if choice == "always" else State.NEVER
        if named_in_settings(root, self._trusted_roots):
            return State.SETTINGS
        if approval is None:
            return State.UNTRUSTED
        return State.APPROVED if approval.digest == digest_of(parts) else State.CHANGED
