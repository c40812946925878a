"""PostgreSQL as the store's database: URLs, connections with bounds, what errors mean. Blocks; for worker threads.

The driver is pg8000: it is synchronous as the store is, and free software that may be linked with any. It belongs to
the extra `postgresql`, and is imported when the first connection is opened.
"""

import getpass
import socket
import ssl
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import ExceptionContext

from serena_central.core.errors import StoreError, StoreUnusable
from serena_central.store.rows import Notice

SCHEME = "postgresql+pg8000"

INSTALL = "pipx install --force '.[postgresql]' in a checkout"

CONNECT_S = 5.0
"""How long opening a connection may take."""

STATEMENT_S = 10.0
"""How long a statement may take, by the server's own clock."""

SILENCE_S = 5.0
"""How much longer its answer may take: then the host is taken for lost."""

CONNECTIONS = 8
"""Maximum of open connections: the writer's, and queries of pages."""

CHANNEL = "serena_central"
"""Of notices between servers with one database."""

UPGRADE_LOCK = 0x5E7E7A
"""Key of the advisory lock that a server holds while it creates or upgrades the tables."""

_VALUE_CLASSES = ("22", "23", "54")
"""SQLSTATE classes that are about what a row holds: data exceptions, constraints, program limits."""

UNIQUE_VIOLATION = "23505"

_LOST_CLASSES = ("08", "57P")
"""That mean that the connection is gone: connection exceptions, shutdown."""

_PARAMETERS = {"host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "application_name"}
_TLS = ("disable", "prefer", "require", "verify-ca", "verify-full")


def is_postgresql(url: URL) -> bool:
    return url.drivername in ("postgresql", "postgres", SCHEME)


def postgresql_engine(url: URL, lock_timeout_s: float, **options: Any) -> Engine:
    """An engine whose connections answer within bounds, or fail. `lock_timeout_s` bounds the wait for locks.

    Raises:
        StoreError: the URL says what this driver doesn't know.
        StoreUnusable: the driver is not installed.
    """
    engine = create_engine(
        f"{SCHEME}://",
        creator=_creator(url, lock_timeout_s),
        pool_size=CONNECTIONS // 2,
        max_overflow=CONNECTIONS // 2,
        pool_timeout=CONNECT_S,
        pool_pre_ping=True,  # the server may have restarted since
        **options,
    )
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _notice_loss)
    dialect: Any = engine.dialect
    dialect.do_ping = partial(_ping, dialect.do_ping, dialect.loaded_dbapi.InterfaceError)
    dialect.do_close = partial(_close, dialect.do_close)
    return engine


def notify(connection: Connection, notices: Iterable[Notice]) -> None:
    """Has listeners notified when the transaction is committed."""
    for one in dict.fromkeys(notices):
        payload = f"{one.kind} {one.id} {one.sender}"
        connection.execute(select(func.pg_notify(CHANNEL, payload)))


class Listener:
    """A connection of its own that hears of notices. `fileno` becomes readable when there may be one. `read` blocks,
    for worker threads.

    The driver reads what PostgreSQL sends only while it asks something, so `read` asks. What arrives with the end of an
    answer may stay in the driver's buffer: `read` from time to time, too, which also notices a lost connection.
    """

    def __init__(self, url: URL) -> None:
        """Connects, and listens from then on.

        Raises:
            StoreError
        """
        try:
            self._connection, self._socket = _opener(url, CONNECT_S)()
            self.fileno: int = self._socket.fileno()
            self._connection.autocommit = True
            self._cursor = self._connection.cursor()
            self._cursor.execute(f"LISTEN {CHANNEL}")
        except StoreError:
            raise
        except Exception as error:  # as in `read`
            raise StoreError(f"No connection for notices: {reason_of(error)}") from error

    def read(self) -> list[Notice] | None:
        """Notices since the last time, oldest first; None if so many came that some may be missing.

        Raises:
            StoreError: the connection is lost.
        """
        found: list[Notice] = []
        complete = True
        try:
            while True:
                self._cursor.execute("SELECT 1")
                self._cursor.fetchall()
                heard = self._connection.notifications
                complete = complete and len(heard) < heard.maxlen
                if not heard:
                    return found if complete else None
                while heard:
                    kind, _, rest = heard.popleft()[2].partition(" ")
                    key, _, sender = rest.partition(" ")
                    found.append(Notice(kind, key, sender))
        except Exception as error:  # the driver raises what it likes when a connection breaks, struct.error, too
            raise StoreError(f"The connection for notices is lost: {reason_of(error)}") from error

    def close(self) -> None:
        """At once, from any thread; one that reads gets an error."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(Exception):  # as above
            self._connection.close()


def upgrade_lock(connection: Connection) -> None:
    """Waits until no other server upgrades the same database; held until the transaction ends."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})")


def is_about_a_value(error: BaseException | None) -> bool:
    """Whether one row's content is to blame, rather than the database."""
    return sqlstate(error).startswith(_VALUE_CLASSES)


def sqlstate(error: BaseException | None) -> str:
    """PostgreSQL's code of an error; "" where it has none."""
    return _fields(error).get("C", "")


def reason_of(error: BaseException) -> str:
    """One sentence, as PostgreSQL says it."""
    original: Any = getattr(error, "orig", None) or error
    cause = original.__cause__ if isinstance(original.__cause__, OSError) else None
    return _fields(original).get("M") or str(cause or original)


