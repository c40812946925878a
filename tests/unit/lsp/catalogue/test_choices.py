"""What users say of language servers, laid over the catalogue."""

from typing import Any

import pytest

from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.catalogue.choices import Choices


def choices(asked: dict[str, Any]) -> Choices:
    return Choices(catalogue(), asked)


def server(asked: dict[str, Any], language: str = "python") -> ServerSpec:
    made = choices(asked)
    assert made.problems == []
    spec = made.server_for(language)
    assert spec is not None
    return spec


def test_without_settings_each_language_has_its_default_server() -> None:
    assert server({}).name == "ty"
    assert choices({}).server_for("sql") is None


def test_a_name_chooses_another_server_of_the_catalogue() -> None:
    assert server({"python": "pyrefly"}).name == "pyrefly"
    assert server({"python": {"server": "basedpyright"}}) == catalogue().server("basedpyright")
    assert server({"javascript": "vtsls"}, "typescript").name == "vtsls"
    assert server({"sql": "sqls"}, "sql").name == "sqls"


def test_a_command_replaces_that_of_the_entry_whose_program_it_is() -> None:
    spec = server({"python": {"command": "/opt/ty"}})
    assert (spec.name, spec.launch.command) == ("ty", ("/opt/ty", "server"))
    assert spec.documents == catalogue().server("ty").documents
    spec = server({"python": {"ls_path": "/opt/pyrefly", "args": ["lsp"]}})
    assert (spec.name, spec.launch.command) == ("pyrefly", ("/opt/pyrefly", "lsp"))


def test_an_unknown_program_becomes_a_server_of_its_own() -> None:
    spec = server({"python": {"command": "pylsp", "args": ["-v"], "env": {"A": "1"}}})
    assert (spec.name, spec.launch.command, spec.launch.env) == ("pylsp", ("{bin:pylsp}", "-v"), {"A": "1"})
    assert "**/*.py" in spec.watch.globs


def test_the_full_form_is_laid_over_an_entry_table_by_table() -> None:
    made = choices({"ty": {"memory_mb": 900, "readiness": {"cap_s": 5}, "settings": {"ty": {"a": 1}}}})
    spec = made.server_for("python")
    assert spec
    assert (spec.memory_mb, spec.readiness.cap_s, spec.roots) == (900, 5, catalogue().server("ty").roots)
    assert made.settings_of("ty") == {"ty": {"a": 1}}
    assert made.problems == []


def test_settings_of_a_language_are_those_of_its_server() -> None:
    assert choices({"go": {"settings": {"gopls": {"staticcheck": True}}}}).settings_of("gopls")


def test_a_server_of_ones_own_serves_the_languages_that_it_names() -> None:
    spec = server({"mine": {"languages": ["javascript"], "command": "mine-ls"}}, "typescript")
    assert (spec.name, spec.languages) == ("mine", ("typescript",))
    assert server({"mine": {"languages": ["go"], "command": "mine-ls"}, "python": "ty"}, "go").name == "mine"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"python": "pyls"}, "pyls is no longer supported; ty is used instead"),
        ({"rls": {"memory_mb": 900}}, "rls is no longer supported; rust-analyzer is used instead"),
    ],
)
def test_dead_names_are_replaced_with_a_warning(asked: dict[str, Any], says: str) -> None:
    made = choices(asked)
    assert [problem.text for problem in made.problems] == [says]
    assert (made.server_for("python") or made).__class__ is ServerSpec


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("pithon", {"settings": {}}, "not a known language or server"),
        ("python", {"server": "tie"}, "is not a known language server"),
        ("python", {"srever": "ty"}, "srever: unknown option"),
        ("python", {"readiness": {"kind": "magic"}}, r"Invalid enum value 'magic' .*readiness.kind"),
        ("python", {"memory_mb": "much"}, "Expected `int`"),
        ("python", {"readiness": {"kap_s": 1}}, "unknown field `kap_s`"),
        ("python", 5, "Expected `object`"),
        ("python", {"command": []}, "must name a program"),
        ("python", {"command": "a\0b"}, "NUL"),
        ("python", {"env": ["A"]}, "Expected `object`"),
        ("python", {1: 2}, "Expected `str`"),
        ("mine", {"languages": ["cobol"], "command": "x"}, "'cobol' is not a known language"),
        ("sql", {"settings": {}}, "has no server in the catalogue"),
    ],
)
def test_what_has_no_effect_is_said_and_the_rest_stays(key: str, value: Any, says: str) -> None:
    import re

    made = choices({key: value})
    assert [problem.key for problem in made.problems] == [key]
    assert re.search(says, made.problems[0].text)
    kept = made.server_for("python")
    assert kept
    assert kept.name == "ty" or key == "python"
