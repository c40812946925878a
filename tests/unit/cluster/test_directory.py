"""The directory: who holds a root, under which epoch, and what becomes of it when nodes go."""

from pathlib import Path

import anyio
import pytest

from serena_central.cluster.directory import SILENT_S, STALE_S, Directory, Node, Placement
from serena_central.core.errors import ClusterError, HostUnavailable

pytestmark = pytest.mark.anyio

GB = 1 << 30


class Recorded:
    """Starts hosts by name alone."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self.log: list[str] = []
        self.failing = False
        self.dead: set[str] = set()

    async def is_alive(self, node: str) -> bool:
        return node not in self.dead

    def agent(self, node: str) -> str | None:
        return None

    def prepare(self, node: str) -> None:
        self.log.append(f"prepare {node}")

    async def start(self, root: str, epoch: int, node: str, home: str) -> str:
        await anyio.lowlevel.checkpoint()
        if self.failing:
            raise HostUnavailable(root, "the disk is full")
        self.running[f"{root}@{epoch}"] = node
        self.log.append(f"start {root} {epoch} {node}")
        return f"{root}@{epoch}"

    async def stop(self, placement: Placement) -> None:
        self.running.pop(placement.host, None)
        self.log.append(f"stop {placement.root} {placement.epoch}")


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.hosts = Recorded()
        self.now = 100.0
        self.file = folder / "cluster.json"
        self.directory = Directory(self.hosts, self.file, clock=lambda: self.now)

    def announce(self, name: str, *roots: str, free: int = 8 * GB) -> None:
        self.directory.announce(
            Node(name=name, home=f"/home/{name}", roots=list(roots), available_bytes=free, total_bytes=16 * GB)
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


async def test_a_root_is_held_by_one_host_however_many_ask_at_once(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(cluster.directory.place, "/src/shop")
    assert [line for line in cluster.hosts.log if line.startswith("start")] == ["start /src/shop 1 a"]


async def test_the_node_with_the_most_free_memory_gets_a_root_that_several_have(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=2 * GB)
    cluster.announce("b", "/src/shop", free=6 * GB)
    cluster.announce("c", "/src/bank", free=9 * GB)
    assert (await cluster.directory.place("/src/shop")).node == "b"


@pytest.mark.parametrize("free", [0, 100 << 20])
async def test_a_root_that_no_node_can_hold_is_refused_with_the_reason(cluster: Cluster, free: int) -> None:
    with pytest.raises(HostUnavailable, match="no living node offers it"):
        await cluster.directory.place("/src/shop")
    cluster.announce("a", "/src/shop", free=free)
    with pytest.raises(HostUnavailable, match="memory"):
        await cluster.directory.place("/src/shop")


async def test_a_lost_host_is_replaced_once_under_the_next_epoch(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    first = await cluster.directory.place("/src/shop")
    second = await cluster.directory.place("/src/shop", first.epoch)
    assert second.epoch == first.epoch + 1 == cluster.directory.epoch("/src/shop")
    assert await cluster.directory.place("/src/shop", first.epoch) == second  # another front, which lost the same one
    assert list(cluster.hosts.running.values()) == ["a"]


async def test_a_lost_host_comes_back_on_its_node_whose_journal_tells_what_it_did_unless_that_is_dead(
    cluster: Cluster,
) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    first = await cluster.directory.place("/src/shop")
    cluster.announce("a", "/src/shop", free=1 * GB)
    cluster.announce("b", "/src/shop", free=9 * GB)
    second = await cluster.directory.place("/src/shop", first.epoch)
    assert second.node == "a"
    cluster.hosts.dead.add("a")
    assert (await cluster.directory.place("/src/shop", second.epoch)).node == "b"


async def test_the_epoch_is_over_before_the_next_host_starts_also_if_that_fails(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    first = await cluster.directory.place("/src/shop")
    cluster.hosts.failing = True
    with pytest.raises(HostUnavailable, match="disk"):
        await cluster.directory.place("/src/shop", first.epoch)
    assert cluster.directory.epoch("/src/shop") == 2


async def test_epochs_and_placements_outlive_the_directory(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    placed = await cluster.directory.place("/src/shop")
    again = Directory(cluster.hosts, cluster.file)
    assert await again.place("/src/shop") == placed
    assert again.epoch("/src/shop") == 1


def test_a_damaged_file_is_refused_since_old_epochs_would_be_handed_out_again(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(ClusterError, match="can't be read"):
        Directory(Recorded(), tmp_path / "cluster.json")


async def test_a_node_that_fell_silent_gets_no_root_that_another_one_has(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    cluster.now += SILENT_S
    cluster.announce("b", "/src/shop", free=1 * GB)
    assert (await cluster.directory.place("/src/shop")).node == "b"
    cluster.now += STALE_S
    with pytest.raises(HostUnavailable):
        await cluster.directory.place("/src/shop", 1)
    assert cluster.directory.roots() == []


async def test_a_node_that_drains_loses_its_roots_and_gets_none(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", "/src/only", free=9 * GB)
    await cluster.directory.place("/src/shop")
    await cluster.directory.place("/src/only")
    cluster.announce("b", "/src/shop")
    moved = await cluster.directory.drain("a")
    assert moved["/src/shop"] == "b"
    assert "drain" in moved["/src/only"]
    cluster.announce("a", "/src/shop", "/src/only", free=9 * GB)  # it goes on announcing
    assert (await cluster.directory.place("/src/shop", 2)).node == "b"
    with pytest.raises(ClusterError, match="no node 'z'"):
        await cluster.directory.drain("z")


async def test_a_root_moves_to_the_named_node_alone_if_that_has_it(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    cluster.announce("b", "/src/shop")
    cluster.announce("c", "/src/bank")
    assert (await cluster.directory.place("/src/shop")).node == "a"
    assert (await cluster.directory.move("/src/shop")).node == "b"
    with pytest.raises(HostUnavailable, match="'c' does not offer it"):
        await cluster.directory.move("/src/shop", "c")
    assert cluster.hosts.log[-2:] == ["stop /src/shop 1", "start /src/shop 2 b"]


def test_roots_below_others_belong_to_those(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", "/src/shop/module", "/src/shopping")
    assert cluster.directory.roots() == ["/src/shop", "/src/shopping"]
