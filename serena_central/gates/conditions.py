"""The `if` of a hook: rules in permission syntax, and conditions that only this server can decide.

Several are joined by ` and `. One that can't be understood holds: a gate that is passed in doubt is none.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from serena_central.claude_config.rules import BadRule, parse_rule
from serena_central.gates.engine import Asked
from serena_central.gates.matching import ToolUse, rule_matcher

logger = logging.getLogger(__name__)

PATH = "path("


async def holds(asked: Asked, *, home: Path) -> bool:
    """Whether all conditions of a hook hold for what it is about to be run for."""
    return all([await _holds(asked, one.strip(), home) for one in parts_of(asked.hook.condition)])


def parts_of(condition: str) -> Sequence[str]:
    return condition.split(" and ")


async def _holds(asked: Asked, condition: str, home: Path) -> bool:
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
