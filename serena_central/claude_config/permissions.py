"""Evaluates the rules of all tiers for a path, a command or a tool: deny, ask, or neither.

`deny` is looked at first, then `ask`, then `allow`; the first that matches decides, wherever it stands. Paths follow
gitignore: `//x` is absolute, `~/x` in the home folder, `/x`, `./x` and whatever else holds a slash are relative to the
folder of the settings (the project, for the user's and managed ones), and a bare name fits at any depth. What a pattern
fits is meant with all below it. A path that may not be read may not be edited either. `ask` is a refusal, too: nobody
can be asked in the middle of a call, so that a person has to change the rule.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from serena_central.claude_config.command_lines import Spoken, commands_of
from serena_central.claude_config.problems import Place
from serena_central.claude_config.rules import VERDICTS, Effect, Rule, Verdict
from serena_central.claude_config.tiers import Tier
from serena_central.files.glob import expand_braces, translate_path
from serena_central.hook.shell import UNKNOWN

_FLAGS = re.DOTALL | (re.IGNORECASE if sys.platform in ("darwin", "win32") else 0)
"""File systems of macOS and Windows don't tell upper from lower case."""

OWN_NAMES = ("serena-central", "serena")
"""What clients call this server in their own configuration, and so in names of its tools."""


_WORD = re.compile(r"""[^\s<>|;&()'"`]+""")
"""What may be a path in a command line."""


_SEPARATORS = re.compile(r"[=:@,]")
_HERE = re.compile(r"^/proc/(?:self|thread-self|\d+|\$\$)/cwd(?=/|$)")
_GLOB = re.compile(r"[*?\[{]")

ANY_NAME = "\1"
"""Stands for any file of a folder."""

MOST_CHARACTERS = 4096
MOST_FOLDERS = 10
"""That one command line goes into, of those that are looked at."""

MOST_ENTRIES = 5000
"""Of folders, that are looked at for the pattern in one word."""


class SourcedRule(NamedTuple):
    """A rule and where it stands. `base` is the folder that its relative paths start from."""

    verdict: Verdict
    rule: Rule
    tier: Tier
    place: Place
    base: Path

    def __str__(self) -> str:
        return f"{self.verdict} {self.rule.text} ({self.place}, {self.tier})"


class Decision(NamedTuple):
    """What decides about something; `doubt`: it can't be told whether the rule matches."""

    rule: SourcedRule
    doubt: bool = False


def refusal_text(what: str, decision: Decision) -> str:
    """Why something is refused, and who can allow it. Holds nothing of what is protected but `what`, as asked for."""
    rule = decision.rule
    doubtful = ", which may match: what it runs can't be told from its text" if decision.doubt else ""
    verb = "denied" if rule.verdict == "deny" else "not done without a person's consent"
    return (
        f"{what} is {verb} by the permission rule {rule.rule.text} in {rule.place} ({rule.tier} settings){doubtful}. "
        "A person can change the rule there."
    )


