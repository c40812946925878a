"""The settings page: effective values and their origins, forms for those that take effect while the server runs, and
what was changed here, each with its undo. Of secrets only whether they are set."""

import json
from itertools import groupby

import msgspec

from serena_central.config.describe import Row, describe
from serena_central.config.model import settings_of
from serena_central.config.settings import LIVE_SETTINGS, ServerSettings
from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import SettingChanged
from serena_central.store.query_results import EventFilter
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.setting_forms import as_text, checked, choices_of
from serena_central.web.responses import NotFound

PATH = "/settings"

CHANGES = 20


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is JSON; `own`: somebody has set it. With `changeable` it has a form, which shows `text`; `choices` are
    of a closed set, `in_file`: the user's file sets it. `refusal` says why a live setting has no form."""

    key: str
    value: str
    origin: str
    description: str
    own: bool
    changeable: bool = False
    text: str = ""
    allowed: str = ""
    choices: list[str] = []
    in_file: bool = False
    refusal: str = ""


class Group(msgspec.Struct, frozen=True):
    """`name` is "" for keys that belong to none; a sorted table is one group of all."""

    name: str
    columns: list[Heading]
    values: list[Value]


class Settings(msgspec.Struct, frozen=True):
    """In the model's order. `problems` are settings without effect, and why; changes are written into `file`."""

    groups: list[Group]
    problems: list[str]
    file: str


class Change(msgspec.Struct, frozen=True):
    """A change made here; `before` and `after` are what the file said, as JSON, "" for nothing."""

    id: int
    at: float
    key: str
    before: str
    after: str


class Changes(msgspec.Struct, frozen=True):
    """The newest first; `note` says why they are missing."""

    changes: list[Change]
    note: str


COLUMNS = Columns[Row](
    {
        "key": Column("Setting", lambda one: one.key),
        "value": Column("Value", lambda one: one.value),
        # What somebody has set comes first.
        "from": Column("From", lambda one: (one.origin == "default", one.origin), "origin"),
    },
    keeps=(),
)


async def settings(visit: Visit) -> Settings:
    loaded = visit.parts.loaded
    rows = describe(loaded)
    if "sort" in visit.query:
        named = [("All", COLUMNS.arranged(rows, visit))]
    else:
        named = [(name, list(found)) for name, found in groupby(rows, lambda row: row.key.rpartition(".")[0])]
    groups = [
        Group(name, COLUMNS.headings(visit, PATH, of=name), [_value(row, visit) for row in found])
        for name, found in named
    ]
    problems = [str(problem) for problem in loaded.problems] + await visit.parts.live_settings.not_in_force()
    return Settings(groups, problems, str(loaded.own_file or ""))


def _value(row: Row, visit: Visit) -> Value:
    own = row.origin != "default"
    if row.key not in LIVE_SETTINGS:
        return Value(key=row.key, value=row.value, origin=row.origin, description=row.description, own=own)
    setting, file = settings_of(ServerSettings)[row.key], str(visit.parts.loaded.own_file)
    refusal = visit.parts.live_settings.refusal(row.key)
    return Value(
        key=row.key,
        value=row.value,
        origin=row.origin,
        description=row.description,
        own=own,
        changeable=not refusal,
        text=as_text(json.loads(row.value)) if row.value != "null" else "",
        allowed=setting.allowed,
        choices=choices_of(setting),
        in_file=any(one.name == file for one in visit.parts.loaded.origins.get(row.key, ())),
        refusal=refusal,
    )


async def changes(visit: Visit) -> Changes:
    wanted = EventFilter(kind=SettingChanged.kind, limit=CHANGES)
    try:
        found = await visit.parts.store.ask(lambda queries: queries.events(wanted))
    except StoreError as error:
        return Changes([], f"Earlier changes are not available: {error}")
    return Changes(
        [
            Change(one.id or 0, one.at, one.message, one.data.get("before") or "", one.data.get("after") or "")
            for one in found.events
        ],
        "",
    )


# --- actions ----------------------------------------------------------------------------------------------------------


async def _change(visit: Visit, form: Form) -> str:
    """Writes a value that is allowed; with `reset` removes it from the file."""
    key = _key(form)
    value = None if one_value(form, "reset") else checked(settings_of(ServerSettings)[key], one_value(form, "value"))
    if not await visit.parts.live_settings.change(key, value):
        return f"{key} has that value already."
    return (
        f"{key} was {'reset' if value is None else 'changed'} in {visit.parts.loaded.own_file}, and takes effect now."
    )


async def _undo(visit: Visit, form: Form) -> str:
    """Restores what the file said before a change, unless it says something else now."""
    key, before, after = _key(form), one_value(form, "before"), one_value(form, "after")
    value = _plain(before) if before else None
    if value is not None:
        checked(settings_of(ServerSettings)[key], as_text(value))  # what is written is what the file said
    await visit.parts.live_settings.change(key, value, was=after or None, undo=True)
    return f"{key} was restored in {visit.parts.loaded.own_file}."


def _plain(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _key(form: Form) -> str:
    key = one_value(form, "key")
    if key not in LIVE_SETTINGS:
        raise NotFound(f"The setting {key!r} can't be changed here.")
    return key


ACTIONS: dict[str, Action] = {"/settings/change": _change, "/settings/undo": _undo}

PAGE = Page(
    path=PATH,
    title="Settings",
    template="settings.html",
    sections={
        "settings": Section("settings/_settings.html", settings),
        "changes": Section("settings/_changes.html", changes, recorded=True),
    },
    live=False,
)
