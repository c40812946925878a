"""What is PostgreSQL's own: URLs, values, loss of the server. All else is shown by the store's tests, run on it."""

import gc
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from serena_central.core.errors import StoreError
from serena_central.store import postgresql
from serena_central.store.database import Database, _engine
from serena_central.store.inspection import check_usable
from serena_central.store.queries import Queries
from serena_central.store.query_results import CallFilter, EventFilter
from serena_central.store.rows import SCHEMA_VERSION, EventRow, ProjectRow, SymbolViewRow, ToolCallRow
from serena_central.store.schema import bring_up_to_date, migrate
from tests.support.postgresql import Cluster
from tests.unit.store.test_tables import schema

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""The driver leaves the stream of a broken connection to the garbage collector, which since Python 3.13 says so."""

needs_postgresql = pytest.mark.postgresql

NOWHERE = Path("/nowhere")


@pytest.fixture(autouse=True)
def _what_the_driver_left() -> Generator[None]:
    """Collected here, where it is ignored, not in a later test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def url(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    return cluster.database(request.node.name[:50])


@pytest.fixture
def database(url: str) -> Generator[Database]:
    with closing(Database(NOWHERE, url)) as database:
        yield database


def call(name: str) -> ToolCallRow:
    return ToolCallRow(id=name, at=time.time(), session="s", tool="find_symbol", duration_ms=1.0)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:hunter2@/db?frobnicate=1", "frobnicate"),
        ("postgresql://me:hunter2@/db?host=/x&port=0", "port"),
        ("postgresql://me:hunter2@host/db?sslmode=perhaps", "verify-full"),
        ("postgresql://me:hunter2@host/db?sslmode=verify-full&sslrootcert=/missing.pem", "sslrootcert"),
        ("postgresql+nothing://me:hunter2@host/db", "postgresql://"),
        ("mysql://me:hunter2@host/db", "postgresql://"),
        ("postgresql://me:hunter2@127.0.0.1:1/db", "refused"),
        ("postgresql://me:hunter2@/db?host=/missing", "No such file"),
    ],
)
def test_a_url_that_leads_nowhere_is_an_error_without_its_password(url: str, says: str) -> None:
    with closing(Database(NOWHERE, url)) as database, pytest.raises(StoreError, match=says) as caught:
        database.open()
    assert "hunter2" not in f"{caught.value}{caught.value.__context__}{caught.value.__cause__}"


def test_a_url_needs_a_user_where_the_process_has_none_with_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with (
        closing(Database(NOWHERE, "postgresql://127.0.0.1:1/db")) as database,
        pytest.raises(StoreError, match="names no user"),
    ):
        database.open()
    with (
        closing(Database(NOWHERE, "postgresql://me@127.0.0.1:1/db")) as database,
        pytest.raises(StoreError, match="refused"),
    ):
        database.open()


def test_what_a_server_said_is_told_though_it_hung_up_before_we_did(tmp_path: Path) -> None:
    said = b"SFATAL\0C3D000\0Mdatabase does not exist\0\0"

    def refuse(server: socket.socket) -> None:
        with server.accept()[0] as client:
            client.recv(1000)
            client.shutdown(socket.SHUT_RD)  # so that whatever the client writes now fails
            client.sendall(b"E" + (len(said) + 4).to_bytes(4, "big") + said)

    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(20)
        server.bind(f"{tmp_path}/.s.PGSQL.5432")
        server.listen()
        thread = threading.Thread(target=refuse, args=[server])
        thread.start()
        url = f"postgresql://me:hunter2@/db?host={tmp_path}"
        with closing(Database(NOWHERE, url)) as database, pytest.raises(StoreError, match="does not exist") as caught:
            database.open()
        thread.join()
    assert "hunter2" not in str(caught.value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="as the product")
