"""Projects on hosts of a real Ray cluster: the same answers, through losses, and no edit twice or by the wrong one."""

import json
import os
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import psutil
import pytest

from tests.cluster.conftest import PATIENCE_S, SHOP, RunningCluster, until
from tests.support.mcp import RawClient, messages_in, text_of

pytestmark = pytest.mark.cluster


def names(answer: str) -> list[str]:
    return [one["name_path"] for one in json.loads(answer)]


def test_a_call_is_answered_by_the_host_of_its_project(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    found = json.loads(cluster.call("find_symbol", name_path_pattern="Cart", include_body=True, project="shop"))
    assert found[0]["body"].startswith("class Cart")
    used = cluster.call("find_referencing_symbols", name_path="helper", relative_path="cart.py", project=str(root))
    assert "Cart/total" in used
    placed = cluster.host(root)
    assert placed["state"]["projects"][0]["root"] == str(root)
    assert placed["state"]["pid"] not in [process.pid for process in cluster.processes.values()]


def test_a_call_for_several_projects_is_answered_by_all_their_hosts(cluster: RunningCluster) -> None:
    said = json.loads(cluster.call("search_for_pattern", substring_pattern="helper", project=["shop", "bank"]))
    assert {"shop", "bank"} <= said.keys()
    assert "cart.py" in said["bank"]
    refused = cluster.post(
        "replace_content", relative_path="cart.py", needle="1", repl="2", mode="literal", project=["shop", "bank"]
    )
    assert refused.status_code >= 400
    assert "different hosts" in refused.text


def test_an_edit_is_made_where_the_project_is_and_conflicts_are_found_across_the_wire(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    cluster.call("find_symbol", name_path_pattern="helper", include_body=True, project="shop")
    file = root / "cart.py"
    file.write_text(file.read_text().replace("return 1", "return 5"))
    edit = {
        "name_path": "helper",
        "relative_path": "cart.py",
        "body": "def helper() -> int:\n    return 9\n",
        "project": "shop",
    }
    refused = cluster.post("replace_symbol_body", **edit)
    assert "return 5" in refused.text
    cluster.call("find_symbol", name_path_pattern="helper", include_body=True, project="shop")
    made = json.loads(cluster.call("replace_symbol_body", **edit))
    assert "return 9" in file.read_text()
    history = cluster.command("history", "--json")
    assert made["edit"] in history.stdout


def test_an_edit_is_undone_once_also_by_a_host_that_did_not_make_it(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    before = (root / "cart.py").read_text()
    edit = {"relative_path": "cart.py", "needle": "return 1", "repl": "return 8", "mode": "literal", "project": "shop"}
    for node in (None, "b", "a"):
        made = json.loads(cluster.call("replace_content", **edit))["edit"]
        assert "return 8" in (root / "cart.py").read_text()
        if node is not None:
            address = cluster.address
            moved = cluster.command("cluster", "move", str(root), "--to", node, "--cluster", address)
            assert moved.returncode == 0, moved.stderr
        undone = cluster.post_to(f"/api/v1/edits/{made}/undo")
        assert undone.status_code == 200, undone.text
        assert [file["path"] for file in undone.json()["files"]] == ["cart.py"]
        assert (root / "cart.py").read_text() == before
        again = cluster.post_to(f"/api/v1/edits/{made}/undo")
        assert "already undone" in again.text
        assert undone.json()["edit"] in cluster.get("/api/v1/edits").text


def test_undo_is_nothing_that_agents_can_call(cluster: RunningCluster) -> None:
    assert cluster.post("undo_edit", rows=[]).status_code == 404


def test_nothing_of_a_cluster_on_loopback_listens_beyond_it(cluster: RunningCluster) -> None:
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    found = cluster.listening()
    assert found.keys() == {"127.0.0.1"}, found
    assert any("gcs_server" in name for name in found["127.0.0.1"])  # Ray's processes were looked at


def test_a_killed_host_is_replaced_within_the_call(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    before = cluster.host(root)
    os.kill(before["state"]["pid"], signal.SIGKILL)
    (root / "cart.py").write_text("class Basket: ...\n")  # while nobody watches
    assert names(cluster.call("find_symbol", name_path_pattern="Basket", project="shop")) == ["Basket"]
    after = cluster.host(root)
    assert after["epoch"] > before["epoch"]


def test_a_host_that_is_killed_with_all_spare_ones_is_replaced_too(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    before = cluster.host(root)
    hosts = [one for one in cluster.below() if " ".join(one.cmdline()).startswith("ray::HostActor")]
    assert before["state"]["pid"] in [one.pid for one in hosts]
    assert len(hosts) > 1
    for one in hosts:
        one.kill()
    assert names(cluster.call("find_symbol", name_path_pattern="Cart", project="shop")) == ["Cart"]
    assert cluster.host(root)["epoch"] > before["epoch"]


def test_a_stopped_host_is_replaced_and_never_writes_again(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    pid = cluster.host(root)["state"]["pid"]
    process = psutil.Process(pid)
    process.suspend()
    edit = {"relative_path": "cart.py", "needle": "return 1", "repl": "return 7", "mode": "literal", "project": "shop"}
    json.loads(cluster.call("replace_content", **edit))
    text = (root / "cart.py").read_text()
    assert text.count("return 7") == 1
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    assert (root / "cart.py").read_text() == text


def test_a_drained_node_holds_nothing_and_a_root_moves_where_it_is_told(cluster: RunningCluster) -> None:
    address = cluster.address
    root = cluster.project("shop")
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    moved = cluster.command("cluster", "move", str(root), "--to", "b", "--cluster", address, "--json")
    assert moved.returncode == 0, moved.stderr
    assert json.loads(moved.stdout)["node"] == "b"
    assert names(cluster.call("find_symbol", name_path_pattern="Cart", project="shop")) == ["Cart"]
    drained = cluster.command("cluster", "drain", "b", "--cluster", address, "--json")
    assert drained.returncode == 0, drained.stderr
    assert json.loads(drained.stdout)[str(root)] == "a"
    assert names(cluster.call("find_symbol", name_path_pattern="Cart", project="shop")) == ["Cart"]
    assert cluster.command("cluster", "drain", "b", "--undo", "--cluster", address).returncode == 0
    wrong = cluster.command("cluster", "drain", "nowhere", "--cluster", address)
    assert wrong.returncode == 1
    assert "no node" in wrong.stderr


def test_a_machine_with_the_name_of_another_node_is_refused_and_that_node_stays(cluster: RunningCluster) -> None:
    root = cluster.project("shop")
    joining = ("node", "--join", cluster.address, "--host", cluster.bound_to, "--name", "a", "--root", str(root.parent))
    refused = cluster.command(*joining, home="copy")
    assert (refused.returncode, "--name" in refused.stderr) == (1, True), refused.stderr
    assert "a" in {node["name"] for node in cluster.get("/api/v1/cluster").json()["nodes"]}
    assert names(cluster.call("find_symbol", name_path_pattern="Cart", project="shop")) == ["Cart"]


def test_logs_are_collected_by_session_and_every_node_is_checked(cluster: RunningCluster) -> None:
    address = cluster.address
    for name, session in (("shop", "mine"), ("bank", "another")):
        cluster.call("find_symbol", session, name_path_pattern="Cart", project=name)
    found = cluster.command("cluster", "logs", "--cluster", address, "--session", "mine", "--json")
    assert found.returncode == 0, found.stderr
    records = json.loads(found.stdout)["records"]
    assert records
    assert all(one["host"].startswith("shop-") and "find_symbol" in one["text"] for one in records)
    everything = cluster.command("cluster", "logs", "--cluster", address)
    assert {"shop-", "bank-"} <= {line.split()[1][:5] for line in everything.stdout.splitlines()}
    status = cluster.command("cluster", "status", "--cluster", address, "--json")
    assert {one["name"] for one in json.loads(status.stdout)["nodes"]} == {"a", "b"}, status.stderr
    checked = cluster.command("cluster", "doctor", "--cluster", address, "--json")
    assert {one["node"] for one in json.loads(checked.stdout)["checks"]} == {"a", "b"}, checked.stderr


def test_what_no_node_has_is_an_error_and_not_a_wait(cluster: RunningCluster, tmp_path: Path) -> None:
    refused = cluster.post("find_symbol", name_path_pattern="A", project=str(tmp_path))
    assert refused.status_code >= 400
    assert "no project" in refused.text


@asynccontextmanager
async def sending(cluster: RunningCluster) -> AsyncGenerator[Callable[[], Awaitable[str]]]:
    """Sends one and the same edit, and returns what it was answered."""
    token = (cluster.folder / "front/home/token").read_text().strip()
    edit = {"name_path": "helper", "relative_path": "cart.py", "body": "def added() -> int:\n    return 2\n"}
    async with httpx.AsyncClient(
        base_url=cluster.url, headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE_S
    ) as http:

        async def send() -> str:
            call = {"name": "insert_after_symbol", "arguments": {**edit, "project": "shop"}}
            request = RawClient(http, "modern").request("tools/call", call)
            request.headers.update({"x-serena-call": "c-1", "x-serena-session": "of-an-agent"})
            return text_of(messages_in((await http.send(request)).text)[-1]["result"])

        yield send


def running(cluster: RunningCluster) -> int:
    return cluster.get("/api/v1/stats").json()["running"]


@pytest.mark.anyio
async def test_a_killed_node_is_replaced_by_another_that_has_the_folder_and_makes_no_edit_that_was_sent_to_the_first(
    cluster: RunningCluster,
) -> None:
    """The last test: node b is gone after it."""
    root = cluster.project("shop")
    address = cluster.address
    moved = cluster.command("cluster", "move", str(root), "--to", "b", "--cluster", address, "--json")
    assert moved.returncode == 0, moved.stderr
    assert json.loads(moved.stdout)["node"] == "b"
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    host = psutil.Process(cluster.host(root)["state"]["pid"])
    node = cluster.processes.pop("b")
    below = psutil.Process(node.pid).children(recursive=True)
    async with sending(cluster) as send:
        host.suspend()  # so that nobody can know whether it has made the edit
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await anyio.to_thread.run_sync(until, lambda: running(cluster) == 1)
            tasks.cancel_scope.cancel()
        until(lambda: running(cluster) == 0)
        os.kill(node.pid, signal.SIGKILL)
        assert names(cluster.call("find_symbol", name_path_pattern="Cart", project="shop")) == ["Cart"]
        assert cluster.host(root)["node"] == "a"
        assert "It is unknown whether" in await send()
        assert (root / "cart.py").read_text() == SHOP
    _, left = psutil.wait_procs(below, 15)
    assert left == []  # nothing of the node lives on
    node.wait(5)


def test_a_restart_without_rays_token_is_refused_and_the_server_stays(cluster: RunningCluster) -> None:
    cluster.token, token = "", cluster.token
    try:
        refused = cluster.command("restart")
    finally:
        cluster.token = token
    assert (refused.returncode, "RAY_AUTH_TOKEN" in refused.stderr) == (2, True), refused.stderr
    assert cluster.get("/api/v1/stats").status_code == 200


def test_where_no_head_listens_commands_say_so_instead_of_waiting(cluster: RunningCluster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        refused = cluster.command("cluster", "status", "--cluster", f"127.0.0.1:{taken.getsockname()[1]}")
    assert (refused.returncode, "No Ray cluster answers" in refused.stderr) == (1, True), refused.stderr


def test_ray_is_not_joined_without_its_token(cluster: RunningCluster) -> None:
    cluster.token, token = "", cluster.token
    try:
        refused = cluster.command("cluster", "status", "--cluster", cluster.address)
    finally:
        cluster.token = token
    assert refused.returncode == 2
    assert "RAY_AUTH_TOKEN" in refused.stderr
