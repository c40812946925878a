"""Trust in the dashboard: what was shown is what is approved, and only by a page of this browser."""

import re
from collections.abc import AsyncGenerator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "main.go").write_text("package main\n")
    name_program(root, "evil")
    return root


@pytest.fixture
async def central(tmp_path: Path, root: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"projects": [str(root)], "trusted_roots": []}) as running:
        yield running


def name_program(root: Path, program: str) -> None:
    (root / ".serena").mkdir(exist_ok=True)
    (root / ".serena" / "project.yml").write_text(f'language_servers: {{go: {{command: "{program}"}}}}\n')


async def page(visitor: Visitor, root: Path) -> str:
    return await visitor.see(f"/projects/one?root={quote(str(root))}")


def digest_in(html: str) -> str:
    found = re.search(r'name="digest" value="(\w{64})"', html)
    assert found
    return found[1]


async def call(central: RunningCentral, root: Path) -> None:
    async with central.http() as http:
        body: dict[str, Any] = {"arguments": {"project": str(root), "relative_path": "."}}
        assert (await http.post("/api/v1/tools/list_dir", json=body)).status_code == 200


async def test_it_shows_what_is_brought_and_trusts_that(central: RunningCentral, visitor: Visitor, root: Path) -> None:
    html = await page(visitor, root)
    assert "not trusted" in shown(html)
    assert "command: evil" in unescape(html)
    assert "build scripts" in html
    done = await visitor.act("/projects/trust", {"root": str(root), "digest": digest_in(html)})
    assert done.status_code == 303
    trust = central.central.dashboard.parts.trust
    assert trust.is_trusted(root)
    (approval,) = trust.approvals()
    assert approval.by == "a user in the dashboard"
    html = await page(visitor, root)
    assert 'action="/dashboard/projects/trust"' not in html
    assert 'action="/dashboard/projects/revoke"' in html

    name_program(root, "worse")
    html = await page(visitor, root)
    assert "-    command: evil" in unescape(html)
    assert "+    command: worse" in unescape(html)
    assert (await visitor.act("/projects/revoke", {"root": str(root)})).status_code == 303
    assert trust.approvals() == []


async def test_what_changed_since_it_was_shown_is_refused(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    old = digest_in(await page(visitor, root))
    name_program(root, "worse")
    for headers in ({}, {"hx-request": "true"}):
        refused = await visitor.act("/projects/trust", {"root": str(root), "digest": old}, headers)
        assert refused.status_code == 409
        assert "changed after it was displayed" in refused.text
    assert (await visitor.act("/projects/trust", {"root": str(root)})).status_code == 409
    assert not central.central.dashboard.parts.trust.is_trusted(root)
    assert digest_in(await page(visitor, root)) != old


async def test_a_token_alone_gives_no_trust(central: RunningCentral, visitor: Visitor, root: Path) -> None:
    fields = {"root": str(root), "digest": digest_in(await page(visitor, root))}
    async with central.http() as http:
        for path in ("/dashboard/projects/trust", "/api/v1/projects/trust", "/api/trust"):
            refused = await http.post(path, data=fields, headers={"origin": central.url})
            assert refused.status_code in (303, 401, 403, 404, 405), path
        tools = (await http.get("/api/v1/tools")).json()["tools"]
        assert not [tool["name"] for tool in tools if "trust" in tool["name"]]
    for wrong in ({"csrf": "0" * 64}, {"csrf": ""}):
        assert (await visitor.act("/projects/trust", fields | wrong)).status_code == 403
    elsewhere = await visitor.act("/projects/trust", fields, {"origin": "http://127.0.0.1:1"})
    assert elsewhere.status_code == 403
    assert not central.central.dashboard.parts.trust.is_trusted(root)


async def test_the_overview_says_what_waits_for_a_person(central: RunningCentral, visitor: Visitor, root: Path) -> None:
    await call(central, root)
    assert "shop is not trusted: some of its settings are ignored (language_servers.go.command)" in shown(
        await visitor.see()
    )
    digest = digest_in(await page(visitor, root))
    await visitor.act("/projects/trust", {"root": str(root), "digest": digest})
    await call(central, root)
    assert "shop is not trusted" not in shown(await visitor.see())
    name_program(root, "worse")
    assert "What shop can execute has changed since it was trusted" in shown(await visitor.see())


async def test_the_overview_says_which_servers_are_not_run(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    (root / "main.py").write_text("x = 1\n")
    (root / ".serena" / "project.yml").write_text("language_servers: {python: basedpyright}\n")
    await call(central, root)
    assert "shop is not trusted: basedpyright is not started." in shown(await visitor.see())


async def test_what_a_repository_writes_is_text(visitor: Visitor, root: Path) -> None:
    name_program(root, "</code><script>alert(1)</script>")
    html = await page(visitor, root)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html
