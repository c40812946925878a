"""Users of a team for tests: two, each with a project in own roots, on one server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.browser import Visitor
from tests.support.central import RunningCentral, running_central

SECRET = "SecretOfAda"


@dataclass
class Team:
    """Two users, each with a project in own roots, on one server."""

    central: RunningCentral
    ada: httpx.AsyncClient
    bob: httpx.AsyncClient
    owner: httpx.AsyncClient
    shop: Path
    """Ada's."""
    bank: Path
    """Bob's."""

    async def edited(self) -> tuple[str, str, str]:
        """A session of Ada's, with a call and an edit: their ids."""
        session = (await self.ada.post("/api/v1/sessions", json={"working_folder": str(self.shop)})).json()[
            "session_id"
        ]
        arguments = {"relative_path": "cart.py", "needle": "return 0", "repl": "return 1", "mode": "literal"}
        answer = await self.ada.post(
            "/api/v1/tools/replace_content",
            json={"arguments": {**arguments, "project": str(self.shop)}, "session": session},
        )
        assert answer.status_code == 200, answer.text
        (edit,) = (await self.ada.get("/api/v1/edits")).json()["edits"]
        (call,) = (await self.ada.get("/api/v1/calls")).json()["calls"]
        return session, call["id"], edit["id"]


def project(root: Path, name: str) -> Path:
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text(f"class {name}:\n    def total(self) -> int:\n        return 0\n")
    return root.resolve()


@asynccontextmanager
async def running_team(folder: Path, settings: dict[str, Any] | None = None) -> AsyncGenerator[Team]:
    """Ada's folder is `a`, Bob's is `b`."""
    shop, bank = project(folder / "a" / "shop", SECRET), project(folder / "b" / "bank", "Bank")
    async with (
        running_central(folder, settings) as central,
        central.http() as owner,
        client(owner, central, "ada", shop.parent) as ada,
        client(owner, central, "bob", bank.parent) as bob,
    ):
        yield Team(central, ada, bob, owner, shop, bank)


@asynccontextmanager
async def client(
    owner: httpx.AsyncClient, central: RunningCentral, name: str, root: Path
) -> AsyncGenerator[httpx.AsyncClient]:
    token = await added(owner, name, roots=[str(root)])
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=central.url, headers=headers, timeout=60) as http:
        yield http


async def added(owner: httpx.AsyncClient, name: str, **more: Any) -> str:
    answer = await owner.post("/api/v1/users", json={"name": name, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


async def signed_in(team: Team, http: httpx.AsyncClient, user: httpx.AsyncClient) -> Visitor:
    token = user.headers["authorization"].partition(" ")[2]
    answer = await http.post("/dashboard/sign-in", data={"token": token}, headers={"origin": team.central.url})
    assert answer.status_code == 200, answer.text
    return Visitor(http, team.central.url)
