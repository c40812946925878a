"""Learns a client's working folder from its roots.

In the handshake era the client is asked beside its calls, on the stream that it keeps open, and again when it says that
they changed. In the modern era a call that names no project, from a client that said nothing else of where it works, is
answered by the question, and sent again with the roots.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from serena_central.access.working_folder import folder_in
from serena_central.core.decoding import converted
from serena_central.files.boundary import MOST_PATH_CHARS

KEY = "roots"
"""Of the question and its answer."""

ASKING_S = 10.0
"""For the client to answer; one that does not has no roots for us."""

METHOD: Final = "roots/list"

MOST_ROOTS = 100
"""That are looked at. An answer has room for hundreds of thousands, which would stop the server for seconds."""

MOST_URI_CHARS = 6 * MOST_PATH_CHARS + 100
"""Of a root: a character of a path is one or two bytes as a rule, of three characters each where they are escaped."""


class _Root(msgspec.Struct):
    uri: str


class _Roots(msgspec.Struct):
    roots: list[_Root]


def folder_in_answers(answers: Mapping[str, Any]) -> str | None:
    """The first folder among the roots in a client's answers, in wire form; None also for what is no such answer."""
    if KEY not in answers:
        return None
    try:
        return _first_folder([root.uri for root in converted(answers[KEY], _Roots).roots])
    except msgspec.ValidationError:
        return None


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
