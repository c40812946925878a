"""What the settings of a project count for that its user does not trust."""

from typing import Any

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.catalogue.permitted import Permitted

EVIL = {"command": "/evil", "executes": [], "install": []}


def permitted(own: dict[str, Any], users: dict[str, Any] | None = None, *, trusted: bool = False) -> Permitted:
    users = users or {}
    return Permitted(catalogue(), users | own, users=users, trusted=trusted)


def test_it_chooses_among_servers_and_sets_those_that_execute_nothing() -> None:
    made = permitted({"python": {"server": "ty", "settings": {"ty": {"a": 1}}}})
    assert made.settings_of("ty") == {"ty": {"a": 1}}
    assert made.problems == []
    chosen = permitted({"python": "basedpyright"}).server_for("python")
    assert chosen is not None
    assert (chosen.name, chosen.restricted) == ("basedpyright", None)


def test_what_it_says_of_a_server_that_has_to_be_restricted_does_not_count_and_is_told() -> None:
    says = {
        "rust": {"settings": {"rust-analyzer": {"cargo": {"sysroot": "./evil"}}}, "initialization_options": {"a": 1}}
    }
    made = permitted(says, {"rust-analyzer": {"settings": {"rust-analyzer": {"mine": 1}}}})
    assert made.settings_of("rust-analyzer") == {"rust-analyzer": {"mine": 1}}
    assert made.server_for("rust") == catalogue().server("rust-analyzer")
    assert [problem.key for problem in made.problems] == ["rust"]
    trusted = permitted(says, trusted=True)
    assert trusted.settings_of("rust-analyzer") == says["rust"]["settings"]
    assert trusted.problems == []


@pytest.mark.parametrize("key", ["python", "ty", "rust", "rust-analyzer"])
def test_it_never_says_what_is_run_nor_what_that_executes(key: str) -> None:
    made = permitted({key: EVIL})
    for language in ("python", "rust"):
        default = catalogue().default_server(language)
        spec = made.server_for(language)
        assert spec is not None
        assert default is not None
        if spec.restricted is not None:
            assert (spec.launch, spec.install) == (default.launch, default.install)
            assert (spec.executes, spec.untrusted) == (default.executes, default.untrusted)


def test_a_server_of_its_own_executes_everything() -> None:
    made = permitted({"mine": {"languages": ["python"], "command": "mine", "executes": []}})
    spec = made.server_for("python")
    assert spec is not None
    assert (spec.name, spec.restricted) == ("mine", None)


def test_a_server_of_its_users_is_as_they_say() -> None:
    mine = {"mine": {"languages": ["python"], "command": "/opt/mine", "executes": []}}
    spec = permitted({}, mine).server_for("python")
    assert spec is not None
    assert spec.launch.command == ("/opt/mine",)
    assert spec.restricted is not None


def test_only_what_its_user_or_the_catalogue_chose_may_be_installed() -> None:
    servers = catalogue()
    own = permitted({"typescript": "typescript-language-server"})
    assert not own.is_users(servers.server("typescript-language-server"))
    assert own.is_users(servers.server("typescript"))
    users = permitted({}, {"typescript": "typescript-language-server"})
    assert users.is_users(servers.server("typescript-language-server"))
