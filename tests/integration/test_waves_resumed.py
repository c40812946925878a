"""Plans that are gone on with: what was undone, broken or repaired meanwhile counts as it is, not as it was."""

import json
import signal
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.integration.test_waves import BREAK, FILES, HARMLESS, create, diff, root, wave
from tests.support.central import running_central
from tests.support.child import PATIENCE_S, serving_child
from tests.support.tasks import over_plan, scripted, start_plan

__all__ = ["root"]

pytestmark = pytest.mark.anyio

ONE, TWO = [create("one.py", "x = 1\n"), {"text": "one"}], [create("two.py", "x = 2\n"), {"text": "two"}]
ALLOWED = {"command": "test -e allowed"}
HOLD = {"run": ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep .01; done"]}


async def resumed(http: httpx.AsyncClient, plan: str, **asked: Any) -> dict[str, Any]:
    answer = await http.post(f"/api/v1/plans/{plan}/resume", json=asked)
    assert answer.status_code == 202, answer.text
    return await over_plan(http, plan)


def states(found: dict[str, Any]) -> tuple[str, list[str]]:
    return found["state"], [one["state"] for one in found["waves"]]


def environment(tmp_path: Path, scripts: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    settings = scripted(tmp_path, scripts)
    return {f"SERENA_CENTRAL_{key.upper().replace('.', '_')}": str(value) for key, value in settings.items()}


async def until_there(path: Path) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not path.exists():
            await anyio.sleep(0.01)


async def test_a_task_that_was_undone_with_its_transaction_runs_again_beside_one_that_was_not(
    tmp_path: Path, root: Path
) -> None:
    async with (
        running_central(tmp_path, scripted(tmp_path, {"one": ONE, "two": TWO})) as running,
        running.http() as http,
    ):
        check = {"command": "echo '# changed' >> one.py; test -e allowed"}
        plan = {"name": "x", "waves": [wave("one", "two", transaction=True, checks=[check])]}
        found = await over_plan(http, await start_plan(http, plan, root))
        assert states(found) == ("stopped", ["failed"])
        assert "exit code 1. Undone: 1 edit. Not undone: e-" in found["says"]
        (root / "allowed").touch()
        found = await resumed(http, found["id"])
        assert (states(found), found["waves"][0]["says"]) == (("done", ["done"]), "")
        assert (root / "two.py").exists()
        assert any(note.startswith("2 ran again") for note in found["waves"][0]["notes"])


async def test_what_was_undone_on_request_runs_again(tmp_path: Path, root: Path) -> None:
    async with (
        running_central(tmp_path, scripted(tmp_path, {"one": ONE, "two": TWO})) as running,
        running.http() as http,
    ):
        plan = {"name": "x", "waves": [wave("one"), wave("two", checks=[ALLOWED])]}
        found = await over_plan(http, await start_plan(http, plan, root))
        assert states(found) == ("stopped", ["done", "failed"])
        undone = (await http.post(f"/api/v1/plans/{found['id']}/undo")).json()
        assert (len(undone["undone"]), diff(root)) == (2, "")
        (root / "allowed").touch()
        found = await resumed(http, found["id"])
        assert states(found) == ("done", ["done", "done"])
        assert [(root / name).exists() for name in ("one.py", "two.py")] == [True, True]


async def test_edits_that_are_undone_while_a_person_is_asked_fail_the_wave(tmp_path: Path, root: Path) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"one": ONE})) as running, running.http() as http:
        plan = {"name": "x", "waves": [wave("one", checks=[{"approval": "Good?"}])]}
        found = await over_plan(http, await start_plan(http, plan, root))
        [edit] = found["waves"][0]["verified"]["edits"]
        assert (await http.post(f"/api/v1/edits/{edit}/undo")).status_code == 200
        await http.post(f"/api/v1/plans/{found['id']}/decision", json={"approved": True})
        found = await over_plan(http, found["id"])
        assert states(found) == ("stopped", ["failed"])
        assert f"edits of the task 1 were undone meanwhile: {edit}" in found["says"]


