"""The result of one check of the doctor."""

from typing import Literal, NamedTuple

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
