"""Hooks in a client's configuration: lists of commands by event, of which only ours are put in, renewed or taken out.

As a form, so that planning, backups and undoing are those of every other change. What such a file says is shown in two
parts: `ours`, event → our groups, and `rest`, all else.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from serena_central.clients.client import Machine
from serena_central.clients.forms import Entry, Keys, Malformed, Value, members_of
from serena_central.clients.json_form import JsonForm

OURS: Keys = ("ours",)

_RUNS_OURS = re.compile(r"""(?:^|[\s/\\"'])serena-hook(?:\.exe)?(?:["'\s]|$)|-m serena_central\.hook(?:\s|$)""")

Command = Callable[[str], str]
"""From what a hook is to do ("enforce", "session-start", "session-end") to the command line that does it."""


class HooksForm:
    """JSON whose member `hooks` maps events to lists. `always` must stand at the top of the file, too."""

    def __init__(self, base: JsonForm, always: Mapping[str, Value] | None = None) -> None:
        self._base = base
        self._always = dict(always or {})

    def read(self, text: str) -> dict[str, Value]:
        said = self._base.read(text)
        ours: dict[str, list[Value]] = {}
        others: dict[str, Value] = {}
        for event, groups in members_of(said.get("hooks")).items():
            mine, theirs = _parted(groups)
            if mine:
                ours[event] = mine
            if theirs != []:  # an empty list says what none says
                others[event] = theirs
        rest = {key: value for key, value in said.items() if key != "hooks" and self._always.get(key) != value}
        kept = [others] if others or not isinstance(said.get("hooks", {}), dict) else []
        return {"rest": {**rest, "hooks": kept}, **({"ours": ours} if ours else {})}

    def put(self, text: str, keys: Keys, entry: Entry) -> str:
        """`entry` maps event → our groups; `keys` are always `OURS`. Ours are renewed where they stand."""
        del keys
        said = self._base.read(text)
        hooks = members_of(said.get("hooks"))
        self._check_hidden(text, hooks)
        for key, value in self._always.items():
            if key not in said:
                text = self._base.put(text, (key,), value)
        for event in [event for event in hooks if event not in entry]:
            text = self._take_from(text, event)
        for event, groups in entry.items():
            there = hooks.get(event, [])
            if not isinstance(there, list):
                raise Malformed(1, f"hooks.{event} is not a list, so nothing can be added to it")
            whole = [place for place, group in enumerate(cast("list[Value]", there)) if _is_all_ours(group)]
            if len(whole) == len(groups) == len(_parted(there)[0]):
                for place, group in zip(whole, groups, strict=True):
                    text = self._base.put(text, ("hooks", event, place), group)
                continue
            text = self._take_from(text, event, keep_list=True)
            for group in groups:
                text = self._base.append(text, ("hooks", event), group)
        return text

    def take(self, text: str, keys: Keys) -> str:
        del keys
        hooks = members_of(self._base.read(text).get("hooks"))
        self._check_hidden(text, hooks)
        for event in hooks:
            text = self._take_from(text, event)
        if hooks and not members_of(self._base.read(text).get("hooks")):
            text = self._base.take(text, ("hooks",))
        return text

    def _check_hidden(self, text: str, hooks: Mapping[str, Value]) -> None:
        """Hooks that a second list of the same name hides run in no client, and would go with what hides them.

        Raises:
            Malformed
        """
        for keys in (("hooks",), *(("hooks", event) for event in hooks)):
            if (line := self._base.hidden(text, keys)) is not None:
                raise Malformed(line, f"{'.'.join(keys)} is there twice, and only the last one counts")

    def _take_from(self, text: str, event: str, *, keep_list: bool = False) -> str:
        """Without our hooks in one event's list, and without the list if nothing else was in it."""
        there = members_of(self._base.read(text).get("hooks")).get(event)
        ours, others = _parted(there)
        if not ours:
            return text
        if others == [] and not keep_list:
            return self._base.take(text, ("hooks", event))
        # From the last to the first: indexes of what is still to go stay as they are.
        for place, group in reversed(list(enumerate(cast("list[Value]", there)))):
            if _is_all_ours(group):
                text = self._base.take(text, ("hooks", event, place))
                continue
            inner = members_of(group).get("hooks")
            for index, hook in reversed(list(enumerate(cast("list[Value]", inner) if isinstance(inner, list) else []))):
                if _is_ours(hook):
                    text = self._base.take(text, ("hooks", event, place, "hooks", index))
        return text


def _parted(groups: Value) -> tuple[list[Value], Value]:
    """Our groups, and what is left without them."""
    if not isinstance(groups, list):
        return [], groups
    ours: list[Value] = []
    others: list[Value] = []
    for group in cast("list[Value]", groups):
        inner = members_of(group).get("hooks")
        if not isinstance(inner, list):
            (ours if _is_ours(group) else others).append(group)
            continue
        hooks = cast("list[Value]", inner)
        theirs = [hook for hook in hooks if not _is_ours(hook)]
        if len(theirs) < len(hooks):
            ours.append({**members_of(group), "hooks": [hook for hook in hooks if _is_ours(hook)]})
        if theirs or not hooks:
            others.append({**members_of(group), "hooks": theirs})
    return ours, others


def _is_all_ours(group: Value) -> bool:
    """Whether nothing of a group is left without our hooks."""
    return _parted([group])[1] == []


def _is_ours(hook: Value) -> bool:
    command = members_of(hook).get("command")
    return isinstance(command, str) and runs_ours(command)


def runs_ours(command: str) -> bool:
    """Whether a command line runs `serena-hook`."""
    return _RUNS_OURS.search(command) is not None


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where and how one client takes hooks."""

    user_file: Callable[[Machine], Path]
    project_file: str
    """Relative to the project's root."""
    form: HooksForm
    entry: Callable[[Command], Entry]
    """Event → groups of ours."""
    gates: Callable[[Command], Entry] | None = None
    """The same for hooks that have the server run those of the settings."""
    can_ask: bool = False
    """Whether a hook may leave the decision to the client's user."""
    then: str = "They take effect at its next start."


def joined(first: Entry, second: Entry) -> Entry:
    """Groups of both by event."""
    events = dict.fromkeys((*first, *second))
    return {
        event: [*cast("list[Value]", first.get(event, [])), *cast("list[Value]", second.get(event, []))]
        for event in events
    }


def gate(event: str) -> str:
    """What a hook does that has the server run the hooks of an event."""
    return f"gate {event}"


GATE_S = 600
"""How long a client waits for a gate: it may run tests."""


def nested(command: str, *, matcher: str = "", timeout: int) -> list[Value]:
    """A list with one group, as Claude Code made it usual. `timeout` in the client's own unit."""
    hook = {"type": "command", "command": command, "timeout": timeout}
    return [{**({"matcher": matcher} if matcher else {}), "hooks": [hook]}]