class Permissions:
    """The rules that hold in one root. Pure, and safe from any thread."""

    def __init__(self, root: Path, home: Path, rules: Iterable[SourcedRule]) -> None:
        self._root = str(root)
        self._home = home
        self.rules = tuple(rules)

    # --- paths ---------------------------------------------------------------------------------------------------

    def reading(self, path: str) -> Decision | None:
        """Whether a root-relative POSIX path may not be read: the rule that says so. Under a microsecond."""
        if self._reads is None or self._reads.fullmatch(self._absolute(path)) is None:
            return None
        return self._of_path(("read",), path)

    def editing(self, path: str) -> Decision | None:
        """Whether it may not be edited."""
        if self._edits is None or self._edits.fullmatch(self._absolute(path)) is None:
            return None
        return self._of_path(("read", "edit"), path)

    def path_allowed_by(self, effect: Effect, path: str) -> Decision | None:
        """The `allow` rule that names a path, for explanations."""
        return self._first(("allow",), (effect,), lambda rule: self._fits(rule, path))

    @cached_property
    def key(self) -> tuple[SourcedRule, ...]:
        """Equal as long as the same paths are closed for the same reasons."""
        return tuple(one for one in self.rules if one.verdict != "allow" and one.rule.effect in ("read", "edit"))

    @property
    def path_rules(self) -> set[tuple[str, str]]:
        """The rules that close paths, as texts with their folders, wherever they stand."""
        return {(one.rule.text, str(one.base)) for one in self.key}

    @property
    def protects_files(self) -> bool:
        """Whether any rule keeps a file from being read."""
        return self._reads is not None

    def _of_path(self, effects: Sequence[Effect], path: str) -> Decision | None:
        return self._first(("deny", "ask"), effects, lambda rule: self._fits(rule, path))

    def _fits(self, rule: SourcedRule, path: str) -> bool:
        return re.compile(_path_regex(rule, self._home), _FLAGS).fullmatch(self._absolute(path)) is not None

    def _absolute(self, path: str) -> str:
        if path.startswith("../"):
            return _normal(f"{self._root}/{path}")
        return f"{self._root}/{path}" if path not in ("", ".") else self._root

    @cached_property
    def _reads(self) -> re.Pattern[str] | None:
        return self._compiled("read")

    @cached_property
    def _edits(self) -> re.Pattern[str] | None:
        return self._compiled("read", "edit")

    def _compiled(self, *effects: Effect) -> re.Pattern[str] | None:
        regexes = [
            _path_regex(one, self._home)
            for one in self.rules
            if one.verdict != "allow" and one.rule.effect in effects and _is_about_paths(one.rule)
        ]
        return re.compile("|".join(dict.fromkeys(regexes)), _FLAGS) if regexes else None

    # --- tools and commands --------------------------------------------------------------------------------------

    def tool(self, name: str, effect: Effect, kinds: Iterable[str]) -> Decision | None:
        """Whether a tool of ours may not be called at all. `kinds` are the tools of the format that it stands for."""
        stands_for = frozenset(kinds)
        names = [f"mcp__{server}__{name}" for server in OWN_NAMES]

        def fits(rule: SourcedRule) -> bool:
            own = rule.rule
            if own.effect == "server":
                return own.argument is None and any(server_rule_fits(own.tool, one) for one in names)
            return own.argument is None and own.tool in stands_for

        return self._first(("deny", "ask"), (effect, "read", "edit", "run", "server"), fits)

    def upstream(self, server: str, tool: str) -> Decision | None:
        """Whether a tool of an MCP server may not be called."""
        name = f"mcp__{server}__{tool}"
        return self._first(("deny", "ask"), ("server",), lambda one: server_rule_fits(one.rule.tool, name))

    def command(self, line: str, folder: str = "") -> Decision | None:
        """Whether a command line may not be run in a root-relative folder: for what one of its commands is, or for a
        path that it names and that may not be read."""
        ours = [one for one in self.rules if one.verdict != "allow" and one.rule.effect == "run"]
        if not ours and self._reads is None:
            return None
        commands = commands_of(line)
        for verdict in ("deny", "ask"):
            for one in ours:
                if one.verdict == verdict and (found := _matching(one, commands)) is not None:
                    return found
        return self._named_paths(commands, folder)

    def command_allowed_by(self, line: str) -> Decision | None:
        """The `allow` rule that covers every command of a line, or the first of several, for explanations."""
        ours = [one for one in self.rules if one.verdict == "allow" and one.rule.effect == "run"]
        commands = commands_of(line)[1:]
        found = [next((one for one in ours if command_is(one.rule, command)), None) for command in commands]
        return Decision(found[0]) if found and found[0] is not None and None not in found else None

    def _named_paths(self, commands: Sequence[Spoken], folder: str) -> Decision | None:
        if self._reads is None:
            return None
        words = [word for command in commands for word in command.words]
        written = _WORD.findall(commands[0].texts[0])  # also what redirections name
        entered = [word for command in commands for word in _entered(command.words)][:MOST_FOLDERS]
        folders = dict.fromkeys((folder, *(f"{folder}/{word}" if word[:1] not in "/~" else word for word in entered)))
        for word in dict.fromkeys((*words, *written)):
            for path in dict.fromkeys((word, *_SEPARATORS.split(word))):
                for start in folders if path else ():
                    decision = self._at(path, start)
                    if decision is not None:
                        return decision
        return None

    def _at(self, path: str, folder: str) -> Decision | None:
        """What may not be read at a path as a command names it."""
        expanded = _HERE.sub(self._root, str(self._home) + path[1:] if path.startswith("~/") else path)
        if len(expanded) > MOST_CHARACTERS:
            return None  # no file has such a name
        try:
            absolute = Path(self._root, folder, expanded)
            forms = {_normal(str(absolute)), str(absolute.resolve())}
            forms |= set(_globbed(absolute)) if _GLOB.search(expanded) else set()
        except (OSError, ValueError, RuntimeError):
            return None
        # A folder of which everything is closed is named in place of its files.
        for form in sorted(forms | {f"{form}/{ANY_NAME}" for form in forms}):
            assert self._reads is not None
            if self._reads.fullmatch(form):
                return self._first(
                    ("deny", "ask"),
                    ("read",),
                    lambda rule, form=form: (
                        re.compile(_path_regex(rule, self._home), _FLAGS).fullmatch(form) is not None
                    ),
                )
        return None

    def _first(
        self, verdicts: Sequence[Verdict], effects: Sequence[Effect], fits: Callable[[SourcedRule], bool]
    ) -> Decision | None:
        for verdict in VERDICTS:
            if verdict in verdicts:
                for one in self.rules:
                    if one.verdict == verdict and one.rule.effect in effects and fits(one):
                        return Decision(one)
        return None


def _is_about_paths(rule: Rule) -> bool:
    """A bare `Grep` or `Write` switches tools off; a bare `Read` or `Edit` closes every path, too."""
    return rule.argument is not None or rule.tool in ("Read", "Edit")


