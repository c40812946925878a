"""CLAUDE.md files in order, with imports and their bounds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.claude_config.memory_files import Memory, Origin, imports_in, memory_files
from tests.unit.claude_config.conftest import Machine


def memory(machine: Machine, *touched: str, names: tuple[str, ...] = (), trusted: bool = False) -> Memory:
    return memory_files(machine.root, map(Path, touched), locations=machine.locations, names=names, trusted=trusted)


def texts(found: Memory) -> list[str]:
    return [part.text for part in found.parts]


def test_the_order_is_from_the_widest_to_the_narrowest(machine: Machine) -> None:
    machine.write("etc/claude-code/CLAUDE.md", "managed")
    machine.write("~/.claude/CLAUDE.md", "user")
    machine.write("../CLAUDE.md", "work")
    machine.write("~/CLAUDE.md", "home")
    machine.write("CLAUDE.md", "root")
    machine.write(".claude/CLAUDE.md", "root in .claude")
    machine.write("CLAUDE.local.md", "local")
    machine.write("a/CLAUDE.md", "a")
    machine.write("a/b/CLAUDE.md", "a/b")
    machine.write("c/CLAUDE.md", "c")
    found = memory(machine)
    always = ["managed", "user", "home", "work", "root", "root in .claude", "local"]
    assert texts(found) == always
    assert [part.origin for part in found.parts[:5]] == [
        *(Origin.MANAGED, Origin.USER, Origin.ABOVE, Origin.ABOVE, Origin.ROOT),
    ]
    assert texts(memory(machine, "a/b/x.py")) == [*always, "a", "a/b"]
    assert texts(memory(machine, "c/x.py", "a/x.py")) == [*always, "a", "c"]
    assert texts(memory(machine, "../outside/x.py")) == always


def test_other_names_count_where_they_are_asked_for(machine: Machine) -> None:
    machine.write("CLAUDE.md", "claude")
    machine.write("AGENTS.md", "agents")
    machine.write("a/GEMINI.md", "gemini")
    machine.write("~/.codex/AGENTS.md", "codex")
    machine.write("~/.gemini/GEMINI.md", "own gemini")
    assert texts(memory(machine, "a/x")) == ["claude"]
    found = memory(machine, "a/x", names=("AGENTS.md", "GEMINI.md"))
    assert texts(found) == ["codex", "own gemini", "claude", "agents", "gemini"]


def test_imports_follow_the_file_that_names_them(machine: Machine) -> None:
    machine.write("CLAUDE.md", "see @docs/style.md and @README.md.\n\n@~/notes.md")
    machine.write("docs/style.md", "style, @more.md")
    machine.write("docs/more.md", "more")
    machine.write("README.md", "readme")
    found = memory(machine)
    assert texts(found)[1:] == ["style, @more.md", "more", "readme"]
    assert [part.imported_by and part.imported_by.name for part in found.parts] == [
        *(None, "CLAUDE.md", "style.md", "CLAUDE.md"),
    ]


def test_imports_end_after_four_hops(machine: Machine) -> None:
    for hop in range(7):
        machine.write("CLAUDE.md" if hop == 0 else f"{hop}.md", f"@{hop + 1}.md")
    found = memory(machine)
    assert [part.path.name for part in found.parts] == ["CLAUDE.md", "1.md", "2.md", "3.md", "4.md"]
    assert "@5.md is more than 4 imports away" in str(found.problems[0])


def test_a_cycle_ends_with_a_note(machine: Machine) -> None:
    machine.write("CLAUDE.md", "@a.md")
    machine.write("a.md", "@CLAUDE.md @a.md")
    found = memory(machine)
    assert len(found.parts) == 2
    assert [problem.text for problem in found.problems] == [
        "@CLAUDE.md imports a file that it is imported by, and is left out",
        "@a.md imports a file that it is imported by, and is left out",
    ]


def test_a_file_that_two_import_stands_once(machine: Machine) -> None:
    machine.write("CLAUDE.md", "@a.md @b.md @a.md")
    machine.write("a.md", "@b.md")
    machine.write("b.md", "b")
    assert [part.path.name for part in memory(machine).parts] == ["CLAUDE.md", "a.md", "b.md"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@a.md", ["a.md"]),
        ("x @a.md, y", ["a.md,"]),
        ("- @a.md\n- @b.md", ["a.md", "b.md"]),
        ("**@a.md**", ["a.md"]),
        ("`@a.md`", []),
        ("``@a.md ` x``", []),
        ("```\n@a.md\n```", []),
        ("~~~sh\n@a.md\n~~~", []),
        ("    @a.md", []),
        ("> @a.md", ["a.md"]),
        ("> ```\n> @a.md\n> ```", []),
        ("mail me@a.md", []),
        ("# head @a.md", ["a.md"]),
        ("@a\\ b.md", ["a b.md"]),
        ("```\nnever closed\n@a.md", []),
        ("<!-- @a.md -->", []),
    ],
)
def test_what_is_an_import(text: str, expected: list[str]) -> None:
    assert [name.replace("\\ ", " ") for name, _ in imports_in(text)] == expected


def test_a_repository_imports_nothing_from_elsewhere_before_it_is_trusted(machine: Machine) -> None:
    machine.write("../outside.md", "outside")
    machine.write("CLAUDE.md", "@../outside.md @link.md")
    (machine.root / "link.md").symlink_to(machine.root.parent / "outside.md")
    found = memory(machine)
    assert len(found.parts) == 1
    assert all("leads out of the repository" in problem.text for problem in found.problems)
    assert texts(memory(machine, trusted=True))[1:] == ["outside"]


def test_what_may_not_be_read_is_not_imported(machine: Machine) -> None:
    machine.write("CLAUDE.md", "@secret.md")
    machine.write("secret.md", "canary")
    found = memory_files(
        machine.root, locations=machine.locations, readable=lambda path: "denied" if path.name == "secret.md" else None
    )
    assert "canary" not in repr(found)
    assert [part.path.name for part in found.parts] == ["CLAUDE.md"]


def test_more_than_25_kilobytes_are_warned_about(machine: Machine) -> None:
    machine.write("CLAUDE.md", "x" * 25 * 1024)
    assert memory(machine).problems == []
    machine.write("~/.claude/CLAUDE.md", "y")
    (problem,) = memory(machine).problems
    assert str(problem).startswith(f"{machine.root}/CLAUDE.md: warning: memory files have 25.0 KB together")


def test_an_import_that_leads_nowhere_is_noted_and_a_mention_is_not(machine: Machine) -> None:
    machine.write("CLAUDE.md", "thanks to @alice\n\n@docs/none.md")
    (problem,) = memory(machine).problems
    assert (problem.text, problem.place.line) == ("@docs/none.md refers to no file", 3)


def test_what_is_no_text_is_left_out(machine: Machine) -> None:
    machine.write("CLAUDE.md", "@bin.md @folder @pipe.md")
    (machine.root / "bin.md").write_bytes(b"\xff\xfe\x00")
    (machine.root / "folder").mkdir()
    found = memory(machine)
    assert [part.path.name for part in found.parts] == ["CLAUDE.md"]


@given(st.text(max_size=200))
def test_any_text_can_be_looked_through(text: str) -> None:
    imports_in(text)


def test_what_lies_above_imports_nothing_from_elsewhere_unless_it_is_trusted(machine: Machine) -> None:
    machine.write("~/.ssh/id_rsa", "key")
    machine.write("../docs/style.md", "style")
    machine.write("../CLAUDE.md", "work @../.ssh/id_rsa @docs/style.md")
    machine.write("CLAUDE.md", "root")
    assert texts(memory(machine)) == ["work @../.ssh/id_rsa @docs/style.md", "style", "root"]
    (machine.root.parent / "CLAUDE.local.md").symlink_to(Path(machine.locations.home, ".ssh/id_rsa"))
    assert "key" not in texts(memory(machine))
    assert "key" in texts(memory(machine, trusted=True))
