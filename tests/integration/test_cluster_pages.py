"""Nodes and project hosts in the dashboard, /api and /metrics, as a cluster describes them; hostile names are text."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from serena_central.app.build import Cluster
from serena_central.web.cluster_view import (
    ClusterStatus,
    HostProject,
    HostServer,
    HostState,
    HostView,
    NodeCheck,
    NodeChecks,
    NodeRecord,
    NodeRecords,
    NodeView,
)
from tests.support.browser import shown, visiting
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

V1 = "/api/v1"

GB = 1 << 30


def node(name: str, state: str, *roots: str) -> NodeView:
    return NodeView(
        name=name,
        state=state,
        heard_s_ago=31.0 if state == "silent" else 0.5,
        available_bytes=6 * GB,
        total_bytes=16 * GB,
        load=1.5,
        version="1.0",
        roots=list(roots),
    )


STATE = HostState(
    pid=4711,
    began_at=1_700_000_000.0,
    memory_bytes=180_000_000,
    calls=12_345,
    failed=2,
    servers=[HostServer("ty", "/src/shop", "ready", 90_000_000)],
    projects=[HostProject("shop", "/src/shop", 40, 39)],
)

STATUS = ClusterStatus(
    nodes=[node("<b>a", "alive", "/src/shop", "/src/bank"), node("b", "silent", "/src/lost")],
    hosts=[
        HostView(root="/src/shop", epoch=3, node="<b>a", state=STATE),
        HostView(root="/src/lost", epoch=1, node="b", state=None),
    ],
)


@dataclass
class Described:
    """A cluster of which nothing runs."""

    said: ClusterStatus = STATUS

    async def status(self) -> ClusterStatus:
        return self.said

    async def records(self, session: str | None, count: int) -> NodeRecords:
        record = NodeRecord(
            node="b", host="shop-1", time="2026-01-01T00:00:00.000Z", level="info", text=f"of {session}"
        )
        return NodeRecords(records=[record][:count], missing=["<b>a"])

    async def checks(self) -> NodeChecks:
        return NodeChecks([NodeCheck(node="b", name="disk", state="ok", says="free")])


@pytest.fixture
async def described() -> Described:
    return Described()


@pytest.fixture
async def central(tmp_path: Path, described: Described) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, cluster=Cluster(lambda _services, local: local, described)) as running:
        yield running


async def test_nodes_hosts_logs_and_checks_are_asked_for_over_http(central: RunningCentral) -> None:
    async with central.http() as http:
        status = (await http.get(f"{V1}/cluster")).json()
        assert [one["name"] for one in status["nodes"]] == ["<b>a", "b"]
        assert status["hosts"][0]["state"]["servers"][0]["server"] == "ty"
        assert status["hosts"][1]["state"] is None
        found = (await http.get(f"{V1}/cluster/log", params={"session": "s-1", "limit": 1})).json()
        assert found["records"][0]["text"] == "of s-1"
        assert found["missing"] == ["<b>a"]
        assert (await http.get(f"{V1}/cluster/checks")).json()["checks"][0]["name"] == "disk"
        assert (await http.get(f"{V1}/cluster/log", params={"sesion": "s-1"})).status_code == 400


async def test_the_page_shows_each_node_and_what_does_not_answer(central: RunningCentral, described: Described) -> None:
    async with visiting(central) as visitor:
        html = await visitor.see("/nodes")
        assert "<b>a" not in html
        page = shown(html)
        for said in ("alive", "silent", "/src/shop", "ty (ready)", "39 of 40", "12,345", "2 failures", "4711"):
            assert said in page
        assert "does not answer" in page
        assert "1 more project offered" in page  # /src/bank
        assert "Nodes" in shown(await visitor.see("/tools"))
        described.said = ClusterStatus(problem="The cluster's directory does not answer.")
        assert "directory does not answer" in shown(await visitor.see("/nodes"))


async def test_metrics_have_a_row_for_each_node(central: RunningCentral) -> None:
    async with central.http() as http:
        text = (await http.get("/metrics")).text
    for row in (
        'serena_central_node_up{node="b"} 0.0',
        'serena_central_node_project_hosts{node="<b>a"} 1.0',
        'serena_central_node_language_server_memory_bytes{node="<b>a"} 9e+07',
        'serena_central_node_tool_calls{node="<b>a"} 12345.0',
    ):
        assert row in text


async def test_a_server_without_a_cluster_has_neither(tmp_path: Path) -> None:
    async with running_central(tmp_path) as running, running.http() as http:
        assert (await http.get(f"{V1}/cluster")).status_code == 404
        assert "node_up" not in (await http.get("/metrics")).text
        async with visiting(running) as visitor:
            assert "Nodes" not in shown(await visitor.see("/tools"))