def _path_regex(rule: SourcedRule, home: Path) -> str:
    """Matches the absolute POSIX paths that a rule is about."""
    if rule.rule.argument is None:
        return re.escape(_posix(rule.base)) + "(?:/.*)?" if _is_about_paths(rule.rule) else r"(?!)"
    return path_pattern(rule.rule, rule.base, home).pattern


def _one_regex(glob: str, base: str, home: str) -> str:
    folders_only = glob.endswith("/") and glob != "/"
    trimmed = glob.rstrip("/")
    if glob.startswith("//"):
        start, trimmed = "", trimmed.lstrip("/")
    elif trimmed == "~" or trimmed.startswith("~/"):
        start, trimmed = home, trimmed[2:]
    else:
        start, anchored = base, "/" in trimmed or glob in ("/", "./") or trimmed == "."
        trimmed = trimmed.removeprefix("./").removeprefix("/")
        while trimmed.startswith("./"):
            trimmed = trimmed.removeprefix("./")
        trimmed = "" if trimmed == "." else trimmed
        if not anchored:
            trimmed = f"**/{trimmed}"
        while trimmed.startswith("../") or trimmed == "..":
            start, trimmed = start.rpartition("/")[0], trimmed[3:]
    below = "/.*" if folders_only else "(?:/.*)?"
    path = f"/{translate_path(trimmed)}" if trimmed else ""
    return f"(?:{re.escape(start)}{path}{below})"


def _entered(words: Sequence[str]) -> Iterator[str]:
    """Folders that a command goes into."""
    if words and words[0] in ("cd", "pushd") and len(words) > 1:
        yield words[1]
    for place, word in enumerate(words):
        if word in ("-C", "--directory") and place + 1 < len(words):
            yield words[place + 1]


def _globbed(pattern: Path) -> Iterator[str]:
    """Paths that a shell's pattern names, as far as they are there; of very many the first."""
    left = MOST_ENTRIES
    for one in expand_braces(str(pattern)):
        found = [""]
        for part in one.split("/")[1:]:
            if not _GLOB.search(part):
                found = [f"{folder}/{part}" for folder in found]
                continue
            inside: list[str] = []
            for folder in found:
                with suppress(OSError), os.scandir(folder or "/") as entries:
                    for entry in islice(entries, max(left, 0)):
                        left -= 1
                        if fnmatchcase(entry.name, part):
                            inside.append(f"{folder}/{entry.name}")
            found = inside
        yield from found


def _posix(path: Path) -> str:
    return path.as_posix().rstrip("/")


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def server_rule_fits(rule: str, tool: str) -> bool:
    """`mcp__github` and `mcp__github__*` fit every tool of that server, `mcp__github__get_*` some."""
    if rule == tool or tool.startswith(f"{rule}__"):
        return True
    pattern = ".*".join(map(re.escape, rule.split("*")))
    return "*" in rule and re.fullmatch(pattern, tool) is not None


def command_fits(rule: Rule, commands: Sequence[Spoken]) -> bool:
    """Whether one of the commands of a line is what a rule names, or may be: what it runs can't be told."""
    return any(command_is(rule, one) or one.unknown or _may_fit(rule, one) for one in commands)


def command_is(rule: Rule, command: Spoken) -> bool:
    """Whether a command is what a rule names, without a doubt."""
    if rule.argument is None:
        return True
    regex = re.compile(_command_regex(rule.argument), re.DOTALL)
    return any(regex.fullmatch(text) for text in command.texts)


def path_pattern(rule: Rule, base: Path, home: Path) -> re.Pattern[str]:
    """Matches the absolute POSIX paths that a rule with an argument is about."""
    whole = "|".join(_one_regex(one, _posix(base), _posix(home)) for one in expand_braces(rule.argument or "**"))
    return re.compile(whole, _FLAGS)


def _matching(one: SourcedRule, commands: Sequence[Spoken]) -> Decision | None:
    doubtful: Decision | None = None
    for command in commands:
        if command_is(one.rule, command):
            return Decision(one)
        if command.unknown or _may_fit(one.rule, command):
            doubtful = Decision(one, doubt=True)
    return doubtful


def _may_fit(rule: Rule, command: Spoken) -> bool:
    """Whether a command whose words hold variables becomes one that the rule names, for some value of them."""
    literal = (rule.argument or "").partition("*")[0].removesuffix(":").rstrip()
    for text in command.texts:
        head, unknown, _ = text.partition(UNKNOWN)
        if unknown and literal.startswith(head):
            return True
    return False


def _command_regex(pattern: str) -> str:
    text = pattern.strip()
    if text.endswith(":*"):
        return f"{_starred(text[:-2])}(?:\\s.*)?"
    if text.endswith(" *") and text.count("*") == 1:
        return f"{_starred(text[:-2])}(?:\\s.*)?"
    return _starred(text.replace(":*", "*"))


def _starred(text: str) -> str:
    """`*` stands for any characters, `\\*` for itself. What stands between two stars is matched at its first chance, so
    that the number of stars does not multiply the time."""
    first, *rest = [re.escape(part.replace("\0", "*")) for part in text.replace("\\*", "\0").split("*")]
    if not rest:
        return first
    return first + "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece) + ".*" + rest[-1]
