"""A PostgreSQL of the tests' own: a cluster in a temporary folder, reached by a unix socket, gone with the tests.

As root it runs as another user, since PostgreSQL refuses root. With `--postgresql` the store of every test lies in it
(`conftest.py`), in a database for each home.
"""

import hashlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pg8000.dbapi
import psutil

CHECKOUT = Path(__file__).parents[2]

PATIENCE_S = 60

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "200",
    "autovacuum": "off",
}


def programs() -> Path | None:
    """The folder of `postgres` and `initdb`; None where there is none."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    for above in (CHECKOUT / "build/postgresql/usr/lib/postgresql", Path("/usr/lib/postgresql")):
        folders += sorted(above.glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Cluster:
    """One PostgreSQL server. Blocks."""

    def __init__(self, **settings: str) -> None:
        """`settings` differ from those that only make tests quick."""
        self._settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="serena-postgresql-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(self.folder, "nobody", "nogroup")
        self._process: subprocess.Popen[bytes] | None = None
        self._made: set[str] = set()
        found = programs()
        assert found, "no PostgreSQL: scripts/get-postgresql gets it"
        self._programs = found
        self._run("initdb", "-D", str(self.data), "-U", "serena", "-A", "trust", "-E", "UTF8", "--no-sync")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Returns when it answers."""
        settings = _SETTINGS | self._settings | {"unix_socket_directories": str(self.folder)}
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.data), *given],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as,
            )
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start"
            time.sleep(0.02)

    def stop(self, number: int = signal.SIGINT) -> None:
        """Ends it; by default it closes all connections and leaves nothing to recover."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def kill(self) -> None:
        """As kill -9 or a power failure would: postmaster and all its processes."""
        assert self._process is not None
        processes = self.processes()
        for one in processes:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.wait(PATIENCE_S)
        self._process = None
        psutil.wait_procs(processes[1:], timeout=PATIENCE_S)

    def processes(self) -> list[psutil.Process]:
        """Of this server, the first one first."""
        assert self._process is not None
        first = psutil.Process(self._process.pid)
        return [first, *first.children(recursive=True)]

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://serena@/{database}?host={self.folder}"

    def database(self, name: str) -> str:
        """The URL of the database of this name, created if it is new."""
        if name not in self._made:
            self.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
            self._made.add(name)
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Runs one statement outside of a transaction; its rows."""
        with self._connection(database) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    @contextmanager
    def transaction(self, database: str) -> Generator[Callable[[str], Any]]:
        """Runs statements in one transaction, which COMMIT or the end of the block ends."""
        with self._connection(database) as connection:
            yield connection.cursor().execute

    @contextmanager
    def _connection(self, database: str) -> Generator[Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.connect(f"{self.folder}/.s.PGSQL.5432")
            with closing(pg8000.dbapi.connect("serena", sock=sock, database=database, ssl_context=False)) as connection:
                yield connection

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except (OSError, pg8000.dbapi.Error):
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, env=_environment(), **self._as)


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8"}


_cluster: list[Cluster] = []
"""The one of this process, while tests run on it."""


def use(cluster: Cluster) -> None:
    """From now on the store of every test lies there."""
    _cluster.append(cluster)


def forget() -> None:
    _cluster.clear()


def url_for(path: Path) -> str | None:
    """Where a store lies that would be the file `path`; None where it is that file."""
    if not _cluster:
        return None
    return _cluster[0].database(hashlib.sha256(str(path).encode()).hexdigest()[:16])


def rows_in(path: Path, statement: str) -> list[Any]:
    """What a statement finds in the store of `path`, past all that is ours."""
    url = url_for(path)
    if url is None:
        with closing(sqlite3.connect(path)) as connection:
            return [tuple(row) for row in connection.execute(statement)]
    name = url.partition("@/")[2].partition("?")[0]
    return [tuple(row) for row in _cluster[0].execute(statement, name)]
