"""The command line's client of the running server: found by `server.json`, authenticated by the token, over /api."""

import json
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode, urlsplit

from serena_central.core.errors import InvalidArguments, SerenaCentralError
from serena_central.core.places import Places
from serena_central.standalone.home import Home, Unusable, read_token
from serena_central.standalone.lock import is_locked
from serena_central.standalone.proof import Unproven, authority_of, prove

if TYPE_CHECKING:
    import http.client

CONNECT_TIMEOUT_S = 3.0
PROOF_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 300.0
"""Longer than any tool's default deadline: the server's own message about a deadline is the better one."""


HOOK_VARIABLE = "SERENA_CENTRAL_HOOK"
"""Set by the server for its hooks (`gates/commands.py`)."""

BYTES = "surrogateescape"
"""How what is no UTF-8 on the command line goes into a URL: as the bytes that were typed."""


NOT_UNDERSTOOD = (400, 404, 405, 422)

PAGE = 1000
"""Entries of a list that are asked for at once: the most that the server gives."""


class NoServer(SerenaCentralError):
    """No server of this user answers. What is done where none runs must not be done for `Unready` and `Unreachable`."""


class Unready(NoServer):
    """A server starts or stops: it holds the lock, and has announced nothing."""

    def __init__(self, lock: str) -> None:
        super().__init__(
            f"A server of this user is starting or stopping: it holds {lock}, and answers nothing yet. Try again in a "
            "moment; where that lasts, see `serena-central doctor`."
        )


class Unreachable(NoServer):
    """A server runs, since it holds the lock, and does not answer, or not here."""


class Refused(SerenaCentralError):
    """The server answered with an error; `kind` is the name of it in the error tree, where it has one."""

    several_lines = True

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class NotOurs(NoServer):
    """Something listens where the server should, and does not prove to be it."""


