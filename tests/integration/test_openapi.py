"""The API's document against the API: the same routes, and answers that have the documented shapes, and no others."""

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from serena_central.web.calls import MOST_CALLS
from serena_central.web.query import MOST_ROWS
from tests.support import tasks
from tests.support.central import RunningCentral, running_central
from tests.support.transcripts import claude, written
from tests.support.upstreams import QUICK, scripted, settings_of_user

pytestmark = pytest.mark.anyio

V1 = "/api/v1"
LISTS = {"sessions", "projects", "servers", "calls", "edits", "events"}


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    folder = tmp_path_factory.mktemp("openapi")
    settings_of_user(folder / "claude", {"one": scripted()})
    written(folder / "claude" / "projects" / "p" / "s-1.jsonl", claude("m", tools={"toolu_1": "Bash"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(folder / "claude"))
        async with running_central(folder, QUICK | tasks.scripted(folder, {"": [{"text": "Seen."}]})) as running:
            yield running


@pytest.fixture
async def http(central: RunningCentral) -> AsyncGenerator[httpx.AsyncClient]:
    async with central.http() as client:
        yield client


@pytest.fixture
async def document(http: httpx.AsyncClient) -> dict[str, Any]:
    return (await http.get(f"{V1}/openapi.json")).json()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projects")
    for name in ("shop", "bank"):
        (folder / name).mkdir()
        (folder / name / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return folder / "shop"


def hooked(project: Path) -> None:
    """Gives a project a hook, which nobody trusts, and a log of runs."""
    (project / ".claude/logs").mkdir(parents=True)
    group = {"matcher": "Write", "hooks": [{"type": "command", "command": "true"}]}
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    ran = {"time": "2026-01-01T00:00:00Z", "session": "s", "event": "PreToolUse", "tool": "Write", "hook": "here:1:1"}
    ran |= {"outcome": "blocked", "exit_code": 2, "duration_ms": 1.5, "text": "no"}
    (project / ".claude/logs/validation.log").write_text(json.dumps(ran) + "\n")


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): one for path, methods in document["paths"].items() for method, one in methods.items()
    }


def strictly(schema: Any) -> Any:
    """The same schema, without room for members that it does not name."""
    if isinstance(schema, list):
        return [strictly(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {**closed, **{key: strictly(value) for key, value in schema.items()}}


class Walk:
    """Calls operations, and compares what is answered with what is documented."""

    def __init__(self, http: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self._http = http
        self._components = strictly(document["components"])
        self._operations = operations(document)
        self.done: set[tuple[str, str]] = set()

    async def go(
        self, method: str, path: str, *, query: dict[str, Any] | None = None, body: Any = None, **ids: str
    ) -> Any:
        self.done.add((method, path))
        documented = self._operations[method, path]["responses"]
        response = await self._http.request(method, path.format(**ids), params=query, json=body)
        assert str(response.status_code) in documented, response.text
        media_type = response.headers["content-type"].partition(";")[0]
        schema = documented[str(response.status_code)]["content"][media_type]["schema"]
        if not media_type.endswith("/json"):
            return response.text
        self.check(response.json(), schema)
        return response.json()

    def check_outcome(self, lines: str, path: str) -> None:
        documented = self._operations["POST", path]["responses"]["200"]["content"]["application/x-ndjson"]["schema"]
        self.check(json.loads(lines.splitlines()[-1])["outcome"], documented["x-outcome"])

    def check(self, answer: Any, schema: Any) -> None:
        Draft202012Validator({**strictly(schema), "components": self._components}).validate(answer)


async def test_the_document_holds_the_routes_of_the_server_and_no_others(
    central: RunningCentral, document: dict[str, Any]
) -> None:
    served = {
        (method, route.path)
        for route in central.central.app.routes
        if not route.path.startswith(("/mcp", "/dashboard"))
        for method in route.methods - {"HEAD"}
    }
    assert {*operations(document)} == served
    assert document["openapi"] == "3.1.0"
    names = [one["operationId"] for one in operations(document).values()]
    assert len({*names}) == len(names)


async def test_its_schemas_are_schemas_and_its_references_lead_somewhere(document: dict[str, Any]) -> None:
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    text = json.dumps(document)
    for kind in ("schemas", "responses"):
        named = {part.partition('"')[0] for part in text.split(f"#/components/{kind}/")[1:]}
        assert named <= {*document["components"][kind]}


async def test_every_answer_has_the_documented_shape(
    central: RunningCentral, http: httpx.AsyncClient, document: dict[str, Any], project: Path
) -> None:
    walk = Walk(http, document)
    go = walk.go
    await go("GET", "/health", query={"nonce": "0" * 64})
    assert "# HELP" in await go("GET", "/metrics", query={"anything": "goes"})
    session = (await go("POST", f"{V1}/sessions", body={"working_folder": str(project)}))["session_id"]
    tool, mine = f"{V1}/tools/{{tool}}", {"session": session}
    found = {"arguments": {"name_path_pattern": "Cart", "project": str(project)}}
    await go("POST", tool, body=mine | found, tool="find_symbol")
    lines = await go("POST", tool, body=mine | found | {"progress": True}, tool="find_symbol")
    walk.check_outcome(lines, tool)
    replacement = {
        "name_path": "Cart/total",
        "relative_path": "cart.py",
        "body": "def total(self) -> int:\n    return 1",
    }
    await go("POST", tool, body=mine | {"arguments": replacement}, tool="replace_symbol_body")
    await go("GET", f"{V1}/tools", query={"session": session})
    await go("GET", f"{V1}/sessions", query={"state": "connected", "limit": "5"})
    await go("GET", f"{V1}/sessions/{{session}}", session=session)
    await go("GET", f"{V1}/projects", query={"open": "true"})
    await go("GET", f"{V1}/coverage", query={"path": [str(project)], "name": ["*.py"]})
    hooked(project)
    assert (await go("GET", f"{V1}/hooks", query={"project": str(project)}))["hooks"]
    assert (await go("GET", f"{V1}/hook-runs", query={"project": str(project), "limit": "5"}))["runs"]
    (server, *_) = (await go("GET", f"{V1}/servers"))["servers"]
    await go("POST", f"{V1}/servers/{{server}}/restart", server=server["id"])
    await go("POST", f"{V1}/servers/{{server}}/stop", server=server["id"])
    (call, *_) = (await go("GET", f"{V1}/calls", query={"session": session, "since": "0", "failed": "false"}))["calls"]
    await go("GET", f"{V1}/calls/{{call}}", call=call["id"])
    (edit,) = (await go("GET", f"{V1}/edits", query={"session": session}))["edits"]
    await go("POST", f"{V1}/edits/{{edit}}/undo", query={"by": "me"}, edit=edit["id"])
    told = {"session_id": "talk", "cwd": str(project), "tool_name": "Bash", "tool_input": {"command": "ls"}}
    await go("POST", f"{V1}/gates/{{event}}", body={"client": "claude-code", "said": told}, event="PreToolUse")
    await go("POST", f"{V1}/sessions/{{session}}/undo", query={"since": "0"}, session=session)
    await go("POST", f"{V1}/sessions/{{session}}/resume", session=session)
    await go("GET", f"{V1}/events", query={"severity": "info"})
    body = {"instruction": "Look", "project": str(project)}
    started = (await go("POST", f"{V1}/tasks", body=body))["id"]
    await go("GET", f"{V1}/tasks/{{task}}", query={"wait_s": "30"}, task=started)
    await go("GET", f"{V1}/tasks/{{task}}/output", task=started)
    await go("POST", f"{V1}/tasks/{{task}}/cancel", task=started)
    # Only a task on the messages API takes it (test_messages_runner.py).
    refused = await http.post(f"{V1}/tasks/{started}/compact")
    assert refused.status_code == 409
    walk.done.add(("POST", f"{V1}/tasks/{{task}}/compact"))
    wave = {"tasks": [{"instruction": "x"}], "checks": [{"approval": "Well?"}]}
    asked = {"plan": {"name": "x", "waves": [wave]}, "project": str(project)}
    await go("POST", f"{V1}/plans/check", body=asked)
    plan = (await go("POST", f"{V1}/plans", body=asked))["id"]
    await go("GET", f"{V1}/plans/{{plan}}", query={"wait_s": "30"}, plan=plan)
    await go("GET", f"{V1}/plans")
    await go("GET", f"{V1}/plan-schema")
    await go("POST", f"{V1}/plans/{{plan}}/decision", body={"approved": True}, plan=plan)
    await go("GET", f"{V1}/plans/{{plan}}", query={"wait_s": "30"}, plan=plan)
    await go("POST", f"{V1}/plans/{{plan}}/waves", body={"waves": [wave]}, plan=plan)
    await go("POST", f"{V1}/plans/{{plan}}/cancel", plan=plan)
    await go("POST", f"{V1}/plans/{{plan}}/undo", plan=plan)
    await go("POST", f"{V1}/plans/{{plan}}/resume", plan=plan)
    await go("GET", f"{V1}/stats")
    for entry in (await go("GET", f"{V1}/schemas"))["schemas"]:
        await go("GET", f"{V1}/schemas/{{name}}", name=entry["name"])
    await go("POST", f"{V1}/warm", body={"folder": str(project), "background": True})
    lines = await go("POST", f"{V1}/warm", body={"folder": str(project)})
    walk.check_outcome(lines, f"{V1}/warm")
    await presence(walk, central, session)
    async with central.raw("modern", x_serena_conversation="talk") as client:
        await client.call("list_projects")
    event = {"client": "codex", "said": {"session_id": "talk", "cwd": str(project), "tool_name": "Bash"}}
    await go("POST", f"{V1}/gates/{{event}}", body=event, event="PreToolUse")
    await go("POST", f"{V1}/conversations/close", body={"conversation": "talk"})
    await go("POST", f"{V1}/sessions/{{session}}/close", session=session)
    await go("DELETE", f"{V1}/sessions/{{session}}", query={"by": "me"}, session=session)
    await go("POST", f"{V1}/sessions/{{session}}/revive", session=session)
    await go("POST", f"{V1}/users", body={"name": "ada", "roots": ["/src/*"]})
    await go("POST", f"{V1}/users/{{user}}/rotate", user="ada")
    assert [one["name"] for one in (await go("GET", f"{V1}/users"))["users"]] == ["ada"]
    await go("DELETE", f"{V1}/users/{{user}}", user="ada")
    await go("POST", f"{V1}/dashboard/link")
    await go("GET", f"{V1}/openapi.json")
    assert [one["name"] for one in (await go("GET", f"{V1}/upstreams", query={"project": str(project)}))["upstreams"]]
    await go("GET", f"{V1}/upstreams/{{upstream}}", upstream="one")
    await go("POST", f"{V1}/upstreams/{{upstream}}/stop", upstream="one")
    await go("POST", f"{V1}/upstreams/{{upstream}}/restart", upstream="one")
    [line] = (await go("GET", f"{V1}/transcripts", query={"client": "claude-code"}))["sessions"]
    at = f"{V1}/transcripts/{{client}}/{{session}}"
    assert (await go("GET", at, client=line["client"], session=line["session"]))["entries"]
    walk.done.add(("POST", f"{V1}/shutdown"))  # test_api.py stops a server
    for path in (f"{V1}/cluster", f"{V1}/cluster/log", f"{V1}/cluster/checks"):  # test_cluster_pages.py has a cluster
        assert (await http.get(path)).status_code == 404
        walk.done.add(("GET", path))
    for (method, path), one in operations(document).items():  # whoever adds one that needs more calls it above
        if (
            (method, path) not in walk.done
            and method == "GET"
            and not any(key.get("required") for key in one["parameters"])
        ):
            await go(method, path)
    assert {*operations(document)} == walk.done


async def test_the_page_about_the_api_names_routes_that_there_are(document: dict[str, Any]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    named = {name.partition("`")[0] for name in page.split("GET /")[1:] + page.split("POST /")[1:]}
    paths = {path.removeprefix(V1).removeprefix("/") for path in document["paths"]}
    assert len(named) > 10
    assert named <= paths


async def presence(walk: Walk, central: RunningCentral, session: str) -> None:
    path = f"{V1}/sessions/{{session}}/presence"
    walk.done.add(("GET", path))
    async with central.http() as http, http.stream("GET", path.format(session=session)) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert (await anext(stream.aiter_lines())).startswith("data: {")


async def test_an_id_that_is_not_known_is_404_wherever_it_stands(
    http: httpx.AsyncClient, document: dict[str, Any]
) -> None:
    failure = Walk(http, document)
    for method, path in operations(document):
        # A proxy may begin its session by its presence; an event is no id.
        if "{" not in path or path.endswith(("/presence", "/{event}")):
            continue
        answer = await http.request(method, re.sub(r"{\w+}", "no", path))
        assert answer.status_code == 404, (method, path, answer.text)
        failure.check(answer.json(), {"$ref": "#/components/schemas/Failure"})


@pytest.mark.parametrize("cursor", ["", "7", "nonsense", "é", "W10=", "WyJlZGl0cyIsWzEsMl1d", "W1tbW1tbW1tb" * 500])
@pytest.mark.parametrize("name", sorted(LISTS))
async def test_a_cursor_that_is_none_of_the_list_is_refused(http: httpx.AsyncClient, name: str, cursor: str) -> None:
    answer = await http.get(f"{V1}/{name}", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "invalid_arguments")


@pytest.mark.parametrize("limit", ["-1", "x", "", "1.5", str(MOST_ROWS + 1), "9" * 40, "٣"])
async def test_a_limit_that_is_no_limit_is_refused_by_every_list(http: httpx.AsyncClient, limit: str) -> None:
    for name in LISTS:
        answer = await http.get(f"{V1}/{name}", params={"limit": limit})
        assert answer.status_code == 400, name


@pytest.mark.parametrize("time", ["", "x", "-1", "nan", "inf", "1e12", "2026-01-01"])
async def test_a_time_that_is_no_time_is_refused(http: httpx.AsyncClient, time: str) -> None:
    for path in ("calls?since", "calls?before", "edits?since", "edits?before"):
        answer = await http.get(f"{V1}/{path}={time}")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "invalid_arguments"), path


async def test_a_choice_that_there_is_not_is_answered_with_those_that_there_are(
    http: httpx.AsyncClient, document: dict[str, Any]
) -> None:
    asked = 0
    for (method, path), one in operations(document).items():
        for parameter in one["parameters"]:
            for choice in parameter["schema"].get("enum", ())[:1]:
                answer = await http.request(method, path, params={parameter["name"]: "nothing"})
                assert answer.status_code == 400
                assert choice in answer.json()["error"]["message"]
                twice = await http.request(method, path, params=[(parameter["name"], choice)] * 2)
                assert twice.status_code == 400
                asked += 1
    assert asked >= 4


@pytest.mark.parametrize("name", sorted(LISTS))
async def test_pages_of_a_list_fit_together(http: httpx.AsyncClient, project: Path, name: str) -> None:
    for number in range(4):
        body = {"client_name": f"c{number}", "working_folder": str(project)}
        session = (await http.post(f"{V1}/sessions", json=body)).json()["session_id"]
        root = project if number % 2 else project.with_name("bank")
        asked = {"relative_path": f"made{number}.py", "content": "x = 1\n", "project": str(root)}
        called = await http.post(f"{V1}/tools/create_text_file", json={"session": session, "arguments": asked})
        assert called.status_code == 200, called.text
    for root in (project, project.with_name("bank")):
        asked = {"name_path_pattern": "Cart", "project": str(root)}
        await http.post(f"{V1}/tools/find_symbol", json={"arguments": asked})
    whole = (await http.get(f"{V1}/{name}", params={"limit": MOST_CALLS})).json()
    assert whole["next_cursor"] is None
    seen: list[Any] = []
    query = {"limit": "1" if len(whole[name]) < 20 else str(len(whole[name]) // 3)}
    while True:
        page = (await http.get(f"{V1}/{name}", params=query)).json()
        seen += page[name]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert len(seen) >= 2
    assert list(map(key_of, seen))[-len(whole[name]) :] == list(map(key_of, whole[name]))


def key_of(entry: dict[str, Any]) -> Any:
    return entry.get("session_id") or entry.get("root") or entry["id"]
