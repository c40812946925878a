"""The doctor's checks of the server: its folder, token and settings, process, port, database and leftovers."""

import os
import stat
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from serena_central.access.token import read_token
from serena_central.cli.checks.check import Check, failed, info, ok, warning
from serena_central.cli.checks.claude import check_claude_settings
from serena_central.cli.output import megabytes
from serena_central.cli.port import PortTaken, listening
from serena_central.cli.remote import NoServer, NotOurs, Refused, Remote, Unready
from serena_central.cli.trust import project_root
from serena_central.config.layers import Loaded, Problem
from serena_central.config.load import load_server_config
from serena_central.config.settings import ServerSettings
from serena_central.core.errors import ConfigError, StoreError, StoreUnusable, TrustRefused
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.pool.ledger import Ledger
from serena_central.projects.root_settings import RootSettings
from serena_central.standalone.home import Home
from serena_central.standalone.lock import is_locked

PRIVATE = 0o077
"""Permission bits that others must not have on our folder."""

ANSWER_S = 5.0
"""A server that does not answer within this time, in seconds, hangs, or the machine is overloaded."""

NEARLY_ALL = 0.9
"""Of the descriptors."""

START = "start one with `serena-central serve`"


def check_server(places: Places) -> Iterator[Check]:
    yield _home(places)
    loaded, problems = _settings(places)
    yield from problems
    yield from check_claude_settings(_roots(loaded))
    yield _token(places)
    runs = _running(places)
    yield runs
    yield from _descriptors(places)
    if runs.state == "info":  # while one runs, port, lock and processes are its own
        yield from _left_behind(places)
        if loaded is not None:
            yield _port(loaded.value)
    yield from _database(places, loaded)
    yield info("log", str(places.log_file) if places.log_file.exists() else "none yet")


def _home(places: Places) -> Check:
    try:
        facts = places.home.stat()
    except FileNotFoundError:
        return info("home", f"{places.home} is created by the first `serena-central serve`")
    except OSError as error:
        return failed("home", f"{places.home}: {error.strerror}", "set SERENA_CENTRAL_HOME to a folder of your own")
    if not stat.S_ISDIR(facts.st_mode):
        return failed("home", f"{places.home} is not a folder", "set SERENA_CENTRAL_HOME to a folder of your own")
    closed = [
        str(folder)
        for folder in (places.home, places.cache, places.servers, places.logs)
        if folder.exists() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    ]
    if closed:
        return failed("home", f"{', '.join(closed)} is not writable", "chown it to this user, or run chmod u+rwx on it")
    files = (places.lock_file, places.server_file, places.log_file, places.ledger_file, places.database)
    if folders := [str(file) for file in files if file.is_dir()]:
        advice = "remove it, or rename it to keep what is in it: the server needs a file there"
        return failed("home", f"{', '.join(folders)} is a folder", advice)
    if facts.st_mode & PRIVATE:
        mode = f"{stat.S_IMODE(facts.st_mode):04o}"
        return warning("home", f"other users can read {places.home} (mode {mode})", f"chmod 700 {places.home}")
    return ok("home", str(places.home))


def _settings(places: Places) -> tuple[Loaded[ServerSettings] | None, list[Check]]:
    """The settings, if they can be used, and each problem in them and in the projects that they name."""
    try:
        loaded = load_server_config({})
    except ConfigError as error:
        return None, [failed("settings", str(error), "fix it; `serena-central config show --origins` shows all values")]
    problems = [*loaded.problems]
    for root in loaded.value.projects:
        problems += RootSettings(loaded, places).read(expanded(root).resolve()).problems
    if not problems:
        return loaded, [ok("settings", "no problems")]
    return loaded, [_of_problem(problem) for problem in problems]


def _roots(loaded: Loaded[ServerSettings] | None) -> Iterator[Path]:
    """The folder around the caller, and the projects that the settings name."""
    try:
        yield project_root(None)
    except TrustRefused:  # the home folder itself
        yield Path.home()
    yield from (expanded(root).resolve() for root in (loaded.value.projects if loaded else ()))


def _of_problem(problem: Problem) -> Check:
    if problem.kind == "wrong":
        return failed("settings", str(problem), "fix the value; until then it is ignored")
    if problem.kind == "untrusted":
        return warning("settings", str(problem), "`serena-central trust DIR` shows it and asks you")
    return warning("settings", str(problem), "it is ignored; remove it, unless Serena uses it")


def _token(places: Places) -> Check:
    try:
        read_token(places.token_file)
    except FileNotFoundError:
        return info("token", "none yet; the first `serena-central serve` creates it")
    except ConfigError as error:
        return failed("token", str(error), f"delete {places.token_file} and restart the server and its clients")
    except OSError as error:
        return failed("token", f"{places.token_file}: {error.strerror}", "chown it to this user")
    return ok("token", f"{places.token_file}, readable only by its owner")


