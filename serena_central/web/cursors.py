"""Cursors of lists: where a page ended, by the sort key of its last entry, so that pages fit together while entries
come and go. Opaque to callers; one that is not of its list is refused.
"""

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request

from serena_central.core.decoding import from_json
from serena_central.core.errors import InvalidArguments
from serena_central.web.query import CURSOR, limit_in

T = TypeVar("T")

MOST_CHARS = 20_000
"""Of a cursor: a key may hold a path."""


class Cursors(NamedTuple):
    """Those of one list; `key` is the type of its sort key, a tuple."""

    name: str
    key: Any

    def read(self, request: Request) -> Any:
        """The key behind which a page begins; None for the first page.

        Raises:
            InvalidArguments
        """
        text = request.query_params.get(CURSOR.name)
        if text is None:
            return None
        try:
            if len(text) > MOST_CHARS:
                raise ValueError("too long")
            decoded = base64.urlsafe_b64decode(text.encode("ascii"))
            name, key = from_json(decoded, tuple[str, self.key])
            if name != self.name or self.write(key) != text:
                raise ValueError("of another list, or not in the form that is sent")
        except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError) as error:
            raise InvalidArguments(
                f"cursor is not one of this list. Pass next_cursor of an answer about {self.name}, or leave it out."
            ) from error
        return key

    def write(self, key: tuple[Any, ...]) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode((self.name, key))).decode("ascii")

    def page(
        self, request: Request, entries: Iterable[T], key: Callable[[T], tuple[Any, ...]]
    ) -> tuple[list[T], str | None]:
        """The page that is asked for, in the order of the keys, and the cursor of the next."""
        start, limit = self.read(request), limit_in(request)
        left = sorted((one for one in entries if start is None or key(one) > start), key=key)
        page = left[:limit]
        return page, self.write(key(page[-1])) if page and len(left) > limit else None
