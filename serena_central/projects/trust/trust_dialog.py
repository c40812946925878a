"""The question whether to trust a repository that a session works on, as data for whoever can ask a person."""

from pathlib import Path
from typing import Protocol

import anyio.to_thread
import msgspec

from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.trust.trust_decisions import MEANING, Standing, State, Trust


class TrustQuestion(msgspec.Struct, frozen=True):
    """`text` is what a person is shown, of the parts with that `digest`."""

    root: str
    digest: str
    text: str


class TrustDialog(Protocol):
    """Where trust is decided."""

    async def question(self, root: Path) -> TrustQuestion | None:
        """The question for what an open project holds back now; None if there is none.

        Raises:
            SerenaCentralError
        """
        ...

    async def keep(self, question: TrustQuestion, by: str) -> None:
        """Approves what stood in a question.

        Raises:
            TrustRefused: it is not what the repository brings now.
        """
        ...


class LocalTrustDialog:
    """`TrustDialog` of the registry's projects."""

    def __init__(self, trust: Trust, projects: ProjectRegistry) -> None:
        self._trust = trust
        self._projects = projects

    async def question(self, root: Path) -> TrustQuestion | None:
        project = self._projects.opened(str(root))
        if project is None or not (project.restrictions or await project.servers_not_run()):
            return None
        standing = self._trust.standing(project.root)
        if standing.trusted or standing.state is State.NEVER:
            return None
        return TrustQuestion(str(standing.root), standing.digest, _text(standing))

    async def keep(self, question: TrustQuestion, by: str) -> None:
        shown = self._trust.shown(Path(question.root), question.digest)
        await anyio.to_thread.run_sync(self._trust.keep, shown, by)


def _text(standing: Standing) -> str:
    shown = standing.difference() or standing.shown() or "It names no programs or settings of language servers."
    return f"Trust the repository {standing.root}? It is {standing.state}.\n\n{MEANING}\n\n{shown}"
