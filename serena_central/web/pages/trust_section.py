"""The trust section of a project's page: what the repository can execute, and the person's decision.

The section is rendered after a decision and when the page is loaded, not in between: the form carries the digest of
what stands above it, and if that has changed since, the form is refused and the new state shown instead.
"""

from pathlib import Path

import anyio.to_thread
import msgspec

from serena_central.core.errors import TrustRefused
from serena_central.core.event_kinds import ProjectTrust
from serena_central.projects.trust.trust_decisions import MEANING, Standing, State
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form
from serena_central.web.pages.page import Section, Visit
from serena_central.web.pages.projects import known, one_value

BY = "a user in the dashboard"

"""Kind of the event after a decision."""


class ShownPart(msgspec.Struct, frozen=True):
    """Something that can execute; `place` is its file."""

    place: str
    source: str
    text: str


class Trusting(msgspec.Struct, frozen=True):
    """How a root stands. `digest` is of the `parts`; `difference` is a unified diff, empty where nothing changed.

    `can_trust`: a person can decide so here; `revocable`: a person approved it, so that this can be revoked here.
    """

    root: str
    name: str
    state: str
    trusted: bool
    meaning: str
    parts: list[ShownPart]
    difference: str
    digest: str
    can_trust: bool
    revocable: bool
    approved_at: float | None
    approved_by: str


async def trusting(visit: Visit) -> Trusting:
    root = visit.query.get("root", "")
    snapshot = known(visit, root)
    found = visit.parts.trust.standing(Path(root))
    return Trusting(
        root=root,
        name=snapshot.name,
        state=str(found.state),
        trusted=found.trusted,
        meaning=MEANING,
        parts=[ShownPart(part.place, part.source, part.text) for part in found.parts],
        difference=found.difference() if found.state is State.CHANGED else "",
        digest=found.digest,
        can_trust=not found.trusted and found.state is not State.NEVER,
        revocable=found.approval is not None,
        approved_at=round(found.approval.at) if found.approval else None,
        approved_by=found.approval.by if found.approval else "",
    )


async def _trust(visit: Visit, form: Form) -> str:
    """Trusts a root with what the form's page showed.

    Raises:
        TrustRefused
    """
    one, trust = known(visit, one_value(form, "root")), visit.parts.trust
    try:
        shown = trust.shown(Path(one.root), one_value(form, "digest"))
    except TrustRefused:
        _decided(visit, one.name, one.root, "what it can execute changed during the review")
        raise
    await anyio.to_thread.run_sync(trust.keep, shown, BY)
    _decided(visit, one.name, one.root, f"trusted by {BY}")
    return f"{one.name} is trusted from its next call on."


async def _revoke(visit: Visit, form: Form) -> str:
    one, trust = known(visit, one_value(form, "root")), visit.parts.trust
    await anyio.to_thread.run_sync(trust.revoke, Path(one.root))
    _decided(visit, one.name, one.root, f"revoked by {BY}")
    now: Standing = trust.standing(Path(one.root))
    return f"{one.name}: {now.state}." if now.trusted else f"{one.name} is no longer trusted from its next call on."


def _decided(visit: Visit, name: str, root: str, message: str) -> None:
    visit.parts.bus.publish(ProjectTrust(message=message, project=name, root=root))


ACTIONS: dict[str, Action] = {"/projects/trust": _trust, "/projects/revoke": _revoke}

SECTION = Section("project/_trust.html", trusting, (ProjectTrust,), every_s=86_400)
