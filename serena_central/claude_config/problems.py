"""Problems in configuration files: each with its place, the allowed values and how to fix it.

Messages quote keys and short values of files that a repository may bring, on one line each; never a resolved variable.
"""

from enum import StrEnum
from typing import NamedTuple

from serena_central.core.quoting import escaped

SHOWN = 80
"""Characters of a value that a message quotes."""


class Severity(StrEnum):
    ERROR = "error"
    """Something that was written has no effect."""
    WARNING = "warning"
    """It has an effect that may not be meant."""
    NOTE = "note"
    """It has no effect here, or other readers take it otherwise."""


class Place(NamedTuple):
    """A place in a file. `line` and `column` are 1-based, 0 where the file is meant as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Problem(NamedTuple):
    """One problem. `key` is the path to it (`hooks.PreToolUse[0].matcher`), empty for the whole file."""

    severity: Severity
    place: Place
    key: str
    text: str
    """What is wrong, a clause without its end."""
    remedy: str = ""
    """What is allowed or how to fix it, as a clause."""

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return escaped(f"{self.place}: {self.severity}: {key}{self.text}{remedy}")


KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """`("hooks", "Stop", 0)` → `hooks.Stop[0]`; a key that holds other characters than a name's is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").replace("-", "").isalnum() and part.isascii():
            text += f".{part}" if text else part
        else:
            text += f"[{brief(part)}]"
    return text


def brief(value: object) -> str:
    """A value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
