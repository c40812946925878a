"""The directory: who holds a root, under which epoch, and what becomes of it when nodes go."""

import itertools
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.cluster.directory import SILENT_S, STALE_S, Directory, Node, Placement
from serena_central.core.errors import ClusterError, HostFenced, HostUnavailable, NodeNameTaken, StoreError
from serena_central.core.events import EventBus
from serena_central.store.store import Store
from tests.support.postgresql import url_for

pytestmark = pytest.mark.anyio

GB = 1 << 30


class Recorded:
    """Starts hosts by name alone."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self.log: list[str] = []
        self.failing = False
        self.dead: set[str] = set()
        self.begun: list[bytes] = []
        self.left: set[str] = set()
        self._numbers = itertools.count(1)

    async def is_alive(self, node: str) -> bool:
        return node not in self.dead

    async def answers(self, host: str) -> bool:
        return host in self.running

    def agent(self, node: str) -> str | None:
        return None

    def prepare(self, node: str) -> None:
        self.log.append(f"prepare {node}")

    def new(self, node: str) -> str:
        return f"host-{next(self._numbers)}-{node}"

    async def start(self, placement: Placement, home: str, begun: list[bytes]) -> None:
        await anyio.lowlevel.checkpoint()
        self.begun = begun
        if self.failing:
            raise HostUnavailable(placement.root, "the disk is full")
        self.running[placement.host] = placement.node
        self.log.append(f"start {placement.root} {placement.epoch} {placement.node}")

    async def stop(self, host: str, *, lost: bool) -> None:
        self.log.append(f"{'kill' if lost else 'stop'} {self.running.pop(host, 'what never ran')}")

    def end_others(self, placed: set[str]) -> None:
        self.left = placed


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.hosts = Recorded()
        self.now = 100.0
        self.folder = folder
        self.run = "first"
        self._stores: list[Store] = []
        self.directory = self.another()

    def another(self) -> Directory:
        """One with the same store."""
        file = self.folder / "db"
        self._stores.append(Store(file, EventBus(), url=url_for(file)))
        return Directory(self.hosts, self._stores[-1], clock=lambda: self.now)

    def close(self) -> None:
        for store in self._stores:
            store._close()

    def announce(self, name: str, *roots: str, free: int = 8 * GB, draining: bool = False) -> bool:
        node = Node(
            name=name, run=self.run, home=f"/home/{name}", roots=[*roots], available_bytes=free, total_bytes=16 * GB
        )
        node.draining = draining
        return self.directory.announce(node)


@pytest.fixture
def cluster(tmp_path: Path) -> Generator[Cluster]:
    with closing(Cluster(tmp_path)) as cluster:
        yield cluster


async def test_a_root_is_held_by_one_host_however_many_ask_at_once(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(cluster.directory.place, "/src/shop")
    assert [line for line in cluster.hosts.log if line.startswith("start")] == ["start /src/shop 1 a"]


async def test_a_start_that_fails_fails_for_all_who_wait_for_it_and_is_tried_again_by_the_next(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.announce("a", "/src/shop")
    starts, goes_on = list[str](), anyio.Event()

    async def start(placement: Placement, home: str, begun: list[bytes]) -> None:
        starts.append(placement.host)
        await goes_on.wait()
        raise HostUnavailable(placement.root, "the disk is full")

    async def ask() -> None:
        with pytest.raises(HostUnavailable, match="the disk is full"):
            await cluster.directory.place("/src/shop")

    with monkeypatch.context() as patch, anyio.fail_after(5):
        patch.setattr(cluster.hosts, "start", start)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            while not starts:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            goes_on.set()
    assert len(starts) == 1
    assert (await cluster.directory.place("/src/shop")).node == "a"


async def test_the_node_with_the_most_free_memory_gets_a_root_that_several_have(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=2 * GB)
    cluster.announce("b", "/src/shop", free=6 * GB)
    cluster.announce("c", "/src/bank", free=9 * GB)
    assert (await cluster.directory.place("/src/shop")).node == "b"


async def test_a_second_machine_of_the_same_name_is_refused_until_the_first_one_is_silent(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    cluster.run = "second"
    with pytest.raises(NodeNameTaken, match="--name"):
        cluster.announce("a", "/src/bank")
    cluster.directory.leave("a", "second")
    assert await cluster.directory.roots() == ["/src/shop"]
    cluster.now += SILENT_S
    cluster.announce("a", "/src/bank")
    cluster.directory.leave("a", "first")
    assert await cluster.directory.roots() == ["/src/bank"]


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
    assert second.epoch == first.epoch + 1
    assert await cluster.directory.place("/src/shop", first.epoch) == second  # another front, which lost the same one
    assert list(cluster.hosts.running.values()) == ["a"]
    assert cluster.hosts.log.count("kill a") == 1  # it would not answer if it were asked to end


async def test_a_host_that_answers_is_not_replaced_for_one_who_can_not_reach_it(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    first = await cluster.directory.place("/src/shop")
    with pytest.raises(HostUnavailable, match=r"runs, but this server can't reach it at 10\.0\.0\.2:20500"):
        await cluster.directory.place("/src/shop", first.epoch, "10.0.0.2:20500: no route")
    assert await cluster.directory.place("/src/shop") == first
    cluster.hosts.running.clear()
    assert (await cluster.directory.place("/src/shop", first.epoch, "it does not answer")).epoch == first.epoch + 1


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


async def begins(directory: Directory, placement: Placement, edit: str) -> bool:
    try:
        await directory.begin_edit(placement, edit, edit.encode())
    except HostFenced:
        return False
    return True


async def test_a_host_that_was_replaced_begins_no_edit_and_what_it_has_begun_is_the_next_ones(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    first = await cluster.directory.place("/src/shop")
    assert await begins(cluster.directory, first, "e-1")
    assert await begins(cluster.directory, first, "e-2")
    assert await cluster.directory.holds(first)
    await cluster.directory.end_edit("e-2")
    second = await cluster.directory.place("/src/shop", first.epoch)
    assert cluster.hosts.begun == [b"e-1"]
    with pytest.raises(HostFenced, match="was replaced") as fenced:
        await cluster.directory.begin_edit(first, "e-3", b"")
    assert fenced.value.current == second.epoch
    assert not await cluster.directory.holds(first)
    assert await begins(cluster.directory, second, "e-4")
    await cluster.directory.place("/src/shop", second.epoch)
    assert cluster.hosts.begun == [b"e-4"]  # the second has ended the first's


async def test_a_node_that_announces_itself_lives_though_nothing_on_it_answers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    first = await cluster.directory.place("/src/shop")
    cluster.announce("b", "/src/shop", free=12 * GB)
    monkeypatch.setattr(cluster.hosts, "is_alive", never)
    async with anyio.create_task_group() as tasks:
        placed: list[Placement] = []

        async def place() -> None:
            placed.append(await cluster.directory.place("/src/shop", first.epoch))

        tasks.start_soon(place)
        await anyio.wait_all_tasks_blocked()
        cluster.announce("a", "/src/shop", free=9 * GB)
    assert placed[0].node == "a"


async def never(_node: str) -> bool:
    await anyio.sleep_forever()
    return False


async def test_a_host_begins_no_edit_from_the_moment_on_at_which_another_is_chosen(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    first = await cluster.directory.place("/src/shop")
    assert await begins(cluster.directory, first, "e-1")
    cluster.hosts.failing = True
    with pytest.raises(HostUnavailable, match="disk"):
        await cluster.directory.place("/src/shop", first.epoch)
    assert not await begins(cluster.directory, first, "e-2")
    cluster.hosts.failing = False
    await cluster.directory.place("/src/shop", first.epoch)
    assert cluster.hosts.begun == [b"e-1"]


def after_asking(directory: Directory, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Awaitable[None]]) -> None:
    """Has `then` done once, when the store has answered a question, before the directory gets the answer."""
    store = directory._store
    ask = store.ask

    async def held(query: Any) -> Any:
        answer = await ask(query)
        monkeypatch.setattr(store, "ask", ask)
        await then()
        return answer

    monkeypatch.setattr(store, "ask", held)


async def test_a_host_that_begins_an_edit_while_it_is_replaced_is_ended_nonetheless(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    cluster.announce("b", "/src/shop")
    first = await cluster.directory.place("/src/shop")

    async def begin() -> None:
        assert not await begins(cluster.directory, first, "e-1")

    after_asking(cluster.directory, monkeypatch, begin)
    second = await cluster.directory.move("/src/shop")
    assert cluster.hosts.running == {second.host: "b"}


async def test_a_new_host_is_ended_where_the_database_fails_before_it_is_started(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.announce("a", "/src/shop")
    stopped: list[str] = []
    stop = cluster.hosts.stop

    async def noted(host: str, *, lost: bool) -> None:
        stopped.append(host)
        await stop(host, lost=lost)

    async def fail() -> None:
        async def ask(_query: Any) -> Any:
            raise StoreError("the database is gone")

        monkeypatch.setattr(cluster.directory._store, "ask", ask)

    monkeypatch.setattr(cluster.hosts, "stop", noted)
    after_asking(cluster.directory, monkeypatch, fail)  # the placements of the directory before
    with pytest.raises(HostUnavailable, match="the database is gone"):
        await cluster.directory.place("/src/shop")
    assert stopped == ["host-1-a"]
    monkeypatch.undo()
    monkeypatch.setattr(cluster.hosts, "stop", noted)
    after_asking(cluster.directory, monkeypatch, fail)  # the new one
    with pytest.raises(HostUnavailable, match="the database is gone"):
        await cluster.directory.place("/src/shop")
    assert stopped == ["host-1-a", "host-2-a"]


async def test_epochs_and_placements_outlive_the_directory(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    placed = await cluster.directory.place("/src/shop")
    again = cluster.another()
    assert [one["host"] for one in (await again.status())["placements"]] == [placed.host]
    assert await again.place("/src/shop") == placed
    assert cluster.hosts.left == {placed.host}
    assert await begins(again, placed, "e-1")


async def test_a_directory_that_just_began_waits_until_nodes_have_announced_themselves(cluster: Cluster) -> None:
    file = cluster.folder / "db"
    new = cluster.directory = Directory(cluster.hosts, Store(file, EventBus(), url=url_for(file)), settling_s=0.5)
    offered: list[str] = []

    async def ask() -> None:
        offered.extend(await new.roots())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        cluster.announce("a", "/src/shop")
    assert offered == ["/src/shop"]


async def test_of_two_directories_with_one_store_the_hosts_of_the_one_that_placed_last_may_write(
    cluster: Cluster,
) -> None:
    cluster.announce("a", "/src/shop")
    first = await cluster.directory.place("/src/shop")
    another, cluster.directory = cluster.directory, cluster.another()
    cluster.announce("a", "/src/shop")
    second = await cluster.directory.place("/src/shop", first.epoch)
    assert not await begins(another, first, "e-1")
    assert await begins(another, second, "e-2")
    cluster.directory = another
    cluster.announce("a", "/src/shop")
    assert (await another.place("/src/shop")).epoch > second.epoch  # it forgot the host that may not write


async def test_nothing_is_placed_or_written_while_the_database_can_not_be_asked(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop")
    placed = await cluster.directory.place("/src/shop")
    broken = Directory(cluster.hosts, Store(cluster.folder / "no" / "folder", EventBus()), clock=lambda: cluster.now)
    cluster.directory = broken
    cluster.announce("a", "/src/shop")
    with pytest.raises(HostUnavailable, match="not usable"):
        await broken.place("/src/shop")
    with pytest.raises(HostFenced, match="not usable") as fenced:
        await broken.begin_edit(placed, "e-1", b"")
    assert fenced.value.current is None
    assert not await broken.holds(placed)


async def test_a_node_that_fell_silent_gets_no_root_that_another_one_has(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    cluster.now += SILENT_S
    cluster.announce("b", "/src/shop", free=1 * GB)
    assert (await cluster.directory.place("/src/shop")).node == "b"
    cluster.now += STALE_S
    with pytest.raises(HostUnavailable):
        await cluster.directory.place("/src/shop", 1)
    assert await cluster.directory.roots() == []


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


async def test_a_new_directory_hears_from_a_node_that_it_drains(cluster: Cluster) -> None:
    for name in ("a", "b"):
        assert not cluster.announce(name, "/src/shop")
    await cluster.directory.drain("a")
    draining = cluster.announce("a", "/src/shop")
    cluster.directory = cluster.another()
    cluster.announce("a", "/src/shop", free=9 * GB, draining=draining)
    with pytest.raises(HostUnavailable, match="drain"):
        await cluster.directory.place("/src/shop")
    cluster.announce("b", "/src/shop", free=2 * GB)
    assert (await cluster.directory.place("/src/shop")).node == "b"
    await cluster.directory.drain("a", draining=False)
    assert not cluster.announce("a", "/src/shop", draining=draining)


async def test_a_node_that_drains_loses_roots_that_it_was_about_to_get(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    cluster.announce("b", "/src/shop")
    starting, goes_on, start = anyio.Event(), anyio.Event(), cluster.hosts.start

    async def held(placement: Placement, home: str, begun: list[bytes]) -> None:
        if placement.node == "a":
            starting.set()
            await goes_on.wait()
        await start(placement, home, begun)

    monkeypatch.setattr(cluster.hosts, "start", held)
    moved: list[dict[str, str]] = []

    async def drain() -> None:
        moved.append(await cluster.directory.drain("a"))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cluster.directory.place, "/src/shop")
            await starting.wait()
            tasks.start_soon(drain)
            await anyio.wait_all_tasks_blocked()
            goes_on.set()
    assert moved == [{"/src/shop": "b"}]
    assert [*cluster.hosts.running.values()] == ["b"]


async def test_a_root_that_left_a_node_while_others_are_moved_from_it_stays_where_it_is(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.announce("a", "/src/bank", "/src/shop", free=9 * GB)
    held = [await cluster.directory.place(root) for root in ("/src/bank", "/src/shop")]
    for name in ("b", "c"):
        cluster.announce(name, "/src/bank", "/src/shop")
    start, places = cluster.hosts.start, list[Placement]()

    async def losing(placement: Placement, home: str, begun: list[bytes]) -> None:
        monkeypatch.setattr(cluster.hosts, "start", start)
        places.append(await cluster.directory.place("/src/shop", held[1].epoch))  # by a front that lost its host
        await start(placement, home, begun)

    cluster.hosts.dead.add("a")
    monkeypatch.setattr(cluster.hosts, "start", losing)
    moved = await cluster.directory.drain("a")
    assert moved.keys() == {"/src/bank"}
    assert await cluster.directory.place("/src/shop") == places[0]


async def test_a_new_directory_drains_what_the_one_before_has_placed(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    await cluster.directory.place("/src/shop")
    cluster.directory = cluster.another()
    for name in ("a", "b"):
        cluster.announce(name, "/src/shop")
    assert await cluster.directory.drain("a") == {"/src/shop": "b"}


async def test_a_root_moves_to_the_named_node_alone_if_that_has_it(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", free=9 * GB)
    cluster.announce("b", "/src/shop")
    cluster.announce("c", "/src/bank")
    assert (await cluster.directory.place("/src/shop")).node == "a"
    assert (await cluster.directory.move("/src/shop")).node == "b"
    with pytest.raises(HostUnavailable, match="'c' does not offer it"):
        await cluster.directory.move("/src/shop", "c")
    assert cluster.hosts.log[-2:] == ["stop a", "start /src/shop 2 b"]


async def test_roots_below_others_belong_to_those(cluster: Cluster) -> None:
    cluster.announce("a", "/src/shop", "/src/shop/module", "/src/shopping")
    assert await cluster.directory.roots() == ["/src/shop", "/src/shopping"]
