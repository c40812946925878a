"""A search, by whatever program or tool: the data that the rest of this package works with."""

import re
import warnings
from typing import NamedTuple


class Search(NamedTuple):
    """What is looked for, and where."""

    pattern: str
    """A regular expression of the kind that Python and ripgrep have; of a search by name, a glob."""
    by_name: bool = False
    """Whether files are looked for by their name, and not by what they hold."""
    paths: tuple[str, ...] = ()
    """Files and folders, as given; none for the folder that the search is made in."""
    globs: tuple[str, ...] = ()
    """Only files whose names fit one of these, such as `*.py`."""
    folder: str = ""
    """Where relative paths begin, if that is not where the client works."""
    no_case: bool = False


def compiled(pattern: str) -> re.Pattern[str] | None:
    """A pattern as Python reads it, without a word of what later versions may read otherwise; None where only other
    programs understand it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
