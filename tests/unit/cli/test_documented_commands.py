"""Commands in code blocks of the documentation can be pasted: the command line knows their names and options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from serena_central.cli.main import cli

CHECKOUT = Path(__file__).parents[3]

_WRONG = (click.NoSuchOption, click.BadOptionUsage)
_SAID = ("No such command", "Unknown command", "unexpected extra argument")


def printed() -> Iterator[tuple[str, str]]:
    """Where a command stands, and its line without a comment."""
    for page in (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))):
        fenced = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.startswith("```"):
                fenced = not fenced
            elif fenced or line.startswith("    "):
                found = re.match(r"\s*(?:\$ )?(?:\S+=\S* )*(serena-central .*)", line)
                if found and "…" not in found[1] and "<TAB>" not in found[1]:
                    yield f"{page.name}:{number}", found[1]


def parsed(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    """Raises ClickException for what the command line refuses; runs nothing."""
    context = command.make_context(name, words, parent=parent)
    if isinstance(command, click.Group) and (rest := [*context._protected_args, *context.args]):
        name_, found, more = command.resolve_command(context, rest)
        assert found is not None
        parsed(found, str(name_), more, context)


def refusal(words: list[str]) -> str:
    """What is wrong with a command's names and options. Values are often placeholders: those are not checked."""
    try:
        parsed(cli, "serena-central", words)
    except click.exceptions.Exit:
        return ""
    except click.ClickException as error:
        said = error.format_message()
        return said if isinstance(error, _WRONG) or any(part in said for part in _SAID) else ""
    return ""


@pytest.mark.parametrize(("place", "line"), list(printed()))
def test_a_printed_command_has_the_names_and_options_of_the_command_line(place: str, line: str) -> None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)[1:]
    for ends in ("|", ">", "&&", ";"):
        if ends in words:
            words = words[: words.index(ends)]
    if words[:1] == ["call"]:
        return  # a tool's options are the server's
    assert refusal([word for word in words if not re.fullmatch(r"\[.*|.*\]", word)]) == "", place


def all_commands(command: click.Command, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from all_commands(found, *names, name)


@pytest.mark.parametrize("names", list(all_commands(cli)), ids=" ".join)
def test_no_help_shows_a_bound_that_there_is_not(names: tuple[str, ...]) -> None:
    assert "None" not in CliRunner().invoke(cli, [*names, "--help"]).output
