"""Learns a client's working folder from its roots.

In the handshake era the client is asked beside its calls, on the stream that it keeps open, and again when it says that
they changed. In the modern era a call that names no project, from a client that said nothing else of where it works, is
answered by the question, and sent again with the roots.
"""

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from serena_central.access.working_folder import folder_in
from serena_central.core.decoding import from_json
from serena_central.core.errors import UnknownProject
from serena_central.files.boundary import MOST_PATH_CHARS
from serena_central.mcp_server.sender import Sender

if TYPE_CHECKING:
    import mcp_types as types

KEY = "roots"
"""Of the question and its answer in the modern era."""

ASKING_S = 10.0
"""For the client to answer; one that does not has no roots for us."""

METHOD = "roots/list"

MOST_ROOTS = 100
"""That are looked at. An answer has room for hundreds of thousands, which would stop the server for seconds."""

MOST_URI_CHARS = 6 * MOST_PATH_CHARS + 100
"""Of a root: a character of a path is one or two bytes as a rule, of three characters each where they are escaped."""


class _Root(msgspec.Struct):
    uri: str


class _Roots(msgspec.Struct):
    roots: list[_Root]


def folder_in_answer(answer: msgspec.Raw) -> str | None:
    """The first folder among the roots of an answer, in wire form; None also for what is no such answer."""
    try:
        return _first_folder([root.uri for root in from_json(answer, _Roots).roots])
    except msgspec.DecodeError:
        return None


def asking_for_roots(
    sender: Sender,
    error: UnknownProject,
    answers: "types.InputResponses | None" = None,
    *,
    offered: bool,
) -> "types.InputRequiredResult | None":
    """The question for a call that failed because nothing said which project it means; None where it was asked, or
    can't be. `offered`: the client has roots."""
    if error.asked is not None or KEY in (answers or {}) or not offered:
        return None
    if sender.connection is not None:
        return None
    import mcp_types as types  # not at the top: the handshake era asks without the SDK

    return types.InputRequiredResult(input_requests={KEY: types.ListRootsRequest()})


def folder_in_answers(answers: "types.InputResponses | None") -> str | None:
    """The first folder among the roots that a call was sent again with."""
    import mcp_types as types

    answer = (answers or {}).get(KEY)
    if not isinstance(answer, types.ListRootsResult):
        return None
    return _first_folder([str(root.uri) for root in answer.roots])


def _first_folder(uris: list[str]) -> str | None:
    return next((folder for folder in map(_folder, uris[:MOST_ROOTS]) if folder), None)


def _folder(uri: str) -> str | None:
    """The folder of this machine that a root is."""
    if len(uri) > MOST_URI_CHARS:
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:  # brackets or characters that no host has
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return None
    return folder_in(unquote(parts.path, errors="surrogateescape"))
