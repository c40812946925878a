"""Which command lines run tests, by the programs that they name."""

import re

from serena_central.claude_config.command_lines import commands_of

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


def runs_tests(line: str) -> bool:
    """Whether a command line, or one of the commands in it, runs tests."""
    return any(_TESTS.match(" ".join(text.split())) for one in commands_of(line) if one.words for text in one.texts)
