"""What is kept of a finished call beyond its counters: arguments, the beginning of its answer, its error, its phases.

Everything is shortened here, on the call's way, by slicing alone; secrets are masked as the row is written, in another
thread. What is shown at once is masked here.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from serena_central.core.errors import SerenaCentralError
from serena_central.core.masking import masked
from serena_central.core.quoting import escaped
from serena_central.core.tracing import Phases
from serena_central.sessions.session import MESSAGE_CHARS
from serena_central.store.rows import CallDetailRow
from serena_central.tools.answer import Answer

ARGUMENTS = 30
VALUE_CHARS = 300
LIST_ITEMS = 20
DEPTH = 3
NAME_CHARS = 60
ARGUMENTS_CHARS = 3000
"""Bounds of what is kept of arguments: their number, the length of one text, and of all together."""

ANSWER_CHARS = 600
ANSWER_LINES = 12

ERROR_CHARS = 2000
NOTES = 10
NOTE_CHARS = 300

ABOUT_CHARS = 100

MAIN_ARGUMENTS = (
    "name_path", "name_path_pattern", "relative_path", "substring_pattern", "needle", "command", "memory_name", "query",
    "file_mask", "project", "old_name", "path",
)  # fmt: skip
"""The argument that says what a call is about: the first of these that it has."""


def main_argument(arguments: Mapping[str, Any]) -> str:
    """What a call is about, in a few words, and not masked; empty if no argument says it."""
    for name in MAIN_ARGUMENTS:
        value = arguments.get(name)
        if value and isinstance(value, str):
            return value[:ABOUT_CHARS]
    return ""


def message_of(failure: BaseException) -> str:
    """How a failed call's error begins, on one line and without secrets."""
    text = _error_text(failure)
    return escaped(masked(text[: 2 * MESSAGE_CHARS])[:MESSAGE_CHARS])


def detail_row(
    call: str,
    at: float,
    arguments: Mapping[str, Any],
    *,
    answer: Answer | None,
    notes: Sequence[str],
    failure: BaseException | None,
    phases: Phases,
    duration_ms: float,
    roots: Iterable[str],
) -> CallDetailRow:
    """What the store keeps of a call that ended at `at` (Unix seconds)."""
    spent = {name: round(seconds * 1000, 3) for name, seconds in phases.spent_s.items()}
    other = max(duration_ms - 1000 * phases.together_s, 0.0)
    return CallDetailRow(
        id=call,
        at=at,
        arguments=shortened_arguments(arguments),
        answer=_beginning(answer.blocks[0]) if answer is not None and answer.blocks else "",
        error=_error_text(failure)[:ERROR_CHARS] if failure is not None else "",
        notes=[note[:NOTE_CHARS] for note in islice(notes, NOTES)],
        phases_ms={**spent, "other": round(other, 3)},
        servers=sorted(phases.servers),
        roots=list(islice(roots, LIST_ITEMS)),
        shortened=answer is not None and answer.shortened,
    )


def shortened_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as their caller gave them, each cut where it is long."""
    kept: dict[str, Any] = {}
    left = ARGUMENTS_CHARS
    for name, value in islice(arguments.items(), ARGUMENTS):
        short = _shortened(value, min(VALUE_CHARS, max(left, 0)), 0)
        left -= len(short) if isinstance(short, str) else 20
        kept[name[:NAME_CHARS]] = short
    if len(arguments) > ARGUMENTS:
        kept["…"] = f"{len(arguments) - ARGUMENTS} more arguments"
    return kept


def _shortened(value: Any, chars: int, depth: int) -> Any:
    match value:
        case str():
            return value if len(value) <= chars else f"{value[:chars]}… ({len(value):,} characters)"
        case bool() | int() | float() | None:
            return value if not isinstance(value, int) or value.bit_length() < 64 else str(value)[:chars]
        case Mapping() if depth < DEPTH:
            members = cast("Mapping[str, Any]", value)
            return {
                str(name)[:NAME_CHARS]: _shortened(part, chars, depth + 1)
                for name, part in islice(members.items(), LIST_ITEMS)
            }
        case list() if depth < DEPTH:
            items = cast("list[Any]", value)
            more = [f"… ({len(items):,} items)"] if len(items) > LIST_ITEMS else []
            return [*(_shortened(item, chars, depth + 1) for item in items[:LIST_ITEMS]), *more]
        case _:
            return "…"


def _beginning(text: str) -> str:
    return "\n".join(text[:ANSWER_CHARS].split("\n", ANSWER_LINES)[:ANSWER_LINES])


def _error_text(failure: BaseException) -> str:
    return str(failure) if isinstance(failure, SerenaCentralError) else f"{type(failure).__name__}: {failure}"
