"""A host that was stopped with all of its node, and goes on when its project is held by another one, writes nothing."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from serena_central.cluster.project_host import home_of
from tests.cluster.conftest import SHOP, running_cluster, until
from tests.support.postgresql import Cluster

pytestmark = pytest.mark.cluster

BEGUN = "SELECT count(*) FROM host_edit"

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture
def database() -> Generator[Cluster]:
    database = Cluster()
    try:
        database.start()
        yield database
    finally:
        database.remove()


@contextmanager
def stopped(processes: list[psutil.Process]) -> Generator[None]:
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def replacing(old: str, new: str, file: str = "cart.py") -> dict[str, str]:
    return {"relative_path": file, "needle": old, "repl": new, "mode": "literal", "project": "shop"}


def test_a_host_that_was_let_write_and_stopped_writes_nothing_after_its_project_was_placed_elsewhere(
    tmp_path: Path, database: Cluster
) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.given["SERENA_CENTRAL_DATABASE_URL"] = database.database("team")
        root = cluster.project("shop")
        file, other = root / "cart.py", root / "late.py"
        other.write_text(SHOP)
        cluster.node("a", f"{tmp_path}/src/*", head=True)
        cluster.node("b", f"{tmp_path}/src/*")
        cluster.front()
        address = cluster.address
        moved = cluster.command("cluster", "move", str(root), "--to", "b", "--cluster", address, "--json")
        assert moved.returncode == 0, moved.stderr
        assert "helper" in cluster.call("find_symbol", name_path_pattern="helper", project="shop")
        before = cluster.host(root)
        assert before["node"] == "b"
        host, node = psutil.Process(before["state"]["pid"]), psutil.Process(cluster.processes["b"].pid)

        # While the table is locked, the host waits for the leave to write; it is stopped before it hears of it.
        late: list[httpx.Response] = []
        edit = replacing("return 1", "return 2", "late.py")
        sending = threading.Thread(target=lambda: late.append(cluster.post("replace_content", **edit)))
        with database.transaction("team") as execute:
            execute("LOCK TABLE hosted_root IN ACCESS EXCLUSIVE MODE")
            sending.start()
            until(lambda: database.execute(WAITING, "team") == [[1]])
            with stopped([node, *node.children(recursive=True)]):
                execute("COMMIT")
                until(lambda: database.execute(BEGUN, "team") == [[1]])
                sending.join()
                assert "unknown" in late[0].text, late[0].text
                assert json.loads(cluster.call("find_symbol", name_path_pattern="Cart", project="shop"))
                after = cluster.host(root)
                assert (after["node"], after["epoch"]) == ("a", before["epoch"] + 1)
                json.loads(cluster.call("replace_content", **replacing("return 1", "return 7")))
                text = file.read_text()
                host.resume()
                log = tmp_path / "b/home/hosts" / f"{home_of(str(root), tmp_path).name}/logs/server.log"
                until(lambda: "EditTakenOver" in log.read_text() or "HostFenced" in log.read_text())
                assert (file.read_text(), other.read_text()) == (text, SHOP)
                for process in [node, *node.children(recursive=True)]:  # where the next host is not to be
                    process.kill()
        cluster.processes.pop("b").wait(30)
        assert sorted(path.name for path in root.iterdir()) == [".git", "cart.py", "late.py"]
        assert database.execute(BEGUN, "team") == [[0]]

        # Another directory has placed it meanwhile: the front, which knows the host that may not write any more, asks
        # for the one that may, and has it make the edit.
        database.execute("UPDATE hosted_root SET epoch = epoch + 5, host = 'another'", "team")
        json.loads(cluster.call("replace_content", **replacing("return 7", "return 8")))
        assert file.read_text() == SHOP.replace("return 1", "return 8")
        assert cluster.host(root)["epoch"] == after["epoch"] + 6
