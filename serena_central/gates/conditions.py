"""The `if` of a hook: rules in permission syntax, and conditions that only this server can decide.

Several are joined by ` and `. One that can't be understood holds: a gate that is passed in doubt is none.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from serena_central.claude_config.rules import BadRule, parse_rule
from serena_central.gates.engine import Asked
from serena_central.gates.matching import ToolUse, rule_matcher

logger = logging.getLogger(__name__)

PATH = "path("


EDITED_BY_OTHERS = "edited-by-other-session"
SYMBOL = "symbol("

Decide = Callable[[Asked, str], Awaitable[bool]]
"""Whether a condition holds that only the server can decide."""


async def holds(asked: Asked, *, home: Path, decide: Decide) -> bool:
    """Whether all conditions of a hook hold for what it is about to be run for."""
    for one in parts_of(asked.hook.condition):
        condition = one.strip()
        if condition == EDITED_BY_OTHERS or condition.startswith(SYMBOL):
            if not await decide(asked, condition):
                return False
        elif not _holds(asked, condition, home):
            return False
    return True


def parts_of(condition: str) -> Sequence[str]:
    return condition.split(" and ")


def _holds(asked: Asked, condition: str, home: Path) -> bool:
    use = _of_file(asked)
    if condition.startswith(PATH) and condition.endswith(")"):
        if use is None or use.effect not in ("read", "edit"):
            return False
        if not use.files:
            return True  # which files it concerns is not known
        condition, names = f"Read({condition.removeprefix(PATH)}", ("Read",)
    else:
        names = asked.event.names
    try:
        rule = parse_rule(condition)
    except BadRule as error:
        logger.warning("%s: the condition %r is taken as true: %s", asked.hook.name, condition, error)
        return True
    return bool(rule_matcher(rule, asked.hook.base, home)(names, use))


def _of_file(asked: Asked) -> ToolUse | None:
    """The tool's use as it concerns one file."""
    use = asked.event.use
    if use is None or not asked.file:
        return use
    return ToolUse(use.names, use.effect, use.arguments, command=use.command, files=[asked.file])
