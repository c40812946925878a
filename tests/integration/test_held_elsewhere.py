"""What a server does with open projects, it does with those that project hosts hold: hosts on real connections."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from serena_central.analysis.analysis_run import Kind
from serena_central.cluster.front import ROOTS_KEPT_S
from serena_central.core.errors import ClusterError, HostUnavailable, TrustRefused, UnknownProject
from serena_central.projects.trust.trust_dialog import TrustQuestion
from serena_central.sessions.users import new_account
from serena_central.tools.workflow import NO_ANSWER, NOT_ASKED
from serena_central.web.pages.analysis_status import work
from serena_central.web.pages.page import Visit
from tests.support.browser import visiting
from tests.support.central import RunningCentral, session_of
from tests.support.hosts import Held, fronting, holding
from tests.support.tasks import over, scripted, start

pytestmark = pytest.mark.anyio


@dataclass
class Shop:
    root: Path
    bank: Path
    held: Held
    front: RunningCentral

    async def call(self, tool: str, session: str = "s", **arguments: Any) -> str:
        answer = await self.front.central.caller.call(
            session_of(self.front.central, explicit_id=session), tool, arguments
        )
        return "\n".join(answer.blocks)

    async def post(self, path: str, **body: Any) -> httpx.Response:
        async with self.front.http() as http:
            return await http.post(path, json=body)


@asynccontextmanager
async def two_projects(
    folder: Path, settings: dict[str, Any] | None = None, names: tuple[str, str] = ("shop", "bank")
) -> AsyncGenerator[Shop]:
    roots = [folder / name for name in names]
    for root in roots:
        (root / ".git").mkdir(parents=True)
        (root / "cart.py").write_text("class Cart:\n    def total(self):\n        return 1\n")
    optional = {"included_optional_tools": ["refactoring_report", "check_references", "find_unused_symbols", "route"]}
    given = {"trusted_roots": [str(folder)], **optional, **(settings or {})}
    async with holding(folder, *roots, settings=given) as held, fronting(folder, held, given) as front:
        yield Shop(roots[0], roots[1], held, front)


async def test_a_project_stays_active_and_introduces_itself(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        memories = shop.root / ".serena/memories"
        memories.mkdir(parents=True)
        (memories / "paying.md").write_text("how\n")
        assert "languages:" in await shop.call("activate_project", project="shop")
        assert "cart.py" in await shop.call("list_dir", relative_path=".", recursive=False)
        assert str(shop.root) in await shop.call("get_current_config")
        told = await shop.call("initial_instructions")
        assert f"Active project: 'shop', '{shop.root}'." in told
        assert "Memories: 'paying'" in told


async def test_the_list_of_projects_tells_what_hosts_hold_and_of_which_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_projects(tmp_path) as shop:
        await shop.call("list_dir", relative_path=".", recursive=False, project="shop")
        listed = {one["name"]: one for one in json.loads(await shop.call("list_projects"))}
        assert (listed["shop"]["open"], listed["shop"]["files"], listed["shop"]["sessions"]) == (True, 1, 1)
        assert "note" not in listed["shop"]
        assert (listed["bank"]["open"], listed["bank"]["note"]) == (False, NOT_ASKED)
        monkeypatch.setattr("serena_central.cluster.host_requests.LISTED_S", 0.0)
        listed = {one["name"]: one for one in json.loads(await shop.call("list_projects"))}
        assert (listed["shop"]["open"], listed["shop"]["note"]) == (False, NO_ANSWER)


async def test_a_warm_up_is_done_by_hosts_and_its_outcome_left_for_scripts(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        done = await shop.post("/api/v1/warm", folder=str(shop.root))
        assert '"success":true' in done.text
        assert "starting python" in done.text  # its progress came, too
        status = json.loads((tmp_path / "front/home/warmup-status.json").read_text())
        assert [(one["project"], one["language"]) for one in status["modules"]] == [("shop", "python")]
        assert shop.held.services[str(shop.root)].pool.snapshot()
        assert not shop.front.central.pool.snapshot()
        begun = await shop.post("/api/v1/warm", folder=str(shop.bank), background=True)
        assert begun.json() == {"started": [str(shop.bank)], "names": ["bank"]}
        with anyio.fail_after(60):
            while not shop.held.services[str(shop.bank)].pool.snapshot():
                await anyio.sleep(0.01)
        unknown = await shop.post("/api/v1/warm", folder=str(tmp_path))
        assert unknown.status_code == 404


async def test_sessions_that_start_in_a_held_project_warm_it_up(tmp_path: Path) -> None:
    async with two_projects(tmp_path, {"warm_on_session_start": "all"}) as shop:
        session_of(shop.front.central, explicit_id="new", working_folder=str(shop.root))
        with anyio.fail_after(60):
            while not shop.held.services[str(shop.root)].pool.snapshot():
                await anyio.sleep(0.01)


async def analysed(shop: Shop, kind: Kind) -> None:
    job = shop.front.central.analysis_runs.start(shop.root, kind)
    with anyio.fail_after(60):
        while not job.done:
            await anyio.sleep(0.01)
    assert job.failure == ""


async def test_graph_and_findings_of_a_held_project_are_shown_until_its_code_changes(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        runs = shop.front.central.analysis_runs
        assert await runs.graph(shop.root) is None
        for kind in ("graph", "findings"):
            await analysed(shop, kind)
        graph, findings = await runs.graph(shop.root), await runs.findings(shop.root)
        assert graph is not None
        assert graph.files == ["cart.py"]
        assert findings is not None
        assert findings.checked == 1
        assert await runs.changed_since(graph) is False
        (shop.root / "cart.py").write_text("class Cart:\n    def total(self):\n        return 3\n")
        assert await runs.changed_since(graph) is True


async def test_a_refactoring_report_tells_what_changed_on_each_host(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        for project in ("shop", "bank"):
            for tool in ("check_references", "find_unused_symbols"):
                await shop.call(tool, project=project)
        edit = {"relative_path": "cart.py", "needle": "return", "repl": "return  ", "mode": "literal"}
        await shop.call("replace_content", project="shop", **edit)
        told = await shop.call("refactoring_report")
        assert "1 edit by test" in told
        assert "/shop/cart.py` |" in told
        assert "not known" not in told  # what each found before its first edit is known where it was asked
        assert "on different hosts" in told
        nothing = "This session has made no changes, and asked for no findings.\n"
        assert await shop.call("refactoring_report", session="another") == nothing


async def test_a_report_and_instructions_are_given_without_what_no_host_can_tell(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        edit = {"relative_path": "cart.py", "needle": "return", "repl": "return  ", "mode": "literal"}
        for project in ("shop", "bank"):
            await shop.call("replace_content", project=project, **edit)
        await shop.call("activate_project", project="shop")
        await shop.call("list_dir", "looks", relative_path=".", recursive=False, project="bank")
        assert (await shop.call("refactoring_report", "looks")).count("has made no changes") == 1
        shop.held.offered.remove(str(shop.root))
        await anyio.sleep(ROOTS_KEPT_S)
        told = await shop.call("refactoring_report")
        assert "bank/cart.py" in told
        assert "is not included: There is no project" in told
        told = await shop.call("initial_instructions")
        assert "get_symbols_overview" in told
        assert "What 'shop' says itself is missing" in told


async def test_projects_below_an_offered_root_are_asked_alone_and_listed(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        module = shop.root / "module"
        (module / ".git").mkdir(parents=True)
        (module / "cart.py").write_text("class Cart:\n    pass\n")
        found = json.loads(await shop.call("find_symbol", name_path_pattern="Cart", project=f"{module},{shop.bank}"))
        assert found.keys() == {"module", "bank"}
        await shop.call("activate_project", project=str(module))
        listed = {one["name"]: one for one in json.loads(await shop.call("list_projects"))}
        assert (listed["module"]["root"], listed["module"]["open"], listed["module"]["sessions"]) == (
            str(module),
            True,
            1,
        )


async def test_everything_means_what_is_open_and_starts_no_host(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        asked = {"name_path_pattern": "Cart", "project": "*"}
        with pytest.raises(UnknownProject):
            await shop.call("find_symbol", **asked)
        module = shop.root / "module"
        (module / ".git").mkdir(parents=True)
        (module / "cart.py").write_text("class Cart:\n    pass\n")
        await shop.call("activate_project", project=str(module))
        assert json.loads(await shop.call("find_symbol", **asked)).keys() == {"module", "shop"}
        await shop.call("list_dir", relative_path=".", recursive=False, project="bank")
        assert len(json.loads((await shop.call("find_symbol", **asked)).splitlines()[0])) == 3
        row, _token = new_account("ann", [str(module)], 0.0, admin=False)
        shop.front.central.users.take([row])
        session = session_of(shop.front.central, credential=row.credential, explicit_id="hers")
        found = await shop.front.central.caller.call(session, "find_symbol", asked)
        assert json.loads(found.blocks[0]).keys() == {"module"}


async def test_projects_of_one_name_on_several_hosts_are_told_apart_as_in_one_process(tmp_path: Path) -> None:
    async with two_projects(tmp_path, names=("a/api", "b/api")) as shop:
        listed = {"relative_path": ".", "recursive": False}
        await shop.call("list_dir", project=str(shop.root), **listed)
        await shop.call("list_dir", project=str(shop.bank), **listed)
        roots = {str(shop.root), str(shop.bank)}
        for named in ("*", [*roots]):
            groups = json.loads(await shop.call("find_symbol", name_path_pattern="Cart", project=named))
            assert groups.keys() == roots
            assert all(group[0]["name_path"] == "Cart" for group in groups.values())
        module = shop.root / "client"
        (module / ".git").mkdir(parents=True)
        (module / "cart.py").write_text("class Cart:\n    pass\n")
        named = [str(module), str(shop.bank)]
        groups = json.loads(await shop.call("find_symbol", name_path_pattern="Cart", project=named))
        assert groups.keys() == {"client", "api"}


async def test_modules_of_one_name_on_several_hosts_are_told_apart(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        modules = [root / "client" for root in (shop.root, shop.bank)]
        for module in modules:
            (module / ".git").mkdir(parents=True)
            (module / "cart.py").write_text("class Cart:\n    pass\n")
        named = [*map(str, modules), "shop"]
        groups = json.loads(await shop.call("find_symbol", name_path_pattern="Cart", project=named))
        assert groups.keys() == {*map(str, modules), "shop"}


async def test_the_list_of_one_host_of_several_goes_on_by_its_cursor(tmp_path: Path) -> None:
    async with two_projects(tmp_path, names=("a/api", "b/api")) as shop:
        (shop.root / "more.py").write_text("")
        (shop.root / "most.py").write_text("")
        question = {"file_mask": "*.py", "project": [str(shop.root), str(shop.bank)], "limit": 1}
        told = await shop.call("find_file", **question)
        assert f"'{shop.root}': 3 files" in told
        assert f'cursor="{shop.root}:1/3" continues' in told
        for cursor, file, more in (("1/3", "more.py", "2/3"), ("2/3", "most.py", None)):
            told = await shop.call("find_file", **question, cursor=f"{shop.root}:{cursor}")
            assert list(json.loads(told.splitlines()[-1])) == [str(shop.root)]
            assert file in told
            assert more is None or f'cursor="{shop.root}:{more}" continues' in told
        alone = await shop.call("find_file", file_mask="*.py", project=str(shop.root), cursor=f"{shop.root}:2/3")
        assert "most.py" in alone


async def test_a_host_that_fails_spoils_no_answer_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_arguments: object) -> None:
        raise RuntimeError("broken")

    async with two_projects(tmp_path, names=("a/api", "b/api")) as shop:
        monkeypatch.setattr(shop.held.services[str(shop.root)].super_repos, "worked_in", breaks)
        question = {"name_path_pattern": "Cart", "project": [str(shop.root), str(shop.bank)]}
        groups = json.loads(await shop.call("find_symbol", **question))
        assert "Internal error" in groups[str(shop.root)]["error"]
        assert groups[str(shop.bank)][0]["name_path"] == "Cart"
        del shop.held.addresses[str(shop.root)]
        groups = json.loads(await shop.call("find_symbol", **question))
        assert groups[str(shop.bank)][0]["name_path"] == "Cart"


async def test_the_page_of_a_project_is_shown_while_its_host_is_gone(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        runs = shop.front.central.analysis_runs
        await analysed(shop, "graph")
        graph = await runs.graph(shop.root)
        assert graph is not None
        shop.held.offered.remove(str(shop.root))
        await anyio.sleep(ROOTS_KEPT_S)
        assert await runs.changed_since(graph) is None
        page = await work(Visit(shop.front.central.dashboard.parts, {}, {"root": str(shop.root)}, 0.0))
        assert "There is no project" in page.tasks[0].failure


async def test_trust_is_asked_for_where_the_project_is(tmp_path: Path) -> None:
    async with two_projects(tmp_path, {"trusted_roots": []}) as shop:
        (shop.root / ".serena").mkdir()
        (shop.root / ".serena/project.yml").write_text('language_servers: {python: {command: "echo hello"}}\n')
        await shop.call("activate_project", project="shop")
        dialog = shop.front.central.held_elsewhere.by
        assert dialog is not None
        question = await dialog.question(shop.root)
        assert question is not None
        assert "echo hello" in question.text
        with pytest.raises(TrustRefused):
            await dialog.keep(TrustQuestion(question.root, "another", question.text), "a person")
        await dialog.keep(question, "a person")
        assert await dialog.question(shop.root) is None
        assert shop.held.services[str(shop.root)].trust.is_trusted(shop.root)


async def test_an_error_at_a_host_is_told_to_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("broken")

    async with two_projects(tmp_path) as shop:
        await analysed(shop, "graph")
        runs = shop.front.central.analysis_runs
        graph = await runs.graph(shop.root)
        assert graph is not None
        monkeypatch.setattr("serena_central.analysis.local_analyses.LocalAnalyses.fingerprints", breaks)
        assert await runs.changed_since(graph) is None
        monkeypatch.setattr("serena_central.analysis.local_analyses.LocalAnalyses.rules", breaks)
        with pytest.raises(ClusterError, match=r"host of .*shop' failed: RuntimeError: broken"):
            await runs.graph(shop.root)


async def test_a_task_changes_a_held_project_and_says_what_was_not_checked(tmp_path: Path) -> None:
    edit = {"relative_path": "cart.py", "needle": "return 1", "repl": "return 2", "mode": "literal"}
    steps = [{"call": "replace_content", "arguments": edit}, {"text": "done"}]
    async with two_projects(tmp_path, scripted(tmp_path, {"Change": steps})) as shop, shop.front.http() as http:
        found = await over(http, (await start(http, "Change it", shop.root))["id"])
        assert (found["state"], found["verified"]["files"]) == ("done", ["cart.py"])
        assert "return 2" in (shop.root / "cart.py").read_text()
        assert "not determined" in " ".join(found["verified"]["notes"])


async def test_a_name_that_no_root_has_is_a_module_of_where_the_session_works(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        (shop.root / ".serena").mkdir()
        (shop.root / ".serena/project.yml").write_text("type: super-repo\nmodules:\n  cellar: {path: cellar}\n")
        (shop.root / "cellar/.git").mkdir(parents=True)
        (shop.root / "cellar/wine.py").write_text("class Wine:\n    pass\n")
        named = {"relative_path": ".", "recursive": False}
        with pytest.raises(UnknownProject):
            await shop.call("list_dir", project="cellar", **named)
        await shop.call("activate_project", project="shop")
        assert "wine.py" in await shop.call("list_dir", project="cellar", **named)
        assert "cellar" in await shop.call("activate_project", project="cellar")
        assert "wine.py" in await shop.call("list_dir", **named)
        with pytest.raises(UnknownProject):
            await shop.call("list_dir", project="attic", **named)


async def test_pages_say_where_to_see_what_hosts_hold(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop, visiting(shop.front) as visitor:
        await shop.call("list_dir", relative_path=".", recursive=False, project="shop")
        for page in (f"/projects/one?root={shop.root}", "/servers", ""):
            html = await visitor.see(page)
            assert "project hosts: see" in html, page
            assert "opened by the next call" not in html
            assert "No language server is running" not in html


async def test_a_project_without_a_host_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with two_projects(tmp_path) as shop:
        shop.held.addresses.clear()
        refused = await shop.post("/api/v1/warm", folder=str(shop.root))
        assert "no node offers it" in refused.text
        runs = shop.front.central.analysis_runs
        job = runs.start(shop.root, "graph")
        with anyio.fail_after(60):
            while not job.done:
                await anyio.sleep(0.01)
        assert "no node offers it" in job.failure
        with pytest.raises(HostUnavailable):
            await shop.call("list_dir", relative_path=".", recursive=False, project="shop")
