"""A request to a model as a transcript records it: who asked, which tokens it took, which tools the answer called.

The transcripts of all clients are read into these. Input tokens never include cached ones here, and output tokens
include reasoning: what differs between providers ends in `native/`.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import msgspec

Tokens = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
"""A count as a transcript may have it. What is beyond can only be damage, and would overflow sums."""

Dollars = Annotated[float, msgspec.Meta(ge=0, le=10**6)]

EARLIEST_MS, LATEST_MS = 86_400_000, 253_402_128_000_000
"""From 1970-01-02 to 9999-12-30: times whose day exists in every time zone."""


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """Where a request came from. `project` is an absolute path where the transcript tells one; `agent` is empty for the
    main conversation."""

    client: str
    project: str
    session: str
    agent: str
    model: str


class Request(msgspec.Struct, kw_only=True, gc=False, array_like=True):
    """One request. `key` identifies it over all files; `at` is Unix time in milliseconds; counts are tokens.

    `stated_cost` is what the client itself has noted, in dollars. `tools` maps the id of each tool call of the answer
    to the tool's name."""

    key: int
    at: int
    origin: Origin
    input: int = 0
    output: int = 0
    write_5m: int = 0
    write_1h: int = 0
    read: int = 0
    searches: int = 0
    fast: bool = False
    sidechain: bool = False
    stated_cost: float | None = None
    tools: dict[int, str] = {}

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.write_5m + self.write_1h + self.read

    @property
    def written(self) -> tuple[int, int]:
        """What of two rows of a request has the true counts of cache writes: the most in all, then the most for an
        hour, since a row that tells no times counts as five minutes."""
        return self.write_5m + self.write_1h, self.write_1h


class Failure(msgspec.Struct, frozen=True):
    """A tool call that failed; `tool` is its id as in `Request.tools`."""

    tool: int


class Dropped(msgspec.Struct, frozen=True):
    """A line that counts for nothing, and why. `offset` is that of its first byte."""

    offset: int
    reason: str
    what: str = ""


Found = Request | Failure
Drop = Callable[[Dropped], None]
"""Called with each line that is left out."""

MALFORMED = "not valid JSON"
UNKNOWN = "a form that this version does not know"
NO_TIME = "the timestamp is missing or not valid"
NO_TOKENS = "no tokens"
TOO_LONG = "longer than the limit"
REPEATED = "repeats a request that is counted already"


def key_of(*parts: str | None) -> int:
    """64 bits that identify what `parts` name, as SQLite numbers its rows: that two of ten
    million requests have the same is as likely as 1 to 370,000."""
    content = "\0".join([part or "" for part in parts])
    digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], signed=True)


def milliseconds(text: str) -> int | None:
    """Unix time of an ISO 8601 timestamp, None if it is none, or of no year that a calendar has. Without a zone it is
    UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    try:
        found = round(at.timestamp() * 1000)
    except (OverflowError, OSError, ValueError):
        return None
    return found if EARLIEST_MS <= found <= LATEST_MS else None