def _here() -> Path:
    """The current folder; the root where that was removed, in which a command works like anywhere else."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


class Remote:
    """The running server of this user. Blocking; one instance per command. Each connection is proved before it is
    used: the port of a server that ended may be anybody's."""

    def __init__(
        self, places: Places | None = None, *, folder: Path | None = None, answer_timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:
        """`folder` is where the caller works, for calls that name no project.

        Raises:
            NoServer
        """
        places = places or Places.of_user()
        home = Home(str(places.home))
        try:
            found, token = home.announcement(), read_token(home.token_file)
            if found is None or token is None:
                raise ValueError("not announced")
            self.url, self.pid, self._token = found.url, found.pid, token
            self._lock_file = home.lock_file
            self._version = found.version
            self._address = urlsplit(self.url)
            self._host, self._port = str(self._address.hostname), self._address.port or 80
        except ValueError as error:
            if is_locked(home.lock_file):
                raise Unready(home.lock_file) from error
            raise NoServer("No server is running for this user. Start one with `serena-central serve`.") from error
        except Unusable as error:
            raise NoServer(str(error)) from error
        self._folder = os.fsencode(folder or _here())
        self._answer_timeout_s = answer_timeout_s

    def get(self, path: str, **query: Any) -> Any:
        """JSON of a GET.

        Raises:
            Refused, NoServer
        """
        chosen = {key: value for key, value in query.items() if value is not None}
        return self._json("GET", f"{path}?{urlencode(chosen, doseq=True, errors=BYTES)}" if chosen else path)

    def whole(self, path: str, name: str, **query: Any) -> dict[str, Any]:
        """JSON of a GET of a list, whose entries are called `name`: with all of them, which come in pages.

        Raises:
            Refused, NoServer
        """
        answer = self.get(path, limit=PAGE, **query)
        entries = list(answer[name])
        while (cursor := answer["next_cursor"]) is not None:
            answer = self.get(path, limit=PAGE, cursor=cursor, **query)
            entries += answer[name]
        return {**answer, name: entries}

    def post(self, path: str, body: Any = None) -> Any:
        """JSON of a POST.

        Raises:
            Refused, NoServer
        """
        return self._json("POST", path, body)

    def delete(self, path: str) -> Any:
        """JSON of a DELETE.

        Raises:
            Refused, NoServer
        """
        return self._json("DELETE", path)

    def followed(self, path: str, body: Any, says: Callable[[str, float | None], None]) -> Any:
        """The outcome of a POST that streams its progress; Ctrl-C closes the connection.

        Raises:
            Refused, NoServer
        """
        with self._reaching(), self._asked("POST", path, body) as response:
            if not 200 <= response.status < 300:
                return self._parsed(response)
            for text in response:
                line: Any = json.loads(text)
                if "outcome" in line:
                    return line["outcome"]
                if "error" in line:
                    raise Refused(line["status"], line["error"]["kind"], line["error"]["message"])
                says(line["says"], line["part"])
        raise NoServer(f"The server at {self.url} stopped before the request finished.")

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        with self._reaching(), self._asked(method, path, body) as response:
            return self._parsed(response)

    @contextmanager
    def _reaching(self) -> Generator[None]:
        """What fails on the way becomes NoServer."""
        import http.client

        try:
            yield
        except TimeoutError as error:
            kind = Unreachable if is_locked(self._lock_file) else NoServer
            raise kind(f"The server at {self.url} does not answer. Run `serena-central doctor`.") from error
        except Unproven as error:
            raise NotOurs(str(error)) from error
        except (OSError, http.client.HTTPException) as error:
            if is_locked(self._lock_file):
                raise Unreachable(
                    f"The server of this user runs, but nothing answers at {self.url}: it is stopping, or it runs in "
                    "another container, which has a loopback of its own. Use it there, or set SERENA_CENTRAL_HOME to "
                    "another folder here."
                ) from error
            raise NoServer(f"No server answers at {self.url}. Start one with `serena-central serve`.") from error

    @contextmanager
    def _answering(self, method: str) -> Generator[None]:
        """Around the answer to a request that was sent: what fails leaves open whether it was carried out."""
        import http.client

        open_end = "" if method == "GET" else " It may have done what was asked: see `serena-central history`."
        try:
            yield
        except TimeoutError as error:
            says = f"The server at {self.url} does not answer. Run `serena-central doctor`."
            raise Unreachable(says + open_end) from error
        except (OSError, http.client.HTTPException) as error:
            says = f"The server at {self.url} ended before it answered. Start one with `serena-central serve`."
            raise NoServer(says + open_end) from error

    @contextmanager
    def _asked(self, method: str, path: str, body: Any) -> "Generator[http.client.HTTPResponse]":
        """The answer to a request, on a connection of its own: a command asks once or twice."""
        content = None if body is None else json.dumps(body).encode()
        headers: dict[str, str | bytes] = {"Authorization": f"Bearer {self._token}", "User-Agent": "serena-central-cli"}
        hook = os.environ.get(HOOK_VARIABLE, "")
        headers |= {"X-Serena-Hook": hook} if hook.isascii() and hook.isalpha() else {"X-Serena-Person": "yes"}
        if not any(byte < 0x20 or byte == 0x7F for byte in self._folder):
            headers["X-Serena-Project"] = self._folder
        if content is not None:
            headers["Content-Type"] = "application/json"
        connection = self._connected()
        try:
            connection.request(method, self._address.path.removesuffix("/mcp") + path, content, headers)
            with self._answering(method), connection.getresponse() as response:
                yield response
        finally:
            connection.close()

    def _connected(self) -> "http.client.HTTPConnection":
        # It takes 40 ms to import: only commands that talk to a server pay for it.
        import http.client

        connection = http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        connection.auto_open = 0  # it would open an unproved one
        try:
            connection.connect()
            until = time.monotonic() + min(self._answer_timeout_s, PROOF_TIMEOUT_S)
            prove(connection.sock, self._token, authority_of(self._host, self._port), deadline=until)
            connection.sock.settimeout(self._answer_timeout_s)
        except BaseException:
            connection.close()
            raise
        return connection

    def _parsed(self, response: "http.client.HTTPResponse") -> Any:
        content = response.read()
        try:
            answer: Any = json.loads(content) if content else None
        except ValueError as error:
            raise Refused(response.status, "", f"{self.url} is not a serena-central server.") from error
        if 200 <= response.status < 300:
            return answer
        found: Any = cast("dict[str, Any]", answer).get("error") if isinstance(answer, dict) else None
        problem = cast("dict[str, str]", found) if isinstance(found, dict) else {}
        message = problem.get("message") or f"The server answered with status {response.status}."
        raise Refused(response.status, problem.get("kind", ""), message + self._other_version(response.status))

    def _other_version(self, status: int) -> str:
        """What may be why a server does not understand a command: another version of it has been running since before
        an update."""
        from importlib import metadata  # only needed for this

        installed = metadata.version("serena-central")
        if status not in NOT_UNDERSTOOD or self._version in ("", installed):
            return ""
        return f" The server has version {self._version}, this command {installed}: run `serena-central restart`."


def named(path: str, name: str) -> str:
    """The path of what has a name in the list at another path; the name is one part of it, whatever it holds.

    Raises:
        InvalidArguments: the name is empty, and would mean the list.
    """
    if not name:
        raise InvalidArguments("An empty name is given. Name what is meant.")
    return f"{path}/{quote(name, safe='', errors=BYTES)}"


def process_alive(pid: int) -> bool:
    """Whether a process of this id runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
