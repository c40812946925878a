"""Asks the person at the client whether to trust a repository, if the client supports elicitation.

Asked is a session of its own, once for what a project that it activated holds back now. In the handshake era the
question travels beside the call that waits for it; in the modern era the call is answered by the question, and sent
again with the answer. The model sees neither. What is approved is what stood in the dialog.
"""

import logging
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import msgspec

from serena_central.core.client_channel import ClientRequest
from serena_central.core.decoding import converted
from serena_central.core.errors import ClientCannotAnswer, ClientInputRequired, SerenaCentralError
from serena_central.core.lru import Lru
from serena_central.mcp_server.call_channel import CallChannel
from serena_central.projects.trust.trust_dialog import TrustDialog, TrustQuestion
from serena_central.sessions.session import Session
from serena_central.sessions.users import Users

logger = logging.getLogger(__name__)

AFTER = "activate_project"
"""The tool whose calls lead to the question."""

ASKING_S = 50.0
"""For a person to answer; clients give up a call after a minute."""

MOST_SHOWN = 4000
"""Maximum characters of a dialog. Longer texts are reviewed in the dashboard or at the command line."""

KEY = "trust"
"""Of a person's yes or no in an answer."""

MOST_OPEN = 20
"""Questions of one session that are not answered yet; clients may answer several calls in any order."""

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {KEY: {"type": "boolean", "title": "Trust this repository", "default": False}},
    "required": [KEY],
}


class _Content(msgspec.Struct):
    trust: bool = False
    """Named as `KEY` says."""


class _Answer(msgspec.Struct):
    action: str
    content: _Content | None = None


class TrustQuestions:
    """Belongs to the event loop's thread."""

    def __init__(self, dialog: TrustDialog, users: Users) -> None:
        self._users = users
        self._dialog = dialog
        self._asked: WeakKeyDictionary[Session, set[tuple[str, str]]] = WeakKeyDictionary()
        self._open: WeakKeyDictionary[Session, Lru[str, TrustQuestion]] = WeakKeyDictionary()
        """Of the modern era, by their keys: an answer counts for the question that it came to, and for no other."""

    async def trusts_now(self, session: Session, channel: CallChannel) -> bool:
        """Whether the person said yes.

        Raises:
            ClientInputRequired: in the modern era, with the question.
        """
        question = await self._question(session, channel.offered.get("elicitation"))
        if question is None:
            return False
        key, asked = key_of(question), {"mode": "form", "message": question.text, "requestedSchema": _SCHEMA}
        request = {key: ClientRequest("elicitation/create", asked)}
        if session.era == "modern":
            self._open.setdefault(session, Lru(MOST_OPEN))[key] = question
            raise ClientInputRequired(request, {})
        with anyio.move_on_after(ASKING_S):
            try:
                answers = await channel.ask(request)
            except ClientCannotAnswer as error:
                logger.info("the client did not answer the trust question for %s: %s", question.root, error)
                return False
            return await self._take(session, question, answers[key])
        return False

    async def take(self, session: Session, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """The answers that a call of the modern era was sent again with, in wire form."""
        is_open = self._open.setdefault(session, Lru(MOST_OPEN))
        for key, answer in answers.items():
            question = is_open.get(key)
            is_open.discard(key)
            if question is not None:
                await self._take(session, question, answer)

    async def _question(self, session: Session, offered: Mapping[str, Any] | None) -> TrustQuestion | None:
        """The question to ask; None if there is none, or the client has no dialog (`offered` is its capability). A
        team's users decide nothing."""
        if self._users.present and self._users.restricted(session.credential) is not None:
            return None
        active = session.active_project
        if offered is None or session.shared or active is None:
            return None
        if offered.get("form") is None and offered.get("url") is not None:
            return None
        try:
            question = await self._dialog.question(Path(active.root))
        except SerenaCentralError as error:
            logger.warning("whether to ask for trust in %s is unknown: %s", active.root, error)
            return None
        asked = self._asked.setdefault(session, set())
        if question is None or (question.root, question.digest) in asked or len(question.text) > MOST_SHOWN:
            return None
        asked.add((question.root, question.digest))
        return question

    async def _take(self, session: Session, asked: TrustQuestion, answer: Mapping[str, Any]) -> bool:
        try:
            given = converted(answer, _Answer)
        except msgspec.ValidationError:
            return False
        if given.action != "accept" or given.content is None or not given.content.trust:
            return False
        try:
            await self._dialog.keep(asked, f"the user, via {session.client_name}")
        except SerenaCentralError as error:
            logger.warning("the user's approval was not applied: %s", error)
            return False
        return True


def key_of(question: TrustQuestion) -> str:
    """By which a client of the modern era sends the answer."""
    about = f"{question.digest} {question.root}".encode(errors="surrogateescape")
    return f"{KEY}-{sha256(about).hexdigest()[:16]}"
