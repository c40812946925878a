"""A repository's own settings choose servers; they name no programs unless their user trusts the root."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from serena_central.config.load import Sources, executable_parts, load_project_config, load_server_config
from serena_central.config.settings import ProjectSettings
from serena_central.config.trust import named_in_settings


def loaded(tmp_path: Path, entry: Any, *, trusted: bool = False, local: bool = False) -> tuple[ProjectSettings, str]:
    """The settings of a project that says `entry` of Python's server, and all problems."""
    sources = Sources(machine=tmp_path / "etc.yml", user=tmp_path / "user.yml", environment={})
    root = tmp_path / "root"
    (root / ".serena").mkdir(parents=True)
    name = "project.local.yml" if local else "project.yml"
    (root / ".serena" / name).write_text("project_name: x\n" + yaml.safe_dump({"language_servers": {"python": entry}}))
    if trusted:
        sources.user.write_text(f"trusted_roots: [{tmp_path}]\n")
    found = load_project_config(root, load_server_config({}, sources), sources=sources)
    return found.value, "\n".join(map(str, found.problems))


@pytest.mark.parametrize(
    "entry",
    [
        "pyrefly",
        {"server": "pyrefly"},
        {"settings": {"ty": {"experimental": {"rename": True}}, "python.analysis.extraPaths": ["src"]}},
        {"initialization_options": {"diagnosticMode": "workspace", "list": [{"exclude": ["a"]}]}},
        {"initialization_options": {"typescript": {"tsserver": {"useSyntaxServer": "never"}}}},
    ],
)
def test_a_project_chooses_servers_and_how_they_analyse(tmp_path: Path, entry: Any) -> None:
    settings, problems = loaded(tmp_path, entry)
    assert settings.language_servers == {"python": entry}
    assert problems == ""


EVIL = {
    "naming": {"naming": {"scoped": "(?P<scope>(evil|a?)+)(?P<name>b)"}},
    "readiness": {"readiness": {"kind": "log", "pattern": "evil"}},
    "watch": {"watch": {"globs": ["**/evil"]}},
    "roots": {"roots": {"markers": [["evil"]]}},
    "languages": {"languages": ["evil"]},
    "command": {"command": "evil"},
    "args": {"args": ["--plugin=evil"]},
    "env": {"env": {"LD_PRELOAD": "evil"}},
    "launch": {"launch": {"command": ["evil"]}},
    "install": {"install": [{"via": "pip", "packages": ["evil==1"]}]},
    "ls_path": {"ls_path": "evil"},
    "settings.rust-analyzer.check.overrideCommand": {
        "settings": {"rust-analyzer": {"check": {"overrideCommand": ["evil"]}}}
    },
    "settings.python.pythonPath": {"settings": {"python": {"pythonPath": "evil"}}},
    "settings.gopls.buildFlags": {"settings": {"gopls": {"buildFlags": ["-toolexec=evil"]}}},
    "initialization_options.typescript.tsdk": {"initialization_options": {"typescript": {"tsdk": "evil"}}},
    "initialization_options.plugins": {"initialization_options": {"plugins": [{"name": "evil"}]}},
    "settings.a.command": {"settings": {"a": [{"command": "evil"}]}},
    "settings.rust-analyzer.procMacro.server": {"settings": {"rust-analyzer.procMacro.server": "evil"}},
}


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("key", EVIL)
def test_a_project_names_no_programs(tmp_path: Path, key: str, local: bool) -> None:
    settings, problems = loaded(tmp_path, EVIL[key], local=local)
    assert "evil" not in str(settings.language_servers)
    assert key in problems
    assert "`serena-central trust DIR`" in problems
    assert "trusted_roots" in problems
    assert ".yml:" in problems


@pytest.mark.parametrize("key", EVIL)
def test_a_trusted_project_may_say_all(tmp_path: Path, key: str) -> None:
    settings, problems = loaded(tmp_path, EVIL[key], trusted=True)
    assert settings.language_servers == {"python": EVIL[key]}
    assert problems == ""