def _fields(error: BaseException | None) -> Mapping[str, str]:
    original: Any = getattr(error, "orig", None) or error
    said: Any = original.args[0] if original is not None and original.args else None
    none: Mapping[str, str] = {}
    return cast("Mapping[str, str]", said) if isinstance(said, dict) else none


def _creator(url: URL, lock_timeout_s: float) -> Callable[[], Any]:
    opener = _opener(url, lock_timeout_s)
    return lambda: opener()[0]


def _opener(url: URL, lock_timeout_s: float) -> Callable[[], tuple[Any, socket.socket]]:
    """What opens a connection; with its socket, of which another object may hold the descriptor, as TLS does."""
    try:
        import pg8000.dbapi

        driver: Any = pg8000.dbapi
    except ImportError as error:
        raise StoreUnusable(
            "database_url names a PostgreSQL server, whose driver is not installed", f"install it: {INSTALL}"
        ) from error
    given = _parameters(url)
    host = given.get("host") or "localhost"
    port = _port(given.get("port"))
    connect: Callable[..., Any] = partial(
        driver.connect,
        given.get("user") or _own_name(),
        host=host,
        port=port,
        database=given.get("dbname") or None,
        password=given.get("password"),
        ssl_context=False if host.startswith("/") else _tls(given),
        application_name=given.get("application_name", "serena-central"),
    )

    longest_s = max(STATEMENT_S, lock_timeout_s)

    def create() -> tuple[Any, socket.socket]:
        sock = _socket(host, port)
        try:
            sock.settimeout(longest_s + SILENCE_S)
            connection = connect(sock=sock)
            cursor = connection.cursor()
            cursor.execute(f"SET statement_timeout = '{longest_s}s'")
            cursor.execute(f"SET lock_timeout = '{lock_timeout_s}s'")
            connection.commit()
        except BaseException as error:
            sock.close()
            _let_go(error)
            if (said := _said_before(error)) is not None:
                try:
                    raise said from None
                finally:
                    del said  # which holds this frame by its traceback
            raise
        return connection, connection._usock  # noqa: SLF001 - TLS puts another object around ours

    return create


def _let_go(error: BaseException) -> None:
    """Frees what the driver made before it failed: it closes its socket, but not the stream on it, which keeps the
    descriptor open, and which errors hold by the frames of their tracebacks, each other and so themselves."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__


def _said_before(error: BaseException) -> BaseException | None:
    """The server's own error, if `error` arose while that was handled.

    A server that refuses a connection hangs up. The driver, which closes the session, then reports a broken pipe.
    """
    seen = error.__cause__ or error.__context__
    while seen is not None and not _fields(seen):
        seen = seen.__cause__ or seen.__context__
    return seen


def _parameters(url: URL) -> dict[str, str]:
    """What the URL says, by the names that libpq has for it."""
    query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    if unknown := query.keys() - _PARAMETERS:
        known = ", ".join(sorted(_PARAMETERS))
        raise StoreError(f"database_url has a parameter that is not supported: {min(unknown)}. Supported are {known}.")
    named = {"host": url.host, "user": url.username, "password": url.password, "dbname": url.database}
    port = {"port": str(url.port)} if url.port else {}
    return {**{name: value for name, value in named.items() if value}, **port, **query}


def _own_name() -> str:
    """Who connects where the URL does not say, as libpq has it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # OSError since Python 3.13
        raise StoreError("database_url names no user, and this process's own has no login name.") from error


def _port(given: str | None) -> int:
    if given is None:
        return 5432
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise StoreError("database_url has a port that is not a number from 1 to 65535.")
    return int(given)


def _tls(given: Mapping[str, str]) -> Any:
    """As libpq: encrypted where the server can, verified where the URL asks for it."""
    mode = given.get("sslmode", "prefer")
    if mode not in _TLS:
        raise StoreError(f"database_url has an unknown sslmode. Known are {', '.join(_TLS)}.")
    if mode == "disable":
        return False
    if mode == "prefer":
        return None
    if mode == "require":
        return True
    try:
        context = ssl.create_default_context(cafile=given.get("sslrootcert"))
    except OSError as error:
        raise StoreError(f"The sslrootcert of database_url can't be read: {error}") from error
    context.check_hostname = mode == "verify-full"
    return context


def _socket(host: str, port: int) -> socket.socket:
    if host.startswith("/"):
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.settimeout(CONNECT_S)
            connected.connect(f"{host}/.s.PGSQL.{port}")
        except BaseException:
            connected.close()
            raise
        return connected
    connected = socket.create_connection((host, port), CONNECT_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connected


def _begin(connection: Connection) -> None:
    # Several statements of one query see one state, as they do in SQLite.
    if not connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _ping(ping: Callable[[Any], bool], broken: type[Exception], connection: Any) -> bool:
    # The driver passes on what `recv` raises, which SQLAlchemy takes for no loss of a connection that it tries.
    try:
        return ping(connection)
    except OSError as error:
        raise broken("network error") from error


def _close(close: Callable[[Any], None], connection: Any) -> None:
    with suppress(Exception):  # as in `Listener.read`: a connection that is lost can't be closed, and need not be
        close(connection)


def _notice_loss(context: ExceptionContext) -> None:
    """SQLAlchemy drops the pool's connections: it does not know by itself all the ways in which this driver says so."""
    error = context.original_exception
    if isinstance(error, OSError) or sqlstate(error).startswith(_LOST_CLASSES):
        context.is_disconnect = True
