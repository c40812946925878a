"""Tells which commands of a shell line ran and succeeded if the line ends with exit code 0.

`command_lines` finds rather too much, which is right for what must not run. Here it is the other way round: what might
not run, or whose failure the line might hide, is no proof, and neither is what this file does not know.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from serena_central.claude_config.command_lines import Spoken, forms, program_of
from serena_central.hook.shell import UNKNOWN, Unclear, joined_pipelines

_CHANGE_THE_REST = frozenset(
    ("alias", "break", "builtin", "continue", "enable", "eval", "exec", "exit", "hash", "logout", "return", "set")
) | {"shopt", "suspend", "trap"}
"""Builtins that may end the line with 0, or change what its commands are or how it ends."""


_TELLING = frozenset(
    ("--co", "--collect-only", "--dry-run", "--fixtures", "--help", "--just-print", "--list", "--list-tests")
) | {"--listTests", "--markers", "--no-run", "--recon", "--setup-plan", "--version"}
"""Options by which a program tells something in place of what it does otherwise, and ends with 0."""


class Runner(NamedTuple):
    """A program that runs the command behind its options, waits for it, and ends with its exit code. `options` matches
    those of one word; `valued` have their value in the next word; `words` come before the command."""

    options: str = r"(?!)"
    valued: frozenset[str] = frozenset()
    words: int = 0


_RUNNERS: Mapping[str, Runner] = {
    "env": Runner(
        r"-|-i|--ignore-environment|-[uC].+|--(unset|chdir)=.*", frozenset(("-u", "--unset", "-C", "--chdir"))
    ),
    "nice": Runner(r"-n.+|--adjustment=.*|--?\d+", frozenset(("-n", "--adjustment"))),
    "nohup": Runner(),
    "stdbuf": Runner(r"-[ioe].+|--(input|output|error)=.*", frozenset(("-i", "-o", "-e"))),
    "sudo": Runner(r"-[EHn]+|--preserve-env(=.*)?|-[ug].+", frozenset(("-u", "-g"))),
    "time": Runner(r"-p"),
    "timeout": Runner(
        r"--foreground|--preserve-status|-v|--verbose|-[ks].+|--(kill-after|signal)=.*",
        frozenset(("-k", "--kill-after", "-s", "--signal")),
        words=1,
    ),
}


def proven_commands(line: str) -> list[Spoken]:
    """The commands that a line runs by itself, joined by && alone, with no other exit code in place of theirs."""
    try:
        parts = joined_pipelines(line)
    except Unclear:
        return []
    if any(operator != "&&" for _, operator in parts[:-1]) or any(
        operator in ("&", "||") for _, operator in parts[-1:]
    ):
        return []
    commands = [command.words for pipeline, _ in parts for command in pipeline]
    if any(_changes_the_rest(words) for words in commands):
        return []
    return [own_command(pipeline[0].words) for pipeline, _ in parts if len(pipeline) == 1]


def only_tells(command: Spoken, wanted: Collection[str] = ()) -> bool:
    """Whether a command tells about itself, or what it would do, and does nothing; `wanted` are options that don't
    count."""
    return any(word in _TELLING and word not in wanted for word in command.words)


def own_command(words: Sequence[str]) -> Spoken:
    """A command as it is written and without what runs it, both without assignments."""
    own = _past_assignments(words)
    return Spoken(tuple(dict.fromkeys((*forms(own), *forms(_run_in_the_end(own))))), tuple(own))


def _run_in_the_end(words: Sequence[str]) -> Sequence[str]:
    """The command that runners run; empty where an option is not known, which might run nothing."""
    while (runner := _RUNNERS.get(program_of(words))) is not None:
        at = 1
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "--":
                at += 1
                break
            if words[at] in runner.valued:
                at += 2
            elif re.fullmatch(runner.options, words[at], re.DOTALL):
                at += 1
            else:
                return ()
        words = _past_assignments(words[at + runner.words :])
    return words


def _past_assignments(words: Sequence[str]) -> Sequence[str]:
    at = 0
    while at < len(words) and "=" in words[at] and words[at].partition("=")[0].isidentifier():
        at += 1
    return words[at:]


def _changes_the_rest(words: Sequence[str]) -> bool:
    own = list(_past_assignments(words))
    while own[:1] == ["command"] and len(own) > 1 and not own[1].startswith("-"):
        del own[0]
    return program_of(own) in _CHANGE_THE_REST or UNKNOWN in program_of(own)
