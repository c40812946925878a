"""A repository's own settings choose servers; they name no programs unless their user trusts the root."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from serena_central.config.load import Sources, load_project_config, load_server_config
from serena_central.config.settings import ProjectSettings


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
        {
            "readiness": {"cap_s": 5},
            "initialization_options": {"typescript": {"tsserver": {"useSyntaxServer": "never"}}},
        },
    ],
)
def test_a_project_chooses_servers_and_how_they_analyse(tmp_path: Path, entry: Any) -> None:
    settings, problems = loaded(tmp_path, entry)
    assert settings.language_servers == {"python": entry}
    assert problems == ""


EVIL = {
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
