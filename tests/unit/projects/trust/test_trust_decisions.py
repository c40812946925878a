"""Whether a root is trusted: with what a person was shown of it, and no more once that changes."""

from collections.abc import Hashable, Mapping
from pathlib import Path

import pytest

from serena_central.config.load import executable_parts
from serena_central.core.errors import TrustRefused
from serena_central.projects.trust.approvals import Approvals
from serena_central.projects.trust.trust_decisions import Configuration, State, Trust

EVIL = "language_servers: {python: {command: evil}}\n"


def settings_of(root: Path, text: str) -> Path:
    (root / ".serena").mkdir(parents=True, exist_ok=True)
    (root / ".serena" / "project.yml").write_text(text)
    return root


def trust(tmp_path: Path, *trusted_roots: str) -> Trust:
    return Trust(Approvals(tmp_path / "home" / "trust.json"), trusted_roots, [Configuration(lambda _root: None)])


def test_a_repository_is_trusted_with_what_was_shown_and_no_more_when_that_changes(tmp_path: Path) -> None:
    root = settings_of(tmp_path / "repo", EVIL)
    known = trust(tmp_path)
    shown = known.standing(root)
    assert (shown.state, shown.trusted, shown.difference()) == (State.UNTRUSTED, False, "")
    assert "    command: evil" in shown.shown()
    assert known.approve(root, shown.digest, by="me").state is State.APPROVED
    assert known.is_trusted(root)
    assert trust(tmp_path).is_trusted(root)  # another process

    settings_of(root, EVIL.replace("evil", "worse"))
    changed = known.standing(root)
    assert (changed.state, changed.trusted) == (State.CHANGED, False)
    assert [line for line in changed.difference().splitlines() if line[0] in "+-"][2:] == [
        "-    command: evil",
        "+    command: worse",
    ]
    settings_of(root, EVIL)
    assert known.is_trusted(root)
    assert known.revoke(root)
    assert known.standing(root).state is State.UNTRUSTED


def test_what_changed_since_it_was_shown_is_not_approved(tmp_path: Path) -> None:
    root = settings_of(tmp_path / "repo", EVIL)
    known = trust(tmp_path)
    shown = known.standing(root)
    settings_of(root, EVIL.replace("evil", "worse"))
    with pytest.raises(TrustRefused, match="changed after it was displayed"):
        known.approve(root, shown.digest, by="me")
    assert not known.is_trusted(root)


def test_settings_that_execute_nothing_may_change(tmp_path: Path) -> None:
    root = settings_of(tmp_path / "repo", "initial_prompt: hello\n")
    known = trust(tmp_path)
    known.approve(root, known.standing(root).digest, by="me")
    settings_of(root, "initial_prompt: other\nignored_paths: [x]\n")
    assert known.is_trusted(root)
    settings_of(root, EVIL)  # it brings something for the first time
    assert known.standing(root).state is State.CHANGED


def test_what_is_allowed_is_the_text_that_was_read(tmp_path: Path) -> None:
    root = settings_of(tmp_path / "repo", EVIL)
    known = trust(tmp_path)
    read = executable_parts(root)
    assert not known.allows(root, read)
    known.approve(root, known.standing(root).digest, by="me")
    assert known.allows(root, read)
    assert not known.allows(root, {place: text + " " for place, text in read.items()})
    assert not known.allows(root, read | {str(root / "other.yml"): "language_servers: {}"})


def test_repositories_inside_do_not_inherit(tmp_path: Path) -> None:
    root = settings_of(tmp_path / "repo", EVIL)
    inside = settings_of(root / "vendor" / "foreign", EVIL)
    known = trust(tmp_path)
    known.approve(root, known.standing(root).digest, by="me")
    assert not known.is_trusted(inside)
    assert trust(tmp_path, str(root)).is_trusted(inside)  # a person said so of the folder, with all that is below


def test_what_the_settings_name_is_trusted_whatever_it_brings(tmp_path: Path) -> None:
    root = settings_of(tmp_path / "repo", EVIL)
    known = trust(tmp_path, str(tmp_path / "*"))
    assert known.standing(root).state is State.SETTINGS
    assert known.allows(root, {"any": "text"})


class Hooks:
    """Another kind of things that can execute, as a later part of the product would add it."""

    name = "hooks"

    def __init__(self) -> None:
        self.text = ""

    def parts(self, root: Path) -> Mapping[str, str]:
        return {str(root / "hooks.json"): self.text}

    def stamp(self, root: Path) -> Hashable:
        return self.text


def test_every_source_is_pinned(tmp_path: Path) -> None:
    root, hooks = settings_of(tmp_path / "repo", EVIL), Hooks()
    known = Trust(Approvals(tmp_path / "trust.json"), [], [Configuration(lambda _root: None), hooks])
    known.approve(root, known.standing(root).digest, by="me")
    hooks.text = "rm -rf"
    assert known.standing(root).state is State.CHANGED
    assert "+rm -rf" in known.standing(root).difference()
    known.approve(root, known.standing(root).digest, by="me")
    assert known.is_trusted(root)
