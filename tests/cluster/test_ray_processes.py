"""What Ray is told of addresses and ports."""

import pytest

from serena_central.cluster.ray_processes import RayNode, address_towards, listening_warning
from serena_central.core.errors import ClusterError
from tests.cluster.conftest import RunningCluster

pytestmark = pytest.mark.cluster


def test_a_warning_names_what_a_firewall_must_close() -> None:
    assert listening_warning(RayNode("127.0.0.1:6379", "127.0.0.1", 6379)) is None
    head = listening_warning(RayNode("10.0.0.1:6379", "10.0.0.1", 6379, ports=(20000, 20999)))
    assert head is not None
    assert "6379" in head
    assert "20000-20999" in head
    joined = listening_warning(RayNode("10.0.0.1:6379", "10.0.0.2"))
    assert joined is not None
    assert "6379" not in joined
    assert "--ports" in joined


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
