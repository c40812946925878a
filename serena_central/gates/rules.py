"""The hooks that hold in a root, in the order in which they run: of all tiers, as far as they may run.

What a repository brings runs only while a person trusts it, and only as it was approved: its hooks are compared with
the approved texts, and not with what is on the disk by now. A repository can switch off its own hooks, and no others.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from serena_central.claude_config.checks import EVENTS, timeout_ms
from serena_central.claude_config.document import as_list, as_object
from serena_central.claude_config.effective import Effective
from serena_central.claude_config.merge import canonical
from serena_central.claude_config.problems import KeyPath, Place
from serena_central.claude_config.reading import Settings
from serena_central.claude_config.tiers import Tier
from serena_central.clients.hooks import runs_ours
from serena_central.gates.matching import Matcher, matcher_of
from serena_central.projects.trust.trust_decisions import Standing, State

DEFAULT_TIMEOUT_S = 60.0
"""Of a hook that names none."""

RUN_HERE = ("command", "http", "check")
"""Types of hooks that run here; the others are Claude Code's own."""


class Hook(NamedTuple):
    """One hook. `action` is the command line, the URL or the check's name; `arguments` the words of a command that runs
    without a shell. `base` is the folder that relative paths in its rules start from."""

    event: str
    kind: str
    action: str
    matcher: str
    matches: Matcher
    condition: str
    timeout_s: float
    background: bool
    tier: Tier
    place: Place
    base: Path
    given: Mapping[str, Any]
    """All that its file says of it."""
    arguments: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Where it stands: what identifies it to people."""
        return str(self.place)

    @property
    def once(self) -> bool:
        """Whether a session runs it until it has passed, and not again."""
        return self.given.get("once") is True


class Rules(NamedTuple):
    """The hooks of a root by event. `held_back` counts those of a repository that nobody trusts."""

    by_event: Mapping[str, tuple[Hook, ...]]
    held_back: int = 0

    @property
    def checks(self) -> frozenset[str]:
        """The built-in checks that any hook names."""
        return frozenset(hook.action for hooks in self.by_event.values() for hook in hooks if hook.kind == "check")

    def of(self, event: str) -> tuple[Hook, ...]:
        return self.by_event.get(event, ())


def rules_of(found: Effective, standing: Standing | None) -> Rules:
    """`standing` is the root's, as of now; None for all hooks, whoever trusts them."""
    by_event: dict[str, list[Hook]] = {}
    held_back = 0
    seen: set[str] = set()
    approved = _approved(standing) if standing is not None else None
    for one in found.files:
        if one.file.rules_only or _switched_off(found, one.file.tier):
            continue
        for event, matcher, hook in _hooks_in(one.value):
            form = canonical([event, matcher, hook])
            if event not in EVENTS or hook["type"] not in RUN_HERE or form in seen or _is_for_its_client(hook):
                continue
            may_run = standing is None or one.file.tier.trusted or standing.trusted
            if not may_run or not (one.file.tier.trusted or approved is None or form in approved):
                held_back += 1
                continue
            seen.add(form)
            by_event.setdefault(event, []).append(_hook(found, one, event, matcher, hook))
    return Rules({event: tuple(hooks) for event, hooks in by_event.items()}, held_back)


def _hook(found: Effective, file: Settings, event: str, matcher: str, given: Mapping[str, Any]) -> Hook:
    kind = str(given["type"])
    words = as_list(given.get("args")) if kind == "command" else None
    return Hook(
        event=event,
        kind=kind,
        action=str(given["url" if kind == "http" else kind]),
        matcher=matcher,
        matches=matcher_of(matcher, file.file.base, found.locations.home),
        condition=str(given.get("if") or ""),
        timeout_s=timeout_ms(given, round(DEFAULT_TIMEOUT_S * 1000)) / 1000,
        background=given.get("async") is True or given.get("asyncRewake") is True,
        tier=file.file.tier,
        place=_place(file, event, matcher, given),
        base=file.file.base,
        given=given,
        arguments=tuple(map(str, words)) if words is not None else None,
    )


def _hooks_in(value: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Event, matcher and hook, in their order."""
    for event, groups in (as_object(value.get("hooks")) or {}).items():
        for group in as_list(groups) or ():
            held = as_object(group) or {}
            for hook in as_list(held.get("hooks")) or ():
                if (one := as_object(hook)) is not None and isinstance(one.get("type"), str):
                    yield event, str(held.get("matcher") or ""), one


def _is_for_its_client(hook: Mapping[str, Any]) -> bool:
    """Whether it is one that `hook install` wrote: it tells this server what its client does, and here would only
    report the server's own sessions and calls to itself."""
    return hook["type"] == "command" and runs_ours(str(hook.get("command")))


def _approved(standing: Standing) -> frozenset[str] | None:
    """What a person approved of a repository's hooks; None where all of it is trusted, whatever it is."""
    if standing.state is not State.APPROVED or standing.approval is None:
        return None
    texts = (part.text for part in standing.approval.parts if part.source == "claude")
    return frozenset(canonical([event, matcher, hook]) for text in texts for event, matcher, hook in _of_text(text))


def _of_text(text: str) -> Iterable[tuple[str, str, dict[str, Any]]]:
    return _hooks_in(cast("dict[str, Any]", json.loads(text)))


def _switched_off(found: Effective, tier: Tier) -> bool:
    """Whether the settings switch off the hooks of a tier. No tier switches off those of a stronger authority."""
    if tier is Tier.ENTERPRISE:
        return _says(found, (Tier.ENTERPRISE,), "disableAllHooks")
    if _says(found, (Tier.ENTERPRISE,), "allowManagedHooksOnly"):
        return True
    may = (Tier.ENTERPRISE, Tier.USER) if tier is Tier.USER else tuple(Tier)
    return _says(found, may, "disableAllHooks")


def _says(found: Effective, tiers: tuple[Tier, ...], key: str) -> bool:
    return any(one.value.get(key) is True for one in found.files if one.file.tier in tiers and not one.file.rules_only)


def _place(file: Settings, event: str, matcher: str, hook: Mapping[str, Any]) -> Place:
    """Where a hook stands in its file; its event, where it was changed when it was read."""
    path: KeyPath = ("hooks", event)
    wanted = canonical(hook)
    written = as_object((as_object(file.document.value) or {}).get("hooks")) or {}
    for place, group in enumerate(as_list(written.get(event)) or ()):
        held = as_object(group) or {}
        if str(held.get("matcher") or "") != matcher:
            continue
        for inner, one in enumerate(as_list(held.get("hooks")) or ()):
            if canonical(one) == wanted:
                return file.document.place((*path, place, "hooks", inner))
    return file.document.place(path)
