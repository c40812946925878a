"""One permission rule: `Tool` or `Tool(argument)`, read and checked. What it matches is `permissions`' business."""

import difflib
import re
from typing import Literal, NamedTuple

from serena_central.claude_config.problems import Severity, brief
from serena_central.files.glob import BadGlob, expand_braces, translate_path

READS = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"})
EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
RUNS = frozenset({"Bash"})

_OTHERS = (
    *("Agent", "AskUserQuestion", "BashOutput", "Cd", "EnterPlanMode", "ExitPlanMode", "KillBash", "KillShell", "LSP"),
    *("Monitor", "PowerShell", "Skill", "SlashCommand", "Task", "TaskOutput", "TodoRead", "TodoWrite", "ToolSearch"),
    *("WebFetch", "WebSearch"),
)
"""Tools of the format that have no counterpart here: rules about them are the client's business."""

KNOWN = frozenset({*READS, *EDITS, *RUNS, *_OTHERS})

SERVER = "mcp__"

Effect = Literal["read", "edit", "run", "server", "other"]
Verdict = Literal["deny", "ask", "allow"]

VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")
"""In the order in which they are looked at: the first that matches decides."""

_RULE = re.compile(r"([A-Za-z][\w-]*(?:[\w*.-]*)?|\*)(?:\((.*)\))?", re.S)

MAX_PATTERN = 1000
MAX_STARS = 8
"""Of `**` in one pattern, so that no pattern of a repository takes long."""

MAX_BRACES = 6
"""Each multiplies the alternatives that a path is compared with."""

SYNTAX = "Tool or Tool(argument), such as Read(./.env), Edit(src/**), Bash(npm run:*), mcp__github__*"


class BadRule(ValueError):
    """A text that is no rule. Its message says what is wrong."""


class Rule(NamedTuple):
    """`tool` as it was written; `argument` is None for a rule about every use of the tool."""

    tool: str
    argument: str | None
    text: str

    @property
    def effect(self) -> Effect:
        """What our tools do that it is about."""
        if self.tool in READS:
            return "read"
        if self.tool in EDITS:
            return "edit"
        if self.tool in RUNS:
            return "run"
        return "server" if self.tool.startswith(SERVER) else "other"


def parse_rule(text: str) -> Rule:
    """Raises BadRule."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise BadRule(_why(text))
    tool, argument = found[1], found[2]
    if argument is not None and not argument.strip():
        raise BadRule("the parentheses are empty")
    if tool == "*":
        raise BadRule("a rule names a tool; * alone is none")
    if "*" in tool and not tool.startswith(SERVER):
        raise BadRule("only names of MCP tools may hold a *")
    if argument is not None and argument.strip() in ("*", "**"):
        argument = None if tool in RUNS or argument.strip() == "**" or tool.startswith(SERVER) else argument
    rule = Rule(tool, argument, text)
    if argument is not None and rule.effect in ("read", "edit"):
        _check_path(argument)
    return rule


def _why(text: str) -> str:
    if not text.strip():
        return "it is empty"
    if text.count("(") and not text.rstrip().endswith(")"):
        return "the closing parenthesis is missing"
    return "it is no rule"


def _check_path(pattern: str) -> None:
    if pattern.startswith("!"):
        raise BadRule("a pattern that begins with ! takes nothing back here")
    if len(pattern) > MAX_PATTERN or pattern.count("**") > MAX_STARS:
        raise BadRule(f"a pattern has {MAX_PATTERN} characters and {MAX_STARS} times ** at most")
    if pattern.count("{") > MAX_BRACES:
        raise BadRule(f"a pattern has at most {MAX_BRACES} groups in braces")
    try:
        for one in expand_braces(pattern):
            translate_path(one)
    except BadGlob as error:
        raise BadRule(f"{brief(pattern)} is not a valid glob: a [ or a backslash at its end is not closed") from error


def doubts(rule: Rule) -> tuple[Severity, str, str] | None:
    """What of a well-formed rule may not be meant: severity, text and remedy."""
    argument = rule.argument or ""
    if rule.effect == "other" and rule.tool not in KNOWN:
        close = difflib.get_close_matches(rule.tool.capitalize(), KNOWN, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted({*READS, *EDITS, *RUNS}))}, …"
        return Severity.WARNING, f"no tool is called {brief(rule.tool)}, so that this rule matches nothing", remedy
    if rule.effect == "run" and ":*" in argument.removesuffix(":*"):
        return (
            Severity.WARNING,
            "':*' stands for a prefix at the end of a rule alone; here it is read as '*', by Claude Code not at all",
            "write * in its place, or move it to the end",
        )
    if argument and rule.effect in ("read", "edit") and rule.tool not in ("Read", "Edit"):
        real = "Read" if rule.effect == "read" else "Edit"
        return (
            Severity.NOTE,
            f"Claude Code looks at paths in Read(…) and Edit(…) alone; here it counts as {real}({argument})",
            f"write {real}({argument})",
        )
    return None
