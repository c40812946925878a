"""The setting `trust`: a person decides about each repository, or it decides about all; managed settings fix it."""

import json
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from serena_central.claude_config.locations import Locations
from serena_central.config.load import load_server_config
from serena_central.core.errors import TrustRefused
from serena_central.core.places import Places
from serena_central.files.path_watch import PathWatch
from serena_central.projects.root_settings import RootSettings
from serena_central.projects.trust.trust_decisions import State
from tests.support.central import sources_in

EVIL = "language_servers: {python: {command: evil}}\n"


class Box:
    def __init__(self, folder: Path, watch: PathWatch) -> None:
        self.folder = folder
        self.watch = watch
        self.root = folder / "home" / "repo"
        (self.root / ".serena").mkdir(parents=True)
        (self.root / ".serena" / "project.yml").write_text(EVIL)

    def settings(self, **own: object) -> RootSettings:
        loaded = load_server_config(own, sources_in(self.folder))
        locations = Locations("linux", self.folder, self.folder / "home", {})
        return RootSettings(loaded, Places(self.folder / "central"), watch=self.watch, locations=locations)

    def managed(self, text: str) -> None:
        file = self.folder / "etc" / "claude-code" / "managed-settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def box(tmp_path: Path) -> Generator[Box]:
    with closing(PathWatch()) as watch:
        yield Box(tmp_path, watch)


def test_never_outweighs_approvals_and_named_folders(box: Box) -> None:
    asking = box.settings().trust
    asking.approve(box.root, asking.standing(box.root).digest, by="me")
    assert asking.is_trusted(box.root)
    never = box.settings(trust="never", trusted_roots=[str(box.root)]).trust
    assert never.standing(box.root).state is State.NEVER
    assert not never.is_trusted(box.root)
    assert not never.allows(box.root, {})
    with pytest.raises(TrustRefused, match="trust is never in your settings"):
        never.approve(box.root, never.standing(box.root).digest, by="me")


def test_always_asks_nobody(box: Box) -> None:
    always = box.settings(trust="always")
    assert always.trust.standing(box.root).state is State.ALWAYS
    assert "evil" in str(always.read(box.root).value.language_servers)


def test_managed_settings_fix_it_from_the_next_call_on(box: Box) -> None:
    settings = box.settings(trust="always")
    before = settings.stamp(box.root)
    assert settings.trust.is_trusted(box.root)
    box.managed('{"trust": "never"}')
    assert not settings.trust.is_trusted(box.root)
    assert "evil" not in str(settings.read(box.root).value.language_servers)
    assert settings.stamp(box.root) != before
    with pytest.raises(TrustRefused, match=r"managed-settings\.json:1:2"):
        settings.trust.approve(box.root, settings.trust.standing(box.root).digest, by="me")
    box.managed('{"trust": "prompt"}')
    assert settings.trust.standing(box.root).state is State.UNTRUSTED


@pytest.mark.parametrize("text", ['{"trust": "never", "env": {', '{"schemaVersion": 99, "trust": "never"}'])
def test_a_broken_file_lifts_no_never(box: Box, text: str) -> None:
    box.managed(text)
    assert not box.settings(trust="always").trust.is_trusted(box.root)


def test_a_repository_does_not_trust_itself(box: Box) -> None:
    (box.root / ".claude").mkdir()
    for name in ("settings.json", "settings.local.json"):
        (box.root / ".claude" / name).write_text(json.dumps({"trust": "always"}))
    settings = box.settings()
    assert not settings.trust.is_trusted(box.root)
    found = settings.claude.of(box.root)
    assert found is not None
    assert ["managed settings alone" in str(problem) for problem in found.problems] == [True, True]
    assert "trust" not in found.value


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
def test_what_another_user_puts_above_a_trusted_root_holds_it_back_until_it_is_gone(box: Box) -> None:
    trusting = {"trusted_roots": [str(box.root)]}
    settings, always = box.settings(**trusting), box.settings(trust="always")
    before = settings.stamp(box.root)
    cargo = box.root.parent / ".cargo"
    cargo.mkdir()
    (cargo / "config.toml").write_text("")
    assert settings.read(box.root).trusted
    os.chown(cargo, 65534, -1)
    assert settings.stamp(box.root) != before
    found = settings.read(box.root)
    assert (found.trusted, found.value.language_servers) == (False, {"python": {}})
    assert settings.trust.is_trusted(box.root)
    assert settings.strangers_above(box.root) == cargo / "config.toml"
    assert always.read(box.root).trusted
    (cargo / "config.toml").unlink()
    assert settings.stamp(box.root) == before
    assert settings.read(box.root).trusted