async def test_a_failed_check_looks_again(tmp_path: Path, root: Path) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"": [BREAK]})) as running, running.http() as http:
        plan = {"name": "x", "waves": [wave("go", checks=["no-new-errors"])]}
        found = await over_plan(http, await start_plan(http, plan, root))
        assert "no-new-errors: shop.py:0" in found["says"]
        (root / "shop.py").write_text(FILES["shop.py"].replace("total", "whole"))
        found = await resumed(http, found["id"])
        assert (states(found), found["says"]) == (("done", ["done"]), "")
        assert len(found["waves"][0]["tasks"][0]["verified"]["edits"]) == 1


async def test_errors_that_came_before_a_transaction_began_again_are_none_of_its_own(
    tmp_path: Path, root: Path
) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"": [HARMLESS]})) as running, running.http() as http:
        plan = {"name": "x", "waves": [wave("go", transaction=True, checks=[ALLOWED])]}
        found = await over_plan(http, await start_plan(http, plan, root))
        assert states(found) == ("stopped", ["undone"])
        with (root / "cart.py").open("a") as file:
            file.write("\n\nprint(undefined_by_the_user)\n")
        (root / "allowed").touch()
        assert states(await resumed(http, found["id"])) == ("done", ["done"])


async def test_transactions_of_two_plans_are_judged_apart(tmp_path: Path, root: Path) -> None:
    scripts = {"harmless": [HOLD, HARMLESS, {"text": "x"}], "break": [BREAK, {"text": "x"}]}
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running, running.http() as http:
        first = await start_plan(http, {"name": "a", "transaction": True, "waves": [wave("harmless")]}, root)
        await until_there(root / "begun")
        second = await start_plan(http, {"name": "b", "transaction": True, "waves": [wave("break")]}, root)
        with anyio.fail_after(PATIENCE_S):
            while "another plan" not in (await http.get(f"/api/v1/plans/{second}")).json()["waves"][0]["says"]:
                await anyio.sleep(0.01)
        (root / "go").touch()
        assert states(await over_plan(http, first)) == ("done", ["done"])
        assert states(await over_plan(http, second)) == ("stopped", ["undone"])
        assert "return 2" in (root / "cart.py").read_text()


async def test_what_others_edited_meanwhile_is_named(tmp_path: Path, root: Path) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"": [HOLD, HARMLESS]})) as running, running.http() as http:
        begun = await start_plan(http, {"name": "a", "transaction": True, "waves": [wave("go")]}, root)
        await until_there(root / "begun")
        body = {"arguments": {**BREAK["arguments"], "project": str(root)}, "session": "other"}
        assert (await http.post("/api/v1/tools/replace_symbol_body", json=body)).status_code == 200
        (root / "go").touch()
        found = await over_plan(http, begun)
        [edit] = found["waves"][0]["verified"]["edits_of_others"]
        assert f"Others edited meanwhile, which may be why: {edit}" in found["says"]


async def test_a_waiting_plan_is_what_it_was_after_a_restart(tmp_path: Path, root: Path) -> None:
    more = environment(tmp_path, {"one": ONE})
    plan = {"name": "x", "waves": [wave("one", checks=[{"approval": "Good?"}])]}
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        begun = await start_plan(http, plan, root)
        found = await over_plan(http, begun)
        assert found["state"] == "waiting"
        await child.end(signal.SIGKILL)
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        path = f"/api/v1/plans/{begun}"
        assert (await http.post(f"{path}/undo")).status_code == 409
        [edit] = found["waves"][0]["verified"]["edits"]
        await http.post(f"/api/v1/edits/{edit}/undo")
        decided = await http.post(f"{path}/decision", json={"approved": True})
        assert (decided.status_code, "again" in decided.json()["error"]["message"]) == (409, True)
        assert (await over_plan(http, begun))["state"] == "waiting"
        assert (root / "one.py").exists()
        await child.end(signal.SIGKILL)
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        found = (await http.post(f"/api/v1/plans/{begun}/cancel", params={"by": "Ann"})).json()
        assert states(found) == ("cancelled", ["cancelled"])
        late = await http.post(f"/api/v1/plans/{begun}/decision", json={"approved": True})
        assert late.status_code == 409