def test_a_store_in_a_file_imports_nothing_of_postgresql(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from serena_central.store.database import Database\n"
        "from serena_central.store.queries import Queries; from serena_central.store.rows import EventRow\n"
        f"database = Database(Path({str(tmp_path / 'x.db')!r}))\n"
        "database.write([EventRow(seq=1, at=1.0, kind='a.b')]); Queries(database).projects(); database.close()\n"
        "print([name for name in sys.modules if 'pg8000' in name or name.endswith('store.postgresql')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout == "[]\n"


@needs_postgresql
def test_the_migrations_make_what_a_new_database_is(cluster: Cluster) -> None:
    made = []
    for name, by in (("by-migrations", migrate), ("at-once", bring_up_to_date)):
        engine = _engine(cluster.database(name), 5.0)
        with engine.execution_options(writes=True).begin() as connection:
            by(connection)
        with engine.begin() as connection:
            made.append(schema(connection))
        engine.dispose()
        assert cluster.execute("SELECT version_num FROM alembic_version", name) == [[SCHEMA_VERSION]]
        kinds = cluster.execute(
            "SELECT DISTINCT data_type FROM information_schema.columns WHERE table_schema = 'public'", name
        )
        assert ["integer"] not in kinds
    assert made[0] == made[1]


@needs_postgresql
def test_texts_are_ordered_by_code_point_and_numbers_have_64_bits(cluster: Cluster, database: Database) -> None:
    big = 2**40
    database.write(
        [ToolCallRow(id=name, at=5.0, session="s", tool="t", duration_ms=1, answer_chars=big) for name in "aBÄ_b"]
    )
    found = Queries(database).calls(CallFilter())
    assert [one.call.id for one in found] == ["Ä", "b", "a", "_", "B"]
    assert found[0].call.answer_chars == big
    assert Queries(database).totals_by_day()[0].answer_chars == 5 * big


@needs_postgresql
def test_a_nul_is_replaced_wherever_it_comes_from_and_half_characters_spoil_no_other_row(database: Database) -> None:
    rows = [
        EventRow(seq=1, at=1.0, kind="a.b", message="a\0b", data={"x": "c\0d"}),
        ProjectRow(root="/\udcff", name="x", added_at=1.0, last_used_at=1.0),
        ProjectRow(root="/a", name="x", added_at=1.0, last_used_at=1.0),
    ]
    assert database.write(rows) == 1
    (event,) = Queries(database).events(EventFilter()).events
    assert (event.message, event.data) == ("a\ufffdb", {"x": "c\0d"})
    assert Queries(database).events(EventFilter(session="\0")).events == []
    with pytest.raises(StoreError):
        Queries(database).events(EventFilter(session="\udcff"))
    assert [row.root for row in Queries(database).projects()] == ["/a"]


@needs_postgresql
def test_a_key_that_no_index_holds_is_refused_alone(database: Database) -> None:
    names = ["short", "".join(chr(0x4E00 + n * 37 % 20_000) for n in range(4000))]
    rows = [
        SymbolViewRow(session="s", project_root="/p", relative_path="a", name_path=n, body_hash="h", seen_at=1.0)
        for n in names
    ]
    assert database.write(rows) == 1
    assert [row.name_path for row in Queries(database).symbol_views("s")] == ["short"]


@needs_postgresql
def test_a_batch_whose_commit_was_not_heard_of_is_neither_lost_nor_doubled(database: Database) -> None:
    rows = [call("c-1"), call("c-2")]
    database.write(rows)
    assert database.write([*rows, call("c-3")]) == 0
    assert len(Queries(database).calls(CallFilter())) == 3
    assert [day.calls for day in Queries(database).totals_by_day()] == [3]


@needs_postgresql
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_was_gone_is_used_again_as_soon_as_it_is_back(
    cluster: Cluster, database: Database, how: str
) -> None:
    database.write([call("c-1")])
    cluster.kill() if how == "kill" else cluster.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreError, match="not usable"):
                database.write([call("c-2")])
            with pytest.raises(StoreError, match="not usable"):
                Queries(database).projects()
    finally:
        cluster.start()
    assert database.write([call("c-2")]) == 0
    assert len(Queries(database).calls(CallFilter())) == 2


