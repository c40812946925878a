"""The folder that a client works in, as its requests say it. A path is bytes: its header is UTF-8, where libraries for
HTTP take it for Latin-1, and bytes that are no UTF-8 stay as they are.
"""

from collections.abc import Iterable
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

from serena_central.files.boundary import MOST_PATH_CHARS

FOLDER_HEADER = b"x-serena-project"

MOST_LEVELS = 100
"""Settings are looked for in a folder and in all above it, and their paths grow with them: 2,000 levels stop the server
for seconds, and a message has room for millions."""


def working_folder(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """What the header names, of a request's headers (ASGI); None without one, or where it names no folder."""
    return next((folder_in(decoded(value)) for name, value in headers if name == FOLDER_HEADER), None)


def decoded(value: bytes) -> str:
    """The text of the header."""
    return value.decode("utf-8", "surrogateescape").strip()


def folder_in(text: str | None) -> str | None:
    """The folder that a client named, by its path or a `file:` URL; None if it is not one, such as an unexpanded
    `${PWD}`."""
    if text and text.startswith("file://"):
        try:
            text = unquote(urlsplit(text).path, errors="surrogateescape")
        except ValueError:  # half an IPv6 address
            return None
    if not text or "\0" in text or text.count("/") > MOST_LEVELS or len(text) > MOST_PATH_CHARS:
        return None
    return text if text.startswith("~") or PurePath(text).is_absolute() else None
