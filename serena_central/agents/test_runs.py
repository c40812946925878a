"""Which command lines run tests, by the programs that they name, and whether their exit codes are those of tests."""

import re
from collections.abc import Iterator

from serena_central.claude_config.command_lines import DEEPEST, Spoken, commands_of, program_of
from serena_central.claude_config.proven_commands import only_tells, own_command, proven_commands
from serena_central.hook.shell import Unclear, pipelines

_TESTS = re.compile(
    r"""(?:\S*/)?(?:
        pytest | py\.test | nosetests | tox | nox | jest | vitest | mocha | ava | ctest | rspec | phpunit
      | busted | bats
      | (?:python[\d.]*|pypy3?|coverage\ run)\ (?:\S+\ )*?-m\ (?:pytest|unittest|nose2|doctest|tox|nox)
      | (?:uv|poetry|pdm|hatch|pipenv|rye)\ run\ (?:\S+\ )*?(?:pytest|unittest|tox|nox|test)
      | (?:bundle\ exec|npx|bunx|pnpx|uvx)\ (?:-\S+\ )*(?:rspec|rake\ test|jest|vitest|mocha|ava|pytest|tox|nox)
      | (?:npm|pnpm|yarn|bun|deno)\ (?:run\ )?(?:-\S+\ )*(?:test|t)(?:[:-]\S+)?
      | (?:go|cargo|dotnet|swift|mix|sbt|zig|stack|cabal|flutter|dart|lein|rake|rails|composer|bazel)
        \ (?:\S+\ )*?(?:test|nextest)
      | (?:make|just|task|ninja|meson|hatch)\ (?:\S+\ )*?(?:test|tests|check)
      | (?:mvnw?|gradlew?)\ (?:\S+\ )*?(?:\S*:)?(?:test|verify|check)
    )(?:\s|$)""",
    re.VERBOSE,
)


_COMMAND_OPTION = re.compile(r"-\w*c")

_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh"))


def runs_tests(line: str) -> bool:
    """Whether a command line runs tests, or may: one that decides at run time what it runs."""
    return any(_is_test(one) for one in _commands(line))


def ends_as_its_tests(line: str) -> bool:
    """Whether the exit code of a line says how its tests ended: it is 0 only if they ran and passed."""
    return any(_is_test(one) and not only_tells(one) for one in proven_commands(line))


def _commands(line: str, depth: int = 0) -> Iterator[Spoken]:
    """The commands that a line itself runs, and those of lines that it hands to shells."""
    try:
        commands = [own_command(command.words) for pipeline in pipelines(line) for command in pipeline]
    except Unclear:
        yield from (one for one in commands_of(line) if one.words)
        return
    for one in commands:
        yield one
        at = next((place for place, word in enumerate(one.words) if _COMMAND_OPTION.fullmatch(word)), None)
        if program_of(one.words) in _SHELLS and at is not None and depth < DEEPEST:
            yield from _commands(" ".join(one.words[at + 1 : at + 2]), depth + 1)


def _is_test(command: Spoken) -> bool:
    return any(_TESTS.match(" ".join(text.split())) for text in command.texts)
