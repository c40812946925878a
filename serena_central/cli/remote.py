"""The running server as the command line sees it: found by `server.json`, entered with the token, spoken to by /api."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from serena_central.core.errors import SerenaCentralError
from serena_central.core.places import Places

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 300.0
"""Longer than any tool's default deadline: the server's own message about a deadline is the better one."""


class NoServer(SerenaCentralError):
    """No server of this user answers."""


class Refused(SerenaCentralError):
    """The server answered with an error; `kind` is the name of it in the error tree, where it has one."""

    several_lines = True

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Remote:
    """The running server of this user. Blocking; one instance per command."""

    def __init__(
        self, places: Places | None = None, *, folder: Path | None = None, answer_timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:
        """`folder` is where the caller works, for calls that name no project. Raises NoServer."""
        # httpx takes a third of a second to import: only commands that talk to a server pay for it.
        import httpx

        places = places or Places.of_user()
        try:
            found = json.loads(places.server_file.read_text(encoding="utf-8"))
            url, token = str(found["url"]), places.token_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NoServer("No server runs for this user. Start one with `serena-central serve`.") from error
        self.url = url
        self._httpx = httpx
        self._client = httpx.Client(
            base_url=url.removesuffix("/mcp"),
            headers={
                "Authorization": f"Bearer {token}",
                "X-Serena-Project": str(folder or Path.cwd()),
                "X-Serena-Person": "yes",
                "User-Agent": "serena-central-cli",
            },
            timeout=httpx.Timeout(answer_timeout_s, connect=CONNECT_TIMEOUT_S),
            trust_env=False,  # a proxy of the environment must not see the token
        )

    def get(self, path: str, **query: Any) -> Any:
        """JSON of a GET. Raises Refused, NoServer."""
        return self._json("GET", path, params={key: value for key, value in query.items() if value is not None})

    def post(self, path: str, body: Any = None) -> Any:
        """JSON of a POST. Raises Refused, NoServer."""
        return self._json("POST", path, json=body)

    def delete(self, path: str) -> Any:
        """JSON of a DELETE. Raises Refused, NoServer."""
        return self._json("DELETE", path)

    def followed(self, path: str, body: Any, says: Callable[[str, float | None], None]) -> Any:
        """The outcome of a POST that tells of its progress; whoever leaves earlier (Ctrl-C) hangs up.

        Raises Refused, NoServer.
        """
        try:
            with self._client.stream("POST", path, json=body) as response:
                if not response.is_success:
                    response.read()
                    self._parsed(response)
                for line in map(json.loads, filter(None, response.iter_lines())):
                    if "outcome" in line:
                        return line["outcome"]
                    if "error" in line:
                        raise Refused(line["status"], line["error"]["kind"], line["error"]["message"])
                    says(line["says"], line["part"])
        except self._httpx.TransportError as error:
            raise NoServer(f"The server at {self.url} went away. Start one with `serena-central serve`.") from error
        raise NoServer(f"The server at {self.url} stopped before it was done.")

    def _json(self, method: str, path: str, **request: Any) -> Any:
        try:
            response: httpx.Response = self._client.request(method, path, **request)
        except self._httpx.TimeoutException as error:
            raise NoServer(f"The server at {self.url} does not answer. `serena-central doctor` tells more.") from error
        except self._httpx.TransportError as error:
            raise NoServer(f"No server answers at {self.url}. Start one with `serena-central serve`.") from error
        return self._parsed(response)

    def _parsed(self, response: "httpx.Response") -> Any:
        try:
            answer: Any = response.json() if response.content else None
        except ValueError as error:
            raise Refused(
                response.status_code, "", f"{self.url} does not answer as a serena-central server."
            ) from error
        if response.is_success:
            return answer
        found: Any = cast("dict[str, Any]", answer).get("error") if isinstance(answer, dict) else None
        problem = cast("dict[str, str]", found) if isinstance(found, dict) else {}
        message = problem.get("message") or f"The server answered with status {response.status_code}."
        raise Refused(response.status_code, problem.get("kind", ""), message)


def process_alive(pid: int) -> bool:
    """Whether a process of this id runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
