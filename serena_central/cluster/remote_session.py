"""A session as a project host sees it: data of one call, and what the call changed of it."""

from collections.abc import Mapping

import msgspec

from serena_central.gates.halting import Halt
from serena_central.sessions.session import ActiveProject, ClientIdentity, IdentifiedBy, SeenPlace, Session
from serena_central.sessions.users import User, Users, user_name
from serena_central.tools.symbol_answers import SymbolViews

Noted = list[tuple[str, str, str]]
"""Entries of one of a session's dictionaries: the two parts of the key, and the value."""


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A session was shown symbols of a file (`SymbolViews.saw`); without hashes: what it saw of the file counts no more
    (`SymbolViews.forget`)."""

    root: str
    path: str
    hashes: dict[str, str] | None
    in_full: bool = True


class SessionState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one call may need to know of its session."""

    id: str
    identified_by: IdentifiedBy
    identity: ClientIdentity
    modes: tuple[str, ...] = ()
    active_project: ActiveProject | None = None
    views: list[tuple[str, str, str, str]] = []
    """Root, path, name path, hash; of edits alone, the oldest first."""
    memories_seen: Noted = []
    """For tools about memories alone."""
    pythons_noted: Noted = []
    dependencies_noted: Noted = []
    restrictions_noted: list[tuple[str, str]] = []
    held_back_told: dict[str, tuple[str, ...]] = {}
    allowed_roots: tuple[str, ...] | None = None
    """Of a team's user, whose tools see nothing else: of one who was revoked none. None: no user's, or one's who may
    open everything."""


class SessionChanges(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a call changed of its session."""

    seen: list[Seen] = []
    memories_seen: Noted = []
    memories_forgotten: list[tuple[str, str]] = []
    pythons_noted: Noted = []
    dependencies_noted: Noted = []
    restrictions_noted: list[tuple[str, str]] = []
    held_back_told: dict[str, tuple[str, ...]] = {}
    activated: ActiveProject | None = None
    edits: int = 0
    halt: Halt | None = None
    """A hook has halted it."""


class RemoteSession(Session):
    """The session of one call, made of its state; the host keeps none between calls."""

    def __init__(self, state: SessionState, *, now: float) -> None:
        super().__init__(state.id, state.identified_by, state.identity, now=now)
        self.modes = state.modes
        self.active_project = state.active_project
        self.seen: list[Seen] = []
        """What it was shown in this call, in order."""
        for folder, file, name_path, body_hash in state.views:
            self.views[SeenPlace(folder, file, name_path)] = body_hash
        self.memories_seen = _as_dict(state.memories_seen)
        self.pythons_noted = _as_dict(state.pythons_noted)
        self.dependencies_noted = _as_dict(state.dependencies_noted)
        self.restrictions_noted = set(state.restrictions_noted)
        self.held_back_told = dict(state.held_back_told)
        self._before = state

    def changes(self, halt: Halt | None = None) -> SessionChanges:
        """What the call has changed so far; `halt`: a hook has halted the session."""
        before = self._before
        memories = _as_dict(before.memories_seen)
        return SessionChanges(
            seen=self.seen,
            memories_seen=_changed(self.memories_seen, memories),
            memories_forgotten=[key for key in memories if key not in self.memories_seen],
            pythons_noted=_changed(self.pythons_noted, _as_dict(before.pythons_noted)),
            dependencies_noted=_changed(self.dependencies_noted, _as_dict(before.dependencies_noted)),
            restrictions_noted=sorted(self.restrictions_noted - set(before.restrictions_noted)),
            held_back_told={
                root: told for root, told in self.held_back_told.items() if before.held_back_told.get(root) != told
            },
            activated=self.active_project if self.active_project != before.active_project else None,
            edits=self.edits,
            halt=halt,
        )


class CarriedUsers(Users):
    """A host's users: what the newest call of each credential says of them."""

    def carry(self, credential: str, allowed_roots: tuple[str, ...] | None) -> None:
        """Takes what a session's state says of its user."""
        if allowed_roots is None:
            self._by_credential.pop(credential, None)
        else:
            self.present = True
            self._by_credential[credential] = User(
                user_name(credential), credential, roots=allowed_roots, revoked=not allowed_roots
            )

    def restricted(self, credential: str) -> User | None:
        return self._by_credential.get(credential)


class RecordedViews(SymbolViews):
    """Notes in each session what it was shown, for whoever keeps it."""

    def saw(self, session: Session, root: str, path: str, hashes: Mapping[str, str], *, in_full: bool = True) -> None:
        if isinstance(session, RemoteSession):
            session.seen.append(Seen(root, path, dict(hashes), in_full))
        super().saw(session, root, path, hashes, in_full=in_full)

    def forget(self, session: Session, root: str, path: str) -> None:
        if isinstance(session, RemoteSession):
            session.seen.append(Seen(root, path, None))
        super().forget(session, root, path)

    def _set(self, session: Session, place: SeenPlace, seen: str) -> None:
        session.views[place] = seen
        session.views.move_to_end(place)

    def _remove(self, session: Session, place: SeenPlace) -> None:
        del session.views[place]


def state_of(session: Session, *, edits: bool, notes: bool, user: User | None = None) -> SessionState:
    """What a call of the session may need; `edits`, `notes`: the call is an edit, or about memories; `user`: a team's,
    who may not see everything. What the session saw must have been loaded (`SymbolViews.load`)."""
    return SessionState(
        id=session.id,
        identified_by=session.identified_by,
        identity=ClientIdentity(
            credential=session.credential,
            era="handshake" if session.era == "handshake" else "modern",
            client_name=session.client_name,
            client_version=session.client_version,
            working_folder=session.working_folder,
            context=session.context,
            through_hub=session.through_hub,
            client_pid=session.client_pid,
        ),
        modes=session.modes,
        active_project=session.active_project,
        views=[(place.folder, place.file, place.name_path, body_hash) for place, body_hash in session.views.items()]
        if edits
        else [],
        memories_seen=_as_list(session.memories_seen) if notes else [],
        pythons_noted=_as_list(session.pythons_noted),
        dependencies_noted=_as_list(session.dependencies_noted),
        restrictions_noted=list(session.restrictions_noted),
        held_back_told=session.held_back_told,
        allowed_roots=None if user is None or user.opens_everything else user.roots,
    )


def apply_changes(session: Session, changes: SessionChanges, views: SymbolViews) -> None:
    """Brings a session to where the call has left it."""
    for one in changes.seen:
        if one.hashes is None:
            views.forget(session, one.root, one.path)
        else:
            views.saw(session, one.root, one.path, one.hashes, in_full=one.in_full)
    for key in changes.memories_forgotten:
        session.memories_seen.pop(key, None)
    for *key, digest in changes.memories_seen:
        session.memories_seen.pop((key[0], key[1]), None)  # the newest stand last
        session.memories_seen[key[0], key[1]] = digest
    session.pythons_noted |= _as_dict(changes.pythons_noted)
    session.dependencies_noted |= _as_dict(changes.dependencies_noted)
    session.restrictions_noted |= set(changes.restrictions_noted)
    session.held_back_told |= changes.held_back_told
    session.edits += changes.edits


def _as_list(noted: Mapping[tuple[str, str], str]) -> Noted:
    return [(*key, value) for key, value in noted.items()]


def _as_dict(noted: Noted) -> dict[tuple[str, str], str]:
    return {(first, second): value for first, second, value in noted}


def _changed(after: Mapping[tuple[str, str], str], before: Mapping[tuple[str, str], str]) -> Noted:
    return [(*key, value) for key, value in after.items() if before.get(key) != value]