def _running(places: Places) -> Check:
    installed = metadata.version("serena-central")
    try:
        remote = Remote(places, answer_timeout_s=ANSWER_S)
        health = remote.get("/health")
        problem = remote.get("/api/v1/stats")["store"]["problem"]
    except NotOurs as error:
        return failed(
            "server", str(error), "stop the program that listens there, or delete server.json and start a server"
        )
    except Unready as error:
        return warning("server", str(error), "where that lasts, read the log, and end the process that holds the lock")
    except NoServer as error:
        if is_locked(places.lock_file):
            advice = "run `serena-central stop`, then read the log; kill the server if it hangs"
            return failed("server", f"one holds the lock {places.lock_file}, but: {error}", advice)
        return info("server", f"not running; {START}")
    except Refused as error:
        return failed(
            "server", str(error), "stop the program that answers there, or delete server.json and start a server"
        )
    except (KeyError, TypeError):
        return failed("server", "the server at this address has an incompatible version", "`serena-central restart`")
    says = f"version {health['version']} answers at {remote.url}"
    if health["version"] != installed:
        return warning("server", f"{says}; {installed} is installed", "`serena-central restart`")
    return warning("server", f"{says}; {problem}", "see `database`") if problem else ok("server", says)


def _descriptors(places: Places) -> Iterator[Check]:
    """Those of the server's process, which may have none left to answer with."""
    import psutil

    name, advice = "server's open files", "close clients, or raise its limit (ulimit -Hn, LimitNOFILE= of a service)"
    said = Home(str(places.home)).announcement()
    if said is None or not is_locked(places.lock_file) or sys.platform != "linux":  # psutil tells no limits elsewhere
        return
    try:
        process = psutil.Process(said.pid)
        if "serve" not in process.cmdline():
            return  # the server runs in another container, where it has that id
        used, most = process.num_fds(), process.rlimit(psutil.RLIMIT_NOFILE)[0]
    except (psutil.Error, OSError):
        return  # another's
    says = f"{used} of {most}" if most != psutil.RLIM_INFINITY else str(used)
    if most != psutil.RLIM_INFINITY and used > most * NEARLY_ALL:
        yield failed(name, f"{says}: no more connections are accepted", advice)
    elif ended := _exhausted_before(places):
        yield warning(name, f"{says}; the limit was reached at {ended}", advice)
    else:
        yield ok(name, says)


def _exhausted_before(places: Places) -> str | None:
    """When the server had no descriptors left last, as it says itself."""
    try:
        at = Remote(places, answer_timeout_s=ANSWER_S).get("/api/v1/stats")["descriptors"]["exhausted_at"]
    except (NoServer, Refused, KeyError, TypeError):
        return None
    return None if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _left_behind(places: Places) -> Iterator[Check]:
    if places.server_file.exists():
        yield info("server.json", "an earlier server did not shut down cleanly; the next start cleans up")
    if pids := Ledger(places.ledger_file).leftovers():
        says = f"an earlier server left processes running: {', '.join(map(str, pids))}"
        yield warning("processes", says, "the next `serena-central serve` stops them")
    else:
        yield ok("processes", "no leftovers of an earlier server")


def _port(settings: ServerSettings) -> Check:
    try:
        with listening(settings):
            pass
    except (PortTaken, OSError) as error:
        return failed("port", str(error), "stop that program, or choose another port (central_server_port)")
    return ok("port", f"{settings.central_server_host}:{settings.central_server_port} is free")


def _database_server(url: str) -> Check:
    from serena_central.store.inspection import inspect_server
    from serena_central.store.rows import SCHEMA_VERSION

    if url.startswith("sqlite:"):
        return info("database", "a file at database_url; `serena-central status` shows whether it is writable")
    try:
        facts = inspect_server(url)
    except StoreUnusable as error:
        return failed("database", error.problem, error.remedy)
    except StoreError as error:
        remedy = (
            "check database_url (@, :, / and % of a password are percent-encoded), and that the server runs and lets "
        )
        return failed("database", str(error), f"{remedy}this user in")
    says = f"PostgreSQL {facts.version} at database_url, schema {facts.schema or 'none yet'}"
    says += f", {megabytes(facts.size_bytes)}"
    if facts.schema > SCHEMA_VERSION:
        says += f", written by a newer version (this one has {SCHEMA_VERSION})"
        return failed("database", says, "update serena-central, or set database_url to another database")
    if facts.schema < SCHEMA_VERSION and not facts.may_create:
        return failed("database", f"{says}; its user may not create tables", "GRANT CREATE ON SCHEMA public TO it")
    return ok("database", says)


def _database(places: Places, loaded: Loaded[ServerSettings] | None) -> Iterator[Check]:
    from serena_central.store.inspection import inspect_file
    from serena_central.store.rows import SCHEMA_VERSION

    if loaded is not None and loaded.value.database_url:
        yield _database_server(loaded.value.database_url)
        return
    if places.database.is_dir():
        return  # `home` says so
    try:
        facts = inspect_file(places.database)
    except FileNotFoundError:
        yield info("database", "none yet; the first `serena-central serve` creates it")
        return
    except (StoreError, OSError) as error:
        yield failed("database", str(error), "start the server: it sets the corrupt file aside and creates a new one")
        return
    says = f"{places.database}, schema {facts.schema}, {megabytes(facts.size_bytes)}"
    if facts.damage:
        yield failed("database", f"{says}: {facts.damage}", f"stop the server and rename {places.database} to keep it")
    elif facts.schema > SCHEMA_VERSION:
        says += f", written by a newer version (this one has {SCHEMA_VERSION})"
        yield failed("database", says, "update serena-central, or set database_url to another file")
    else:
        yield ok("database", says + ("" if facts.checked else ", too large to be checked"))
    if aside := sorted(file.name for file in places.home.glob(f"{places.database.name}.corrupt-*")):
        says = f"set aside as corrupt: {', '.join(aside)}"
        yield warning("database", says, f"delete them in {places.home} when no longer needed")
