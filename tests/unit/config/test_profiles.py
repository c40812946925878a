"""Modes and contexts: ours are complete, and users' own come on top without doing harm."""

from pathlib import Path

from serena_central.config.profiles import load_profiles
from serena_central.tools import call as _families  # noqa: F401 - importing it fills the catalogue
from serena_central.tools.families import CATALOGUE


def test_ours_are_those_that_users_know() -> None:
    ours = load_profiles()
    assert sorted(ours.modes) == [
        "editing",
        "interactive",
        "no-memories",
        "no-onboarding",
        "onboarding",
        "one-shot",
        "planning",
    ]
    assert sorted(ours.contexts) == ["agent", "chatgpt", "claude-code", "codex", "desktop-app", "ide", "vscode"]
    assert ours.problems == []


def test_a_context_is_chosen_by_name_then_by_client_then_by_default() -> None:
    ours = load_profiles()
    assert ours.context_for("ide", "claude-code", "agent").name == "ide"
    assert ours.context_for(None, "claude-code", "agent").name == "claude-code"
    assert ours.context_for("unheard-of", "codex-mcp-client", "agent").name == "codex"
    assert ours.context_for(None, "somebody", "desktop-app").name == "desktop-app"
    assert ours.context_for(None, "somebody", "unheard-of").name == "agent"


def test_users_own_are_added_and_replace_ours(tmp_path: Path) -> None:
    (tmp_path / "modes").mkdir()
    (tmp_path / "modes" / "review.yml").write_text("description: Review\nprompt: Look closely.\nread_only: true\n")
    (tmp_path / "modes" / "planning.yml").write_text("prompt: My own.\n")
    found = load_profiles(tmp_path)
    assert (found.modes["review"].prompt, found.modes["review"].read_only) == ("Look closely.", True)
    assert (found.modes["planning"].prompt, found.modes["planning"].read_only) == ("My own.", False)
    assert found.problems == []


def test_files_that_can_not_be_used_are_problems_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "modes"
    folder.mkdir()
    (folder / "a.yml").write_text("- not\n- keys\n")
    (folder / "b.yml").write_text("prompt: [1\n")
    (folder / "c.yml").write_text("excluded_tools: all\n")
    (folder / "d.yml").write_bytes(b"\xff\xfe\xff")
    (folder / "e.yml").write_text("fixed_tools: [x]\nprompt: Works.\n")
    (folder / "f.yml").write_text("prompt: " + "x" * 1_000_001)
    found = load_profiles(tmp_path)
    assert {name for name in found.modes if len(name) == 1} == {"e"}
    assert [problem.split(" ")[0].rpartition("/")[2].rstrip(":") for problem in found.problems] == [
        f"{name}.yml" for name in "abcdef"
    ]


def test_the_tools_that_ours_name_exist() -> None:
    ours = load_profiles()
    for profile in (*ours.modes.values(), *ours.contexts.values()):
        unknown = {*profile.excluded_tools, *profile.included_optional_tools} - {*CATALOGUE.names()}
        assert not unknown, profile.name
