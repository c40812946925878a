"""`serena-central users`: the users of a team and their tokens.

A running server is asked. Without one the database is changed directly: the first user is often added before.
"""

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from serena_central.cli.output import age, json_option, print_json, print_table, say
from serena_central.cli.remote import NoServer, NotOurs, Remote, Unreachable, Unready, named
from serena_central.config.load import load_server_config
from serena_central.core.places import Places

if TYPE_CHECKING:
    from serena_central.sessions.users import AccountChange
    from serena_central.store.database import Database

BY = "the command line"


@click.group(epilog="Example: serena-central users add ada --root '/srv/team-a/*'")
def command() -> None:
    """Add, list, rotate and revoke the users of a team.

    Each has a token, sees and ends only own sessions, and opens only projects in own roots.
    """


@command.command(epilog="Example: serena-central users add ada --root /srv/shop --root '/srv/team-a/*'")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Sees and changes everything, as the holder of the server's own token.")
@click.option(
    "--root",
    "roots",
    metavar="GLOB",
    multiple=True,
    help="Folder, or pattern of folders, in which projects may be opened; repeatable. Default: all allowed_roots.",
)
@json_option
def add(*, name: str, admin: bool, roots: tuple[str, ...], as_json: bool) -> None:
    """Add a user, and show the token, once."""
    wanted = list(roots)
    found = _asked(
        lambda remote: remote.post("/api/v1/users", {"name": name, "admin": admin, "roots": wanted}),
        lambda here: here.add(name, wanted, admin=admin),
    )
    _show_token(found, as_json)


@command.command(name="list", epilog="Example: serena-central users list --json")
@json_option
def list_users(*, as_json: bool) -> None:
    """List users; their tokens are kept nowhere."""
    found = _asked(lambda remote: remote.get("/api/v1/users"), lambda here: here.all())["users"]
    if as_json:
        print_json(found)
        return
    rows = [
        [
            one["name"],
            "revoked" if one["revoked_at"] else "admin" if one["admin"] else "user",
            ", ".join(one["roots"]) or "all",
            age(one["created_at"]),
            age(one["rotated_at"]) if one["rotated_at"] else "-",
        ]
        for one in found
    ]
    print_table(["USER", "MAY", "ROOTS", "AGE", "ROTATED"], rows, empty="No users. `serena-central users add NAME`.")


@command.command(epilog="Example: serena-central users rotate ada")
@click.argument("name")
@json_option
def rotate(*, name: str, as_json: bool) -> None:
    """Give a user another token, and show it, once; the one before is refused from now on."""
    path = f"{named('/api/v1/users', name)}/rotate"
    _show_token(_asked(lambda remote: remote.post(path), lambda here: here.rotate(name)), as_json)


@command.command(epilog="Example: serena-central users revoke ada")
@click.argument("name")
@json_option
def revoke(*, name: str, as_json: bool) -> None:
    """Refuse a user's token from now on, and end the user's sessions."""
    path = named("/api/v1/users", name)
    found = _asked(lambda remote: remote.delete(path), lambda here: here.revoke(name))
    if as_json:
        print_json(found)
    else:
        say(f"Revoked {found['name']}.")


def _show_token(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    say(found["token"])
    say("This token is not shown again. Clients send it as `Authorization: Bearer TOKEN`.", err=True)


def _asked(remote: "Callable[[Remote], Any]", here: "Callable[[_Direct], Any]") -> Any:
    try:
        asked = Remote()
        asked.get("/health")
    except (NotOurs, Unready, Unreachable):  # one that runs would not hear of the change
        raise
    except NoServer:
        return here(_Direct())
    return remote(asked)


class _Direct:
    """The accounts in the database of a server that does not run."""

    def __init__(self) -> None:
        places = Places.of_user()
        places.create()
        self._path, self._url = places.database, load_server_config({}).value.database_url

    def all(self) -> dict[str, Any]:
        from serena_central.store.queries import Queries
        from serena_central.web.accounts import user_view

        with closing(self._database()) as database:
            return {"users": [_plain(user_view(row)) for row in Queries(database).accounts()]}

    def add(self, name: str, roots: list[str], *, admin: bool) -> dict[str, Any]:
        from serena_central.core.event_kinds import UserAdded
        from serena_central.sessions.users import addition, new_account

        row, token = new_account(name, roots, time.time(), admin=admin)
        return self._change(name, addition(row), UserAdded(user=name, admin=admin, roots=row.roots), token)

    def rotate(self, name: str) -> dict[str, Any]:
        from serena_central.core.event_kinds import UserRotated
        from serena_central.sessions.users import rotation

        change, token = rotation(name, time.time())
        return self._change(name, change, UserRotated(user=name), token)

    def revoke(self, name: str) -> dict[str, Any]:
        from serena_central.core.event_kinds import UserRevoked
        from serena_central.sessions.users import revocation

        return self._change(name, revocation(name, time.time()), UserRevoked(user=name), "")["user"]

    def _change(self, name: str, change: "AccountChange", event: Any, token: str) -> dict[str, Any]:
        from serena_central.store.queries import Queries
        from serena_central.store.rows import EventRow
        from serena_central.web.accounts import user_view

        said = EventRow(seq=0, at=time.time(), kind=event.kind, severity="info", message=f"by {BY}", data=event.data)
        with closing(self._database()) as database:
            row, _ = Queries(database).change_account(name, change, said)
        return {"user": _plain(user_view(row)), "token": token}

    def _database(self) -> "Database":
        # Late: SQLAlchemy costs half a second, which a running server has paid already.
        from serena_central.store.database import Database

        return Database(self._path, self._url)


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)
