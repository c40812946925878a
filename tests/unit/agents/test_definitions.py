"""Definitions of agents: both folders, heads that are not YAML, and problems with their lines."""

from pathlib import Path

import pytest

from serena_central.agents.definitions import Definitions, Origin, definitions_of
from serena_central.claude_config.locations import Locations
from serena_central.claude_config.problems import Severity


@pytest.fixture
def where(tmp_path: Path) -> Locations:
    (tmp_path / "home" / "app").mkdir(parents=True)
    return Locations("linux", tmp_path, tmp_path / "home", {})


def write(where: Locations, path: str, text: str) -> Path:
    """`path` begins with ~/ or is relative to the project."""
    file = where.home / path[2:] if path.startswith("~/") else where.home / "app" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def read(where: Locations, *, trusted: bool = True) -> Definitions:
    return definitions_of(where.home / "app", where, trusted=trusted)


def agent(name: str, rest: str = "", body: str = "Be brief.") -> str:
    return f"---\nname: {name}\ndescription: Does {name}\n{rest}---\n\n{body}\n"


def test_definitions_of_project_and_user(where: Locations) -> None:
    """REQ-AGENT-002"""
    write(
        where,
        ".claude/agents/reviewer.md",
        agent("reviewer", "tools: Read, Bash(git diff, git log), Grep\nmodel: opus\n"),
    )
    write(where, "~/.claude/agents/reviewer.md", agent("reviewer"))
    write(
        where, "~/.claude/agents/writer.md", agent("writer", "tools:\n  - mcp__serena__find_symbol\nmodel: inherit\n")
    )
    found = read(where)
    assert list(found.by_name) == ["reviewer", "writer"]
    reviewer, writer = found.by_name.values()
    assert (reviewer.origin, reviewer.model, reviewer.prompt) == (Origin.PROJECT, "opus", "Be brief.")
    assert reviewer.tools == ("Read", "Bash(git diff, git log)", "Grep")
    assert (writer.origin, writer.tools, writer.model) == (Origin.USER, ("mcp__serena__find_symbol",), None)
    assert [one.origin for one in found.shadowed] == [Origin.USER]
    assert not found.problems


def test_without_tools_all_are_allowed_and_with_an_empty_list_none(where: Locations) -> None:
    write(where, ".claude/agents/a.md", agent("a"))
    write(where, ".claude/agents/b.md", agent("b", "tools: []\n"))
    assert [one.tools for one in read(where).by_name.values()] == [None, ()]


def test_agents_of_a_repository_that_is_not_trusted_are_held_back(where: Locations) -> None:
    write(where, ".claude/agents/reviewer.md", agent("reviewer", body="Theirs."))
    write(where, "~/.claude/agents/reviewer.md", agent("reviewer", body="Mine."))
    found = read(where, trusted=False)
    assert [one.prompt for one in found.by_name.values()] == ["Mine."]
    assert [one.prompt for one in found.held_back] == ["Theirs."]


def test_agents_of_the_home_folder_are_the_users_alone(where: Locations) -> None:
    """They are no repository's: who calls without a project is at home."""
    write(where, "~/.claude/agents/reviewer.md", agent("reviewer"))
    linked = where.home.with_name("linked")
    linked.symlink_to(where.home)
    for home in (where.home, linked):
        found = definitions_of(where.home, Locations("linux", where.filesystem, home, {}), trusted=False)
        assert [one.origin for one in found.by_name.values()] == [Origin.USER]
        assert (found.held_back, found.shadowed) == ((), ())


def test_a_head_with_colons_is_read_line_by_line(where: Locations) -> None:
    head = "---\nname: tester\ndescription: Use this agent: after edits. Examples:\n  <example>user: 'hi'</example>\n"
    write(where, ".claude/agents/t.md", f"{head}tools: Read\ncolor: red\n---\nTest.\n")
    found = read(where)
    only = found.by_name["tester"]
    assert only.description.startswith("Use this agent: after edits.")
    assert "<example>" in only.description
    assert only.tools == ("Read",)
    assert [one.severity for one in found.problems] == [Severity.NOTE]


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("no head at all", 1, ""),
        ("---\ndescription: x\n---\nbody", 1, "name"),
        ("---\nname: x\n---\nbody", 1, "description"),
        ("---\nname: x\ndescription: y\ntools: {a: b}\n---\nbody", 4, "tools"),
        ("---\nname: ../x\ndescription: y\n---\nbody", 2, "name"),
        ("---\nname: [x]\ndescription: y\n---\nbody", 2, "name"),
    ],
)
def test_what_is_wrong_has_its_line_and_the_agent_does_not_run(
    where: Locations, text: str, line: int, key: str
) -> None:
    """REQ-AGENT-002: a missing name or description among others."""
    file = write(where, ".claude/agents/x.md", text)
    found = read(where)
    assert not found.by_name
    (problem,) = found.problems
    assert (problem.severity, problem.place.file, problem.place.line, problem.key) == (
        Severity.ERROR,
        str(file),
        line,
        key,
    )


def test_two_files_of_one_name_are_a_problem(where: Locations) -> None:
    write(where, ".claude/agents/a.md", agent("same", body="First."))
    write(where, ".claude/agents/b.md", agent("same", body="Second."))
    found = read(where)
    assert [one.prompt for one in found.by_name.values()] == ["First."]
    assert [one.key for one in found.problems] == ["name"]


def test_fields_of_claude_code_are_tolerated_and_unknown_ones_noted(where: Locations) -> None:
    write(where, ".claude/agents/a.md", agent("a", "color: red\nskills: x\nmaxTurns: 3\ncolour: red\n"))
    found = read(where)
    assert found.by_name["a"].max_turns == 3
    assert [(one.severity, one.key) for one in found.problems] == [(Severity.NOTE, "colour")]


def test_a_link_out_of_the_repository_is_not_followed(where: Locations) -> None:
    secret = write(where, "~/secret.md", agent("secret"))
    folder = where.home / "app" / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "x.md").symlink_to(secret)
    found = read(where)
    assert not found.by_name
    assert [one.severity for one in found.problems] == [Severity.ERROR]
