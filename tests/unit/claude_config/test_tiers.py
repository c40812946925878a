"""Four tiers are found on every platform, and merged as the document says."""

from pathlib import Path

import pytest

from serena_central.claude_config.effective import load
from serena_central.claude_config.executable import executable_texts
from serena_central.claude_config.locations import Locations
from serena_central.claude_config.sources import State, servers_of
from serena_central.claude_config.tiers import Tier
from tests.unit.claude_config.conftest import Machine


def test_the_documents_example(machine: Machine) -> None:
    machine.user('{ "model": "sonnet", "permissions": { "allow": ["Read"] } }')
    machine.project('{ "model": "opus", "permissions": { "allow": ["Write"] } }')
    assert machine.load().value == {"model": "opus", "permissions": {"allow": ["Read", "Write"]}}


def test_single_values_of_the_enterprise_win_then_local_project_and_user(machine: Machine) -> None:
    machine.user({"model": "u", "language": "u", "theme": "u", "agent": "u"})
    machine.project({"model": "p", "language": "p", "theme": "p"})
    machine.local({"model": "l", "language": "l"})
    machine.enterprise({"model": "e"})
    assert machine.load().value == {"model": "e", "language": "l", "theme": "p", "agent": "u"}


def test_lists_append_in_the_order_of_loading_without_repeats(machine: Machine) -> None:
    machine.local({"permissions": {"allow": ["Edit", "Read"]}})
    machine.project({"permissions": {"allow": ["Bash"]}})
    machine.user({"permissions": {"allow": ["Read", "Glob"]}})
    machine.enterprise({"permissions": {"allow": ["Grep"]}})
    assert machine.load().value["permissions"]["allow"] == ["Grep", "Read", "Glob", "Bash", "Edit"]


@pytest.mark.parametrize("tier", ["enterprise", "user", "project", "local"])
def test_a_deny_of_any_tier_holds(machine: Machine, tier: str) -> None:
    for other in ("enterprise", "user", "project", "local"):
        rules = {"allow": ["Read(.env)"]} | ({"deny": ["Read(.env)"]} if other == tier else {})
        getattr(machine, other)({"permissions": rules})
    decision = machine.load().permissions.reading(".env")
    assert decision is not None
    assert (decision.rule.verdict, decision.rule.tier) == ("deny", tier)


def test_drop_ins_of_the_managed_tier_count_after_its_file_in_the_order_of_their_names(machine: Machine) -> None:
    machine.enterprise({"model": "base", "permissions": {"deny": ["Read(a)"]}})
    machine.write("etc/claude-code/managed-settings.d/20-b.json", {"model": "b"})
    machine.write("etc/claude-code/managed-settings.d/10-a.json", {"model": "a", "permissions": {"deny": ["Read(b)"]}})
    machine.write("etc/claude-code/managed-settings.d/.hidden.json", {"model": "hidden"})
    machine.write("etc/claude-code/managed-settings.d/notes.txt", "no settings")
    assert machine.load().value == {"model": "b", "permissions": {"deny": ["Read(a)", "Read(b)"]}}


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", "etc/claude-code"),
        ("darwin", "Library/Application Support/ClaudeCode"),
        ("win32", "Program Files/ClaudeCode"),
    ],
)
def test_managed_settings_lie_where_the_platform_has_them(machine: Machine, platform: str, folder: str) -> None:
    file = machine.filesystem / folder / "managed-settings.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"model": "managed"}')
    machine.platform = platform
    assert machine.load().value == {"model": "managed"}


@pytest.mark.parametrize(
    ("environment", "folders", "expected"),
    [
        ({}, [], ".claude"),
        ({}, [".claude"], ".claude"),
        ({}, [".config/claude"], ".config/claude"),
        ({}, [".claude", ".config/claude"], ".config/claude"),
        ({"XDG_CONFIG_HOME": "{home}/xdg"}, [".claude", ".config/claude"], ".claude"),
        ({"XDG_CONFIG_HOME": "{home}/xdg"}, [".claude", "xdg/claude"], "xdg/claude"),
        ({"XDG_CONFIG_HOME": "relative"}, [".config/claude"], ".config/claude"),
        ({"CLAUDE_CONFIG_DIR": "{home}/named"}, [".claude", ".config/claude"], "named"),
        ({"CLAUDE_CONFIG_DIR": "~/named", "XDG_CONFIG_HOME": "{home}/xdg"}, ["xdg/claude"], "named"),
        ({"CLAUDE_CONFIG_DIR": ""}, [".config/claude"], ".config/claude"),
    ],
)
def test_the_users_folder(machine: Machine, environment: dict[str, str], folders: list[str], expected: str) -> None:
    machine.environment = {name: value.replace("{home}", str(machine.home)) for name, value in environment.items()}
    for folder in folders:
        (machine.home / folder).mkdir(parents=True)
    assert machine.locations.user_folder == machine.home / expected


