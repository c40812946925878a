"""What a project host knows of the users whose calls it carries out."""

from pathlib import Path

import pytest

from serena_central.cluster.remote_session import CarriedUsers, state_of
from serena_central.sessions.session import ClientIdentity, IdentifiedBy, Session
from serena_central.sessions.users import User

ADA = "user:ada:0123456789abcdef"


@pytest.mark.parametrize(
    ("user", "opens"),
    [
        (None, {"/srv/a", "/srv/b"}),
        (User("ada", ADA), {"/srv/a", "/srv/b"}),
        (User("ada", ADA, roots=("/srv/a",)), {"/srv/a"}),
        (User("ada", ADA, revoked=True), set()),
    ],
)
def test_a_host_opens_for_a_user_what_the_front_would(user: User | None, opens: set[str]) -> None:
    session = Session("s-1", IdentifiedBy.EXPLICIT, ClientIdentity(credential=ADA), now=0.0)
    users = CarriedUsers()
    users.carry(ADA, state_of(session, edits=False, notes=False, user=user).allowed_roots)
    known = users.restricted(ADA)
    assert {root for root in ("/srv/a", "/srv/b") if known is None or known.may_open(Path(root))} == opens