@needs_postgresql
def test_connections_that_broke_while_nobody_looked_are_replaced_unnoticed(
    cluster: Cluster, database: Database
) -> None:
    database.write([call("c-1")])
    cluster.stop()
    cluster.start()
    assert len(Queries(database).calls(CallFilter())) == 1
    database.write([call("c-2")])
    ours = "FROM pg_stat_activity WHERE application_name = 'serena-central'"
    cluster.execute(f"SELECT pg_terminate_backend(pid) {ours}")
    while cluster.execute(f"SELECT count(*) {ours}") != [[0]]:  # what is asked meanwhile would fail
        time.sleep(0.01)
    assert len(Queries(database).calls(CallFilter())) == 2


@needs_postgresql
def test_a_connection_that_is_reset_while_it_is_tried_is_replaced_unnoticed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []

    def connected(host: str, port: int) -> socket.socket:
        sock = postgresql_socket(host, port)
        opened.append(sock.fileno())
        return sock

    def reset(peer: socket.socket) -> None:
        with peer:
            peer.recv(1, socket.MSG_PEEK)  # what is left unread resets the connection

    postgresql_socket = postgresql._socket
    monkeypatch.setattr(postgresql, "_socket", connected)
    database.write([call("c-1")])
    resets = []
    for descriptor in opened:
        ours, peer = socket.socketpair()
        with ours:
            os.dup2(ours.fileno(), descriptor)
        resets.append(threading.Thread(target=reset, args=[peer]))
        resets[-1].start()
    assert opened
    assert len(Queries(database).calls(CallFilter())) == 1
    database.close()
    for thread in resets:
        thread.join(20)
        assert not thread.is_alive()


def test_a_start_does_not_wait_for_a_server_that_hangs_until_it_is_given_up() -> None:
    """A start took 15 s more, so that clients gave up."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        check_usable(NOWHERE, f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/central")
        silent.settimeout(10)
        with closing(silent.accept()[0]) as asking:
            asking.setblocking(False)
            assert asking.recv(1000)
            with pytest.raises(BlockingIOError):  # else it would be closed
                asking.recv(1)


@needs_postgresql
def test_a_server_that_hangs_is_given_up(cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.store.postgresql.STATEMENT_S", 0.3)
    monkeypatch.setattr("serena_central.store.postgresql.SILENCE_S", 0.3)
    monkeypatch.setattr("serena_central.store.database.BUSY_TIMEOUT_S", 0.3)
    monkeypatch.setattr("serena_central.store.database.OPEN_TIMEOUT_S", 5.0)
    with closing(Database(NOWHERE, url)) as database:
        database.write([call("c-1")])
        monkeypatch.setattr("serena_central.store.database.OPEN_TIMEOUT_S", 0.3)
        stopped = cluster.processes()
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(StoreError, match="not usable"):
                database.write([call("c-2")])
        finally:
            for process in stopped:
                process.send_signal(signal.SIGCONT)
        assert database.write([call("c-2")]) == 0


@needs_postgresql
@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors")
def test_connections_that_are_refused_keep_no_descriptors(cluster: Cluster) -> None:
    gc.collect()
    gc.disable()
    try:
        with closing(Database(NOWHERE, cluster.url("no-such-database"))) as database:
            counts: set[int] = set()
            for _ in range(20):
                with pytest.raises(StoreError, match="does not exist"):
                    database.open()
                counts.add(sum(1 for _ in Path("/proc/self/fd").iterdir()))
    finally:
        gc.enable()
    assert len(counts) == 1, counts


@needs_postgresql
def test_the_password_of_a_server_that_refuses_it_is_in_no_error(cluster: Cluster) -> None:
    url = make_url(cluster.url("no-such-database")).set(password="hunter2").render_as_string(hide_password=False)
    with closing(Database(NOWHERE, url)) as database, pytest.raises(StoreError, match="does not exist") as caught:
        database.open()
    assert "hunter2" not in str(caught.value)
