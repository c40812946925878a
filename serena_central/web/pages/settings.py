"""The settings page: effective values and their origins, read-only; of secrets only whether they are set."""

from itertools import groupby

import msgspec

from serena_central.config.describe import Row, describe
from serena_central.web.pages.page import Page, Section, Visit


class Value(msgspec.Struct, frozen=True):
    """`value` is JSON; `own`: somebody has set it."""

    key: str
    value: str
    origin: str
    description: str
    own: bool


class Group(msgspec.Struct, frozen=True):
    """`name` is "" for keys that belong to none."""

    name: str
    values: list[Value]


class Settings(msgspec.Struct, frozen=True):
    """In the model's order. `problems` are settings without effect, and why."""

    groups: list[Group]
    problems: list[str]


async def settings(visit: Visit) -> Settings:
    loaded = visit.parts.loaded
    groups = [
        Group(name, [_value(row) for row in rows])
        for name, rows in groupby(describe(loaded), lambda row: row.key.rpartition(".")[0])
    ]
    return Settings(groups, [str(problem) for problem in loaded.problems])


def _value(row: Row) -> Value:
    return Value(row.key, row.value, row.origin, row.description, row.origin != "default")


PAGE = Page(
    path="/settings",
    title="Settings",
    template="settings.html",
    sections={"settings": Section("settings/_settings.html", settings)},
    live=False,
)
