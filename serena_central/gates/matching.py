"""Decides which hooks an event concerns: matchers, as the format writes them, against what a tool is about to do.

A matcher is a name, names (`Edit|Write`), a glob or a regular expression of names, or a rule with an argument
(`Bash(git commit:*)`, `Edit(src/**)`), which is compared with every command of a line, or with every file. Where it
can't be told whether a rule matches (a variable stands for the program, a file is not known), it does: a gate that is
passed in doubt is none. Pure.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from serena_central.claude_config.command_lines import Spoken, commands_of
from serena_central.claude_config.permissions import command_fits, path_pattern, server_rule_fits
from serena_central.claude_config.rules import EDITS, READS, RUNS, BadRule, Effect, Rule, parse_rule
from serena_central.core.errors import ConfigError
from serena_central.core.patterns import BoundedMatcher

ONCE: tuple[str, ...] = ("",)
"""A hook runs once, for no file in particular."""

_NAMES = re.compile(r"[\w|, *-]*")
_SEPARATORS = re.compile(r"[|,]")


class ToolUse:
    """What a tool is about to do, or did. `names`: all that a matcher may call it, the caller's own name first.
    `files` are absolute paths of those that it changes or reads, as far as they are known."""

    def __init__(
        self,
        names: Sequence[str],
        effect: Effect,
        arguments: Mapping[str, Any],
        *,
        command: str | None = None,
        files: Sequence[str] = (),
    ) -> None:
        self.names = tuple(names)
        self.effect: Effect = effect
        self.arguments = arguments
        self.command = command
        self.files = tuple(files)

    @property
    def name(self) -> str:
        return self.names[0]

    @cached_property
    def commands(self) -> list[Spoken]:
        """Every command of its command line."""
        return commands_of(self.command or "")


Matcher = Callable[[Sequence[str], ToolUse | None], Sequence[str]]
"""From the names of what happens, and the tool's use if it is one: the files for which a hook runs, `ONCE`, or none
where it doesn't match."""


def matcher_of(text: str, base: Path, home: Path) -> Matcher:
    """The matcher that a text describes; one that can't be understood matches everything.

    `base` is the folder that relative paths start from.
    """
    wanted = text.strip()
    if wanted in ("", "*"):
        return lambda _names, use: _each(use)
    if is_rule(wanted):
        try:
            return rule_matcher(parse_rule(wanted), base, home)
        except BadRule:
            return lambda _names, use: _each(use)
    if _NAMES.fullmatch(wanted):
        globs = [one.strip() for one in _SEPARATORS.split(wanted) if one.strip()]
        return lambda names, use: _each(use) if any(_any_fits(one, names) for one in globs) else ()
    try:
        pattern = BoundedMatcher("hooks", wanted)
    except ConfigError:
        return lambda _names, use: _each(use)

    def fits(names: Sequence[str], use: ToolUse | None) -> Sequence[str]:
        # One that takes too long is in doubt, and so it matches.
        return _each(use) if any(pattern.search(name) for name in names) or pattern.trouble else ()

    return fits


def is_rule(text: str) -> bool:
    """Whether a matcher or condition is a rule with an argument."""
    return text[:1].isalpha() and text.endswith(")") and "(" in text and "|" not in text.partition("(")[0]


def rule_matcher(rule: Rule, base: Path, home: Path) -> Matcher:
    """A rule in permission syntax as a matcher."""
    if rule.argument is None:
        return lambda names, use: _each(use) if _any_fits(rule.tool, names) else ()
    if rule.tool in RUNS:
        return lambda _names, use: ONCE if use is not None and _runs(rule, use) else ()
    if rule.tool in EDITS or rule.tool in READS:
        pattern = path_pattern(rule, base, home)
        return lambda names, use: _files(rule, pattern, names, use)
    return lambda names, use: _each(use) if any(server_rule_fits(rule.tool, name) for name in names) else ()


def may_match(matcher: str, matches: Matcher, use: ToolUse) -> bool:
    """Whether a matcher may fit a tool, whatever that is called with."""
    wanted = matcher.strip()
    if not is_rule(wanted):
        return bool(matches(use.names, use))
    try:
        rule = parse_rule(wanted)
    except BadRule:
        return True
    if rule.tool in RUNS:
        return use.effect == "run"
    if rule.tool in EDITS or rule.tool in READS:
        return rule.tool in use.names
    return bool(matches(use.names, use))


def _each(use: ToolUse | None) -> Sequence[str]:
    """Every file that is edited or read, each by itself."""
    return use.files if use is not None and use.files else ONCE


def _runs(rule: Rule, use: ToolUse) -> bool:
    return use.effect == "run" and command_fits(rule, use.commands)


def _files(rule: Rule, pattern: re.Pattern[str], names: Sequence[str], use: ToolUse | None) -> Sequence[str]:
    if use is None or rule.tool not in names:
        return ()
    if not use.files:
        return ONCE
    return [file for file in use.files if pattern.fullmatch(file)]


def _any_fits(glob: str, names: Sequence[str]) -> bool:
    return glob in names or ("*" in glob and any(fnmatchcase(name, glob) for name in names))
