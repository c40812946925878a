"""The API's routes of a team's users: /api/v1/users, for administrators."""

from dataclasses import dataclass

import msgspec
from starlette.requests import Request

from serena_central.access.auth import user_of
from serena_central.core.errors import InvalidArguments
from serena_central.sessions.accounts import Accounts
from serena_central.store.rows import AccountRow
from serena_central.web.responses import body_of


class AddUser(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/users. `roots` are absolute folders or patterns of folders; none: all that the settings
    allow."""

    name: str
    admin: bool = False
    roots: list[str] = []


class UserView(msgspec.Struct, frozen=True, kw_only=True):
    """A user as /api and the command line show it. Times are Unix seconds."""

    name: str
    admin: bool
    roots: list[str]
    created_at: float
    rotated_at: float | None
    revoked_at: float | None


class UserList(msgspec.Struct, frozen=True):
    users: list[UserView]


class UserToken(msgspec.Struct, frozen=True):
    """`token` is shown this once: only its digest is kept."""

    user: UserView
    token: str


@dataclass(frozen=True)
class AccountRoutes:
    """The handlers."""

    accounts: Accounts

    async def list_users(self, _request: Request) -> UserList:
        """Revoked ones too."""
        return UserList([user_view(row) for row in await self.accounts.all()])

    async def add_user(self, request: Request) -> UserToken:
        """With a token that is shown this once."""
        asked = await body_of(request, AddUser)
        row, token = await self.accounts.add(asked.name, asked.roots, _by(request), admin=asked.admin)
        return UserToken(user_view(row), token)

    async def rotate_user(self, request: Request) -> UserToken:
        """Another token; the one before is refused from now on, and what it opened ends, but for sessions."""
        row, token = await self.accounts.rotate(request.path_params["user"], _by(request))
        return UserToken(user_view(row), token)

    async def revoke_user(self, request: Request) -> UserView:
        """Refuses the token, and ends the user's sessions and sign-ins."""
        name, own = request.path_params["user"], user_of(request.scope)
        if own is not None and own.name == name:
            raise InvalidArguments("Nobody revokes the user that asks for it: another administrator does.")
        return user_view(await self.accounts.revoke(name, _by(request)))


def user_view(row: AccountRow) -> UserView:
    """Without digests."""
    return UserView(**{name: getattr(row, name) for name in UserView.__struct_fields__})


def _by(request: Request) -> str:
    user = user_of(request.scope)
    return "the holder of the server's token" if user is None else user.name