def test_a_project_does_not_trust_itself(tmp_path: Path) -> None:
    sources = Sources(machine=tmp_path / "etc.yml", user=tmp_path / "user.yml", environment={})
    (tmp_path / ".serena").mkdir()
    (tmp_path / ".serena" / "project.yml").write_text(
        f"trusted_roots: [{tmp_path}]\nlanguage_servers: {{python: {{command: evil}}}}\n"
    )
    found = load_project_config(tmp_path, load_server_config({}, sources), sources=sources)
    assert found.value.language_servers == {"python": {}}


def test_what_is_trusted_is_what_was_read(tmp_path: Path) -> None:
    sources = Sources(machine=tmp_path / "etc.yml", user=tmp_path / "user.yml", environment={})
    file = tmp_path / ".serena" / "project.yml"
    file.parent.mkdir()
    file.write_text("language_servers: {python: {command: mine}}\n")
    asked: list[tuple[Path, dict[str, str]]] = []

    def trusts(root: Path, parts: Any) -> bool:
        asked.append((root, {place: text for place, text in parts.items() if text}))
        return True

    found = load_project_config(tmp_path, load_server_config({}, sources), sources=sources, trusts=trusts)
    assert found.value.language_servers == {"python": {"command": "mine"}}
    assert asked == [(tmp_path, executable_parts(tmp_path, sources=sources))]
    assert asked[0][1] == {str(file): "language_servers:\n  python:\n    command: mine\n"}


def test_parts_are_the_same_for_files_of_the_same_meaning_and_hide_nothing(tmp_path: Path) -> None:
    sources = Sources(machine=tmp_path / "etc.yml", user=tmp_path / "user.yml", environment={})
    file = tmp_path / ".serena" / "project.yml"
    file.parent.mkdir()
    texts: set[str] = set()
    for content in (
        "language_servers: {python: {command: &c [a, b], args: *c}, go: gopls}\n",
        "# other\nls_specific_settings:\n  go: gopls\n  python:\n    args: [a, b]\n    command: [a, b]\n",
    ):
        file.write_text(content)
        texts |= set(executable_parts(tmp_path, sources=sources).values())
    assert len(texts) == 1
    file.write_text('language_servers: {python: {command: "a\\u202eb\\nc: d"}}\n')
    (text,) = executable_parts(tmp_path, sources=sources).values()
    assert text == 'language_servers:\n  python:\n    command: "a\\u202Eb\\nc: d"\n'
    file.write_text("initial_prompt: hello\n")
    assert executable_parts(tmp_path, sources=sources) == {}


@pytest.mark.parametrize(
    ("trusted", "root", "covered"),
    [
        ("src", "src", True),
        ("src", "src/app", True),
        ("src", "src/app/vendor/foreign", True),
        ("src", "other", False),
        ("src/mine/*", "src/mine", False),
        ("src/mine/*", "src/mine/app", True),
        ("src/mine/*", "src/mine/app/sub", True),
        ("src/mine/*", "src/mine/app/vendor/foreign", False),
        ("src/mine/*", "src/app", False),
        ("src/app-*", "src/app-web", True),
        ("src/app-*", "src/application", False),
        ("src/**", "src/app/vendor/foreign", True),
        ("src/**/app", "src/app", True),
        ("src/**/app", "src/mine/app", True),
        ("src/**/app", "src/app/vendor/foreign", False),
        ("src/[a]*", "src/app", False),
    ],
)
def test_folders_and_patterns_name_what_is_trusted(tmp_path: Path, trusted: str, root: str, covered: bool) -> None:
    for repository in ("src/mine/app", "src/mine/app/vendor/foreign", "src/app", "src/app/vendor/foreign"):
        (tmp_path / repository / ".git").mkdir(parents=True)
    assert named_in_settings(tmp_path / root, [str(tmp_path / trusted)]) is covered


def test_a_link_into_a_trusted_folder_leads_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "trusted").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "trusted" / "link").symlink_to(tmp_path / "elsewhere")
    assert not named_in_settings(tmp_path / "trusted" / "link", [str(tmp_path / "trusted" / "*")])