async def test_what_an_interrupted_transaction_left_is_kept_on_a_persons_word(tmp_path: Path, root: Path) -> None:
    more = environment(tmp_path, {"": [create("partial.py", "x = 1\n"), HOLD, {"text": "x"}]})
    plan = {"name": "x", "waves": [wave("go", transaction=True)]}
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        begun = await start_plan(http, plan, root)
        await until_there(root / "begun")
        await child.end(signal.SIGKILL)
    (root / "partial.py").write_text("x = 1\ny = 2\n")
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        found = await resumed(http, begun)
        assert found["state"] == "stopped"
        assert f"serena-central waves resume {begun} --keep-edits" in found["says"]
        (root / "partial.py").unlink()
        (root / "go").touch()
        found = await resumed(http, begun, keep_edits=True)
        assert (states(found), "Kept: e-" in found["waves"][0]["notes"][0]) == (("done", ["done"]), True)


async def test_a_plan_that_was_accepted_is_there_after_a_kill(tmp_path: Path, root: Path) -> None:
    more = environment(tmp_path, {"": [HOLD]})
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        begun = await start_plan(http, {"name": "x", "waves": [wave("go")]}, root)
        await child.end(signal.SIGKILL)
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        found = (await http.get(f"/api/v1/plans/{begun}")).json()
        assert found["state"] == "interrupted"
        (root / "go").touch()
        assert (await resumed(http, begun))["state"] == "done"


async def test_a_plan_whose_row_the_database_never_got_is_gone_on_with(tmp_path: Path, root: Path) -> None:
    more = environment(tmp_path, {"": [HOLD]})
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        begun = await start_plan(http, {"name": "x", "waves": [wave("go")]}, root)
        await child.end(signal.SIGKILL)
    for file in (tmp_path / "home").glob("serena-central.db*"):
        file.unlink()
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        found = (await http.get(f"/api/v1/plans/{begun}")).json()
        assert found["state"] == "interrupted"
        assert [one["id"] for one in (await http.get("/api/v1/plans")).json()["plans"]] == [begun]
        (root / "go").touch()
        assert (await resumed(http, begun))["state"] == "done"
        for stranger in ("p-000000000000", "..", f"..%2Fplans%2F{begun}"):
            assert (await http.get(f"/api/v1/plans/{stranger}")).status_code == 404


async def test_tasks_are_named_by_their_numbers_too(tmp_path: Path, root: Path) -> None:
    scripts = {"one": ONE, "look (.*)": [{"text": "${instruction}"}]}
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running, running.http() as http:
        plan = {"name": "x", "waves": [wave({"name": "map", "instruction": "one"}), wave("look ${waves.1.tasks.1}")]}
        found = await over_plan(http, await start_plan(http, plan, root))
        assert "one" in found["waves"][1]["tasks"][0]["text"]
        asked = {"wave": "1", "task": "1"}
        undone = (await http.post(f"/api/v1/plans/{found['id']}/undo", params=asked)).json()
        assert (len(undone["undone"]), (root / "one.py").exists()) == (1, False)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            {"plan": {"name": "x", "waves": [wave({"instruction": "x", "agent": "nobody"})]}},
            "waves[0].tasks[0]: There is",
        ),
        ({"plan": {"name": "x", "waves": [wave({"instruction": "x", "runner": "nope"})]}}, "There is no runner 'nope'"),
        ({"plan": {"name": "x", "waves": [wave(" \n")]}}, "waves[0].tasks[0].instruction: says nothing"),
        ({"text": "name: x\nname: y\nwaves:\n- tasks:\n  - instruction: x\n"}, "plan:2:1: error: name: is given twice"),
        (
            {"text": "name: x\nwaves:\n- tasks:\n  - instruction: x\n  checks: [no-new-errors]\n  checks: []\n"},
            "plan:6:1: error: waves[0].checks: is given twice",
        ),
    ],
)
async def test_what_cannot_be_run_is_said_before(tmp_path: Path, root: Path, body: dict[str, Any], says: str) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"": []})) as running, running.http() as http:
        for path in ("/api/v1/plans/check", "/api/v1/plans"):
            answer = await http.post(path, json={"project": str(root), **body})
            assert (answer.status_code, says in answer.json()["error"]["message"]) == (400, True), answer.text
        assert json.loads((await http.get("/api/v1/plans")).text)["plans"] == []
