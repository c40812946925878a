"""/metrics of a real server, read by the library's own parser."""

import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.central import running_central

pytestmark = pytest.mark.anyio

Samples = Mapping[str, float]


async def scraped(http: httpx.AsyncClient, **headers: str) -> Samples:
    """`name{label=value,…}` → value."""
    response = await http.get("/metrics", headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        sample.name.removeprefix("serena_central_")
        + "{"
        + ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
        + "}": sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def project_in(folder: Path, name: str) -> Path:
    root = folder / name
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart: ...\n")
    return root


async def find(http: httpx.AsyncClient, project: Path, name: object = "Cart") -> None:
    body = {"arguments": {"name_path_pattern": name, "project": str(project)}}
    await http.post("/api/v1/tools/find_symbol", json=body)


async def test_a_scrape_tells_of_calls_servers_sessions_store_index_and_process(tmp_path: Path) -> None:
    async with running_central(tmp_path) as central, central.http() as http:
        project = project_in(tmp_path, "shop")
        for name in ("Cart", "Cart", 7):
            await find(http, project, name)
        found = await scraped(http)
    ok = "{outcome=ok,tool=find_symbol}"
    assert found[f"tool_call_duration_seconds_count{ok}"] == 2
    assert found["tool_call_duration_seconds_count{outcome=error,tool=find_symbol}"] == 1
    assert found["tool_call_duration_seconds_bucket{le=+Inf,outcome=ok,tool=find_symbol}"] == 2
    assert 0 < found[f"tool_call_duration_seconds_sum{ok}"] < 60
    assert found["sessions{state=connected}"] + found["sessions{state=active}"] == 1
    assert sum(value for key, value in found.items() if key.startswith("language_servers{server=ty")) == 1
    assert found["language_server_starts_total{server=ty}"] == 1
    assert found["language_server_restarts{server=ty}"] == 0
    assert found["language_server_memory_budget_bytes{}"] > 0
    assert found["cache_memory_bytes{cache=texts of searched files}"] >= 0
    assert found["breakers{state=closed}"] == 1
    assert found["breakers{state=open}"] == 0
    assert found["store_failing{}"] == 0
    assert found["store_queue_rows{}"] >= 0
    assert found["index_files{state=indexed}"] == 1
    assert found["projects_open{}"] == 1
    assert found["process_resident_memory_bytes{}"] > 10_000_000


async def test_ended_servers_are_counted_by_cause(tmp_path: Path) -> None:
    async with running_central(tmp_path) as central, central.http() as http:
        project = project_in(tmp_path, "shop")
        await find(http, project)
        (server,) = (await http.get("/api/v1/servers")).json()["servers"]
        os.kill(server["pid"], 9)
        with anyio.fail_after(60):
            while (await http.get("/api/v1/servers")).json()["servers"][0]["state"] != "disconnected":
                await anyio.sleep(0.01)
        await http.post(f"/api/v1/servers/{server['id']}/restart")
        found = await scraped(http)
    assert found["language_server_ends_total{cause=crash,server=ty}"] == 1
    assert found["language_server_starts_total{server=ty}"] == 2
    assert found["language_server_restarts{server=ty}"] == 1


async def test_no_series_is_added_by_sessions_projects_or_unknown_tools(tmp_path: Path) -> None:
    async with running_central(tmp_path) as central, central.http() as http:
        await find(http, project_in(tmp_path, "first"))
        before = set(await scraped(http))
        for number in range(5):
            session = await http.post("/api/v1/sessions", json={"client_name": f"client-{number}"})
            body = {"session": session.json()["session_id"], "arguments": {}}
            assert (await http.post(f"/api/v1/tools/invented_{number}", json=body)).status_code == 404
            await find(http, project_in(tmp_path, f"project-{number}"))
        assert set(await scraped(http)) == before


async def test_a_scraper_needs_the_token_and_gets_the_format_it_asks_for(tmp_path: Path) -> None:
    async with running_central(tmp_path) as central, central.http() as http:
        async with httpx.AsyncClient(base_url=central.url) as stranger:
            assert (await stranger.get("/metrics")).status_code == 401
        assert (await http.get("/metrics", headers={"host": "evil.example"})).status_code == 403
        accept = "application/openmetrics-text; version=1.0.0"
        asked = await http.get("/metrics", headers={"accept": accept})
        assert asked.headers["content-type"].startswith("application/openmetrics-text")
        assert asked.text.endswith("# EOF\n")
        assert central.authorized["authorization"].removeprefix("Bearer ") not in asked.text
