"""Where events lead: to what has a page, and nowhere else."""

from pathlib import Path

import pytest

from serena_central.app import Application
from serena_central.projects.registry import KnownProject
from serena_central.web.pages.references import PageLink, PageLinks, project_page, server_page
from tests.support.central import session_of
from tests.support.events import call_finished, edit_applied, project_opened, server_moved, session_created
from tests.support.pools import hover, pool_box

pytestmark = pytest.mark.anyio


def known(central: Application, name: str, root: str) -> None:
    central.projects.remember(KnownProject(name, root))


async def test_an_event_leads_to_all_that_it_is_about_the_narrowest_first(central: Application) -> None:
    session_of(central, explicit_id="s")
    known(central, "shop", "/src/shop")
    event = edit_applied(session="s", project="shop")
    assert PageLinks(central.dashboard.parts).of(event) == [
        PageLink("edit", "/dashboard/edits/e-1"),
        PageLink("test", "/dashboard/sessions/s"),
        PageLink("shop", "/dashboard/projects/one?root=%2Fsrc%2Fshop"),
    ]


async def test_a_servers_event_leads_to_the_server_of_its_root(
    central: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    async with pool_box(folder) as box:
        async with box.pool.lease(box.wanted("a")) as server:
            await hover(server)
        monkeypatch.setattr(central.pool, "snapshot", box.pool.snapshot)
        root = str(folder / "a")
        event = server_moved(server="fake", project=root, root=root)
        elsewhere = server_moved(server="fake", project="/b", root="/b")
        references = PageLinks(central.dashboard.parts)
        key = box.shown(box.wanted("a")).key
        assert references.of(event) == [PageLink("fake", server_page(key)), PageLink("a", "")]
        assert references.of(elsewhere) == [PageLink("fake", ""), PageLink("b", "")]


async def test_what_is_gone_or_may_mean_two_has_no_page(central: Application) -> None:
    known(central, "shop", "/one/shop")
    known(central, "shop", "/two/shop")
    known(central, "bank", "/one/bank")
    references = PageLinks(central.dashboard.parts)
    call = session_created(session="s-gone", project="shop", client="zed")
    assert references.of(call) == [PageLink("zed", ""), PageLink("shop", "")]
    two = call_finished(session="s-gone", project="shop, bank")
    assert references.of(two) == [
        PageLink("call", "/dashboard/calls/c-1"),
        PageLink("s-gone", ""),
        PageLink("shop, bank", ""),
    ]
    opened = project_opened(root="/two/shop")
    assert references.of(opened) == [PageLink("shop", project_page("/two/shop"))]
