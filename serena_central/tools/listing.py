"""Lists that may be longer than an answer: a page of items, counts per folder, and a cursor to the next page.

A tool returns a `Listing` and builds only the items that the call's `Page` may show, so that the first page of 100,000
items costs no more than one of 1,000.
"""

import heapq
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from serena_central.core.errors import InvalidArguments
from serena_central.core.quoting import escaped
from serena_central.core.words import counted
from serena_central.tools.answer import Form

FIRST_TRIED = 64

FOLDERS = 12
"""Named with their counts where a list does not fit."""

EXAMPLES = 20
"""Items shown of what fits in no other form."""

_CURSOR = re.compile(r"(?:(.+):)?(\d{1,9})/(\d{1,9})", re.DOTALL)
"""`start/total`, of a grouped answer behind the name of the group and a colon."""


class Page(NamedTuple):
    """Which items of a list a call asks for."""

    start: int = 0
    limit: int | None = None
    total_before: int | None = None
    """How many there were when the cursor was handed out."""
    chars: int = 0
    """The longest answer."""
    group: str = ""
    """Of an answer grouped by project, the name of the group."""

    @property
    def cursor_group(self) -> str:
        """What a cursor of this list begins with."""
        return f"{escaped(self.group)}:" if self.group else ""

    @property
    def is_asked(self) -> bool:
        return self.limit is not None or self.is_continued

    @property
    def is_continued(self) -> bool:
        """Whether a page came before it."""
        return self.total_before is not None

    def window(self, total: int, item_chars: int) -> range:
        """The items that can be shown, of so many of which none is shorter than `item_chars`."""
        most = self.chars // item_chars + 1
        return range(min(self.start, total), min(self.start + min(most, self.limit or most), total))


def page(cursor: str, limit: int | None, chars: int) -> Page:
    """The page that a call's arguments mean.

    Raises:
        InvalidArguments
    """
    if not cursor:
        return Page(limit=limit, chars=chars)
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidArguments(f"cursor {cursor[:40]!r} was not returned by this tool.")
    return Page(int(parts[2]), limit, int(parts[3]), chars, parts[1] or "")


def _nobody(_first: int, _last: int) -> None:
    """The callback for lists that need not record what was shown."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """An answer that is a list. `build` makes the usual form of the items from one index up to another, both within
    `window`. `shorter` are forms of the whole list, tried in turn before a page of it is sent."""

    page: Page
    total: int
    window: range
    """The items that are there to be built, by `Page.window`."""
    noun: str
    """Singular, of one item."""
    build: Callable[[int, int], Any]
    narrow: str
    """The argument that asks for less."""
    per_file: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many of the items lie in which file."""
    plural: str | None = None
    shorter: Sequence[Form] = ()
    brief: Callable[[int, int], Any] | None = None
    """Builds a shorter form of items, for one that is too long for an answer."""
    shown: Callable[[int, int], None] = _nobody
    """Called with the items that the answer shows in their usual form."""

    @property
    def forms(self) -> list[Form]:
        """Those of the whole list that may fit, if that is what the call asks for."""
        if self.page.is_asked:
            return []
        full = Form("", lambda: self.build(0, self.total))
        return [full, *self.shorter] if len(self.window) == self.total else [*self.shorter]

    def fitting(self, room: int, encode: Callable[[Any], str]) -> tuple[str, str, range]:
        """Text of as many items as `room` characters hold, one at least, the sentences that say which, and which."""
        window = self.window
        folders = self._folders() if self.page.start == 0 else ""

        def built(count: int) -> str:
            return encode(self.build(window.start, window.start + count))

        def is_too_long(count: int) -> bool:
            return len(built(count)) + len(self._says(count, folders)) >= room

        high = FIRST_TRIED
        while high < len(window) and not is_too_long(high):
            high *= 2
        fits = bisect_left(range(1, min(high, len(window)) + 1), x=True, key=is_too_long)
        shown = max(fits, min(1, len(window)))
        return built(shown), self._says(shown, folders), window[:shown]

    def _says(self, shown: int, folders: str) -> str:
        end = self.page.start + shown
        is_first = self.page.start == 0 and 0 < len(self.per_file) < self.total
        files = f" in {counted(len(self.per_file), 'file')}" if is_first else ""
        says = f"{counted(self.total, self.noun, self.plural)}{files}{folders}."
        if shown < self.total:
            says += f" Shown: {self.page.start + 1} to {end}." if shown else f" No items after {self.page.start}."
        if end < self.total:
            says += f' cursor="{self.page.cursor_group}{end}/{self.total}" continues. {self.narrow}'
        if self.page.total_before not in (None, self.total):
            says += f" There were {self.page.total_before} on the first page: items may be missing or repeated."
        return says

    def _folders(self) -> str:
        shown, rest = by_folder(self.per_file)
        if len(shown) < 2:
            return ""
        more = f", {rest} in others" if rest else ""
        return f" ({', '.join(f'{folder} {count}' for folder, count in shown)}{more})"


def in_brief(total: int, per_file: Mapping[str, int], first: Sequence[Any]) -> dict[str, Any]:
    """The shortest form of many items that still tells where to look: how many there are, in which folders, and the
    first of them, which are given in their usual form."""
    folders, others = by_folder(per_file)
    counts = {**dict(folders), **({"others": others} if others else {})}
    return {"total": total, "folders": counts, "first": list(first[:EXAMPLES])}


def by_folder(per_file: Mapping[str, int], most: int = FOLDERS) -> tuple[list[tuple[str, int]], int]:
    """Counts of at most `most` folders, the largest first and told apart furthest, and how much lies in others."""
    below: dict[str, Counter[str]] = defaultdict(Counter)
    within = Counter[str]()
    for path, count in per_file.items():
        within[path.rpartition("/")[0]] += count
    for holder, count in within.items():  # a fifth as many as files
        folder = ""
        for part in holder.split("/") if holder else ():
            inner = f"{folder}{part}/"
            below[folder][inner] += count
            folder = inner
        below[folder][folder or "./"] += count
    shown = Counter(below[""])
    largest = [(-count, folder) for folder, count in shown.items()]
    heapq.heapify(largest)
    while largest:
        _, folder = heapq.heappop(largest)
        parts = below.get(folder, Counter())
        if folder == "./" or len(shown) - 1 + len(parts) > most:
            continue
        del shown[folder]
        shown.update(parts)
        for part, count in parts.items():
            if part != folder:  # else its own files
                heapq.heappush(largest, (-count, part))
    first = shown.most_common(most)
    return first, sum(shown.values()) - sum(count for _, count in first)