def test_a_second_users_folder_with_settings_is_noted(machine: Machine) -> None:
    machine.user({"model": "legacy"})
    machine.write("~/.config/claude/settings.json", {"model": "xdg"})
    loaded = machine.load()
    assert loaded.value == {"model": "xdg"}
    (note,) = loaded.problems
    assert str(note).startswith(f"{machine.home}/.claude: note: settings in this folder are not read")


def test_rules_of_folders_above_the_root_hold_in_it_and_nothing_else_of_them(machine: Machine) -> None:
    machine.write("../.claude/settings.json", {"model": "above", "permissions": {"deny": ["Read(app/secrets/**)"]}})
    machine.write("../.claude/settings.local.json", {"permissions": {"allow": ["Bash"], "deny": ["Read(*.pem)"]}})
    loaded = machine.load()
    assert loaded.value == {}
    assert loaded.permissions.reading("secrets/key") is not None
    assert loaded.permissions.reading("a/key.pem") is not None
    assert loaded.permissions.reading("src/key") is None
    assert [rule.verdict for rule in loaded.permissions.rules] == ["deny", "deny"]


def test_the_home_folder_is_no_folder_above(machine: Machine) -> None:
    machine.user({"model": "user"})
    (machine.home / ".claude" / "settings.local.json").write_text('{"permissions": {"deny": ["Read"]}}')
    assert machine.load().permissions.rules == ()


def test_managed_rules_only_leaves_out_what_others_allow_and_keeps_what_they_deny(machine: Machine) -> None:
    machine.enterprise({"allowManagedPermissionRulesOnly": True, "permissions": {"allow": ["Read(a)"]}})
    machine.user({"permissions": {"allow": ["Read(b)"], "ask": ["Read(c)"], "deny": ["Read(d)"]}})
    rules = [(rule.verdict, rule.rule.text) for rule in machine.load().permissions.rules]
    assert rules == [("allow", "Read(a)"), ("deny", "Read(d)")]


def test_origins_name_the_place_that_counts_and_all_that_is_shadowed(machine: Machine) -> None:
    user = machine.user('{\n  "model": "u",\n  "env": {"A": "1"}\n}')
    project = machine.project('{\n\n  "model": "p"\n}')
    loaded = machine.load()
    leaves = {path: given for path, _, given in loaded.leaves()}
    assert [str(loaded.place_of(one)) for one in leaves["model",]] == [f"{project}:3:3", f"{user}:2:3"]
    assert [one.value for one in leaves["model",]] == ["p", "u"]
    assert [loaded.tier_of(one) for one in leaves["model",]] == [Tier.PROJECT, Tier.USER]
    assert str(loaded.place_of(leaves["env", "A"][0])) == f"{user}:3:11"


def test_a_root_without_any_file_has_no_stamp(machine: Machine) -> None:
    assert machine.locations.stamp(machine.root) is None
    machine.local({})
    first = machine.locations.stamp(machine.root)
    assert first is not None
    machine.local({"model": "x"})
    assert machine.locations.stamp(machine.root) != first


def test_a_repositorys_link_out_of_it_is_not_followed(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"model": "elsewhere", "permissions": {"deny": ["Read"]}}')
    (machine.root / ".claude").mkdir()
    (machine.root / ".claude" / "settings.json").symlink_to(tmp_path / "other.json")
    loaded = machine.load()
    assert loaded.value == {}
    assert "symlink out of" in str(loaded.problems[0])
    assert load(machine.root, Locations("linux", tmp_path, machine.home, {})).value == {}


def test_settings_of_the_home_folder_are_the_users_alone(machine: Machine) -> None:
    """They are no repository's: who calls without a project is at home, and what counts there needs no trust."""
    machine.user({"model": "u", "hooks": {}, "mcpServers": {"s": {"command": "run"}}})
    check_home(machine.locations.home, machine.locations)


def test_a_home_folder_that_is_a_symlink_is_the_users_own_by_its_real_path_too(machine: Machine) -> None:
    machine.user({"model": "u", "hooks": {}, "mcpServers": {"s": {"command": "run"}}})
    linked = machine.filesystem / "linked"
    linked.symlink_to(machine.home)
    check_home(machine.home, Locations(machine.platform, machine.filesystem, linked, {}))


def check_home(root: Path, locations: Locations) -> None:
    found = load(root, locations)
    assert [one.file.tier for one in found.files] == [Tier.USER]
    assert servers_of(found, trusted=False).found[0].state is State.ENABLED
    assert executable_texts(root, locations) == {}
