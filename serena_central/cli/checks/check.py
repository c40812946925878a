"""The result of one check of the doctor."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from serena_central.cli.exits import reason_of

State = Literal["ok", "info", "warning", "failed"]


class Check(NamedTuple):
    """One line of the report. `advice` says what to do about a warning or a failure."""

    name: str
    state: State
    says: str
    advice: str = ""


def ok(name: str, says: str) -> Check:
    return Check(name, "ok", says)


def info(name: str, says: str) -> Check:
    return Check(name, "info", says)


def warning(name: str, says: str, advice: str) -> Check:
    return Check(name, "warning", says, advice)


def failed(name: str, says: str, advice: str) -> Check:
    return Check(name, "failed", says, advice)


def finished(checks: Iterable[Check]) -> Iterator[Check]:
    """The checks, and as one of them what they could not look at: a machine that is broken is what they are for."""
    try:
        yield from checks
    except OSError as error:
        yield failed(
            "checks",
            f"{reason_of(error)}; what comes after it was not checked",
            "check owner and permissions, then run the doctor again",
        )
