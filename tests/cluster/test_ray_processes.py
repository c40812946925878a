"""What Ray is told of addresses and ports."""

from pathlib import Path

import pytest

from serena_central.cluster.bound_sockets import binds_alone
from serena_central.cluster.ray_processes import RayNode, address_towards, listening_warning
from serena_central.core.errors import ClusterError
from tests.cluster.conftest import RunningCluster, running_cluster

pytestmark = pytest.mark.cluster


def test_a_warning_names_what_a_firewall_must_close() -> None:
    head = listening_warning(RayNode("10.0.0.1:6379", "10.0.0.1", 6379, ports=(20000, 20999)))
    assert "6379" in head
    assert "20000-20999" in head
    joined = listening_warning(RayNode("10.0.0.1:6379", "10.0.0.2"))
    assert "6379" not in joined
    assert "--ports" in joined


@pytest.mark.skipif(not binds_alone("127.0.0.2"), reason="the system does not let others bind a process's sockets")
def test_everything_listens_on_the_given_address_alone(tmp_path: Path) -> None:
    with running_cluster(tmp_path, "127.0.0.2") as cluster:
        shop = cluster.project("shop")
        cluster.node("a", str(shop), head=True)
        cluster.front()
        assert "cart.py" in cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
        asked = cluster.command("cluster", "status", "--cluster", cluster.address)
        assert str(shop) in asked.stdout, asked.stderr
        found = cluster.listening()
        assert found.keys() == {"127.0.0.1", "127.0.0.2"}, found  # the front's address towards a head on loopback, too
        assert {"gcs_server", "raylet", "serena-central"} <= set(found["127.0.0.2"])
        assert "all interfaces" not in "".join((tmp_path / f"{home}.log").read_text() for home in ("a", "front"))


def test_the_own_address_is_the_one_towards_the_head() -> None:
    assert address_towards("127.0.0.1:6379") == "127.0.0.1"
    for wrong in ("127.0.0.1", "nowhere.invalid:6379", "127.0.0.1:port"):
        with pytest.raises(ClusterError, match="HOST:PORT"):
            address_towards(wrong)


def test_wrong_ports_are_refused_before_anything_starts(tmp_path_factory: pytest.TempPathFactory) -> None:
    cluster = RunningCluster(tmp_path_factory.mktemp("ports"), 6379, "0" * 40)
    for ports, says in (("20-10", "FIRST-LAST"), ("many", "FIRST-LAST"), ("20000-20003", "26 ports")):
        refused = cluster.command("node", "--head", "--root", "/src", "--ports", ports)
        assert refused.returncode == 2
        assert says in refused.stderr
