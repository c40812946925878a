"""What clients' hooks ask and say: whether a place's code can be read here, and that a conversation has ended."""

from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from serena_central.access.auth import credential_of
from serena_central.core.errors import InvalidArguments
from serena_central.projects.coverage import coverage
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import SuperRepos
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import ClientIdentity
from serena_central.web.responses import body_of

MOST_GLOBS = MOST_PATHS = 50


class CloseConversation(msgspec.Struct):
    """Body of POST /api/v1/conversations/close: the client's own id of the conversation."""

    conversation: str


@dataclass(frozen=True)
class Hooks:
    """The handlers."""

    projects: ProjectRegistry
    repos: SuperRepos
    sessions: SessionManager

    async def coverage(self, request: Request) -> Any:
        """Each `path` is absolute; each `name` is a glob of file names that are meant."""
        paths = request.query_params.getlist("path")[:MOST_PATHS]
        if not paths or not all(path.startswith("/") for path in paths):
            raise InvalidArguments("path must be an absolute path.")
        globs = request.query_params.getlist("name")[:MOST_GLOBS]
        return await coverage(self.projects, self.repos, paths, globs)

    async def close_conversation(self, request: Request) -> Any:
        """The goodbye of a client that is identified by its conversation's id alone.

        Raises:
            SessionNotFound
        """
        asked = await body_of(request, CloseConversation)
        if not asked.conversation:
            raise InvalidArguments("conversation must be the client's conversation id.")
        identity = ClientIdentity(credential=credential_of(request.scope), conversation_id=asked.conversation)
        session = self.sessions.get(identity.resolve()[0])
        self.sessions.disconnect(session.id, "its client ended the conversation", for_good=True)
        return self.sessions.snapshot(session)
