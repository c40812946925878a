"""All names of an index as a few long texts, so that a search for part of a name is a scan of memory."""

from collections.abc import Iterable, Iterator

NAMES_PER_TEXT = 20_000
"""Joined at once: a millisecond. Names that are not joined yet are looked through one by one."""

_END = "\0"


class NameText:
    """Names are added and never removed: callers know which still exist. In the event loop's thread."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._new: list[str] = []

    def __len__(self) -> int:
        """Names that were added, some perhaps several times."""
        return len(self._texts) * NAMES_PER_TEXT + len(self._new)

    def add(self, names: Iterable[str]) -> None:
        self._new.extend(names)
        while len(self._new) >= NAMES_PER_TEXT:
            self._texts.append(_END.join([*self._new[:NAMES_PER_TEXT], ""]))
            del self._new[:NAMES_PER_TEXT]

    def __iter__(self) -> Iterator[str]:
        """Names in the order in which they came."""
        for text in self._texts:
            yield from text.split(_END)[:-1]
        yield from self._new

    def containing(self, part: str) -> Iterator[str]:
        """Names that a part occurs in, of those that were there when it began; some perhaps several times."""
        if _END in part:
            return
        texts, new = list(self._texts), list(self._new)
        for text in texts:
            at = text.find(part)
            while at >= 0:
                start, end = text.rfind(_END, 0, at) + 1, text.find(_END, at)
                yield text[start:end]
                at = text.find(part, end)
        yield from (name for name in new if part in name)
