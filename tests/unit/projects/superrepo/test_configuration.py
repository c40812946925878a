"""A super-repo's project.yml: what is right works, what is wrong is told with file, line and key."""

import os
from pathlib import Path

import pytest

from serena_central.config.load import load_project_config, load_server_config
from serena_central.projects.root_settings import SuperRepos
from serena_central.projects.superrepo.configuration import SuperRepo, super_repo_of
from tests.support.central import sources_in

GOOD = """\
name: platform
type: super-repo
default_module: api
modules:
  api:
    path: modules/api
    languages: [go]
    concerns: [backend]
  api-tests:
    path: modules/api/tests
  web:
    path: modules/web
routing_hints:
  react: [web]
"""


def write(root: Path, text: str) -> Path:
    for folder in ("modules/api/tests", "modules/web", ".serena", "docs"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / ".serena/project.yml").write_text(text)
    return root.resolve()


def read(root: Path) -> SuperRepo | None:
    server = load_server_config({}, sources_in(root))
    return super_repo_of(root, load_project_config(root, server, sources=sources_in(root)))


def super_repo(root: Path, text: str = GOOD) -> SuperRepo:
    found = read(write(root, text))
    assert found is not None
    return found


def test_modules_are_projects_with_names_and_roots(tmp_path: Path) -> None:
    repo = super_repo(tmp_path)
    assert (repo.name, repo.problems) == ("platform", [])
    assert {module.name: module.path for module in repo.modules.values()} == {
        "api": "modules/api",
        "api-tests": "modules/api/tests",
        "web": "modules/web",
    }
    assert repo.default_module == repo.modules["api"]


def test_a_path_leads_to_its_deepest_module(tmp_path: Path) -> None:
    repo = super_repo(tmp_path)
    found = {
        path: module.name if (module := repo.module_of(path)) else None
        for path in (
            "modules/api/x.go",
            "modules\\api\\tests\\x.go",
            "./modules/web/../api/tests",
            "modules/website",
            "docs/x.md",
            "../modules/api",
        )
    }
    assert list(found.values()) == ["api", "api-tests", "api-tests", None, None, None]


def test_a_plain_project_is_no_super_repo(tmp_path: Path) -> None:
    assert read(write(tmp_path, "name: platform\n")) is None


def test_what_is_wrong_is_told_and_the_rest_works(tmp_path: Path) -> None:
    text = """\
type: super-repo
default_module: apj
modules:
  out:
    path: ../elsewhere
  root:
    path: .
  absolute:
    path: /etc
  missing:
    path: modules/missing
  broken: 7
  web:
    path: modules/web
  gits:
    path: modules/web/.git
routing_hints:
  react: [web, vue]
"""
    (tmp_path / "modules/web/.git").mkdir(parents=True)
    repo = super_repo(tmp_path, text)
    assert list(repo.modules) == ["web"]
    assert [str(problem).replace(str(tmp_path), "") for problem in repo.problems] == [
        "/.serena/project.yml:4: modules.out: path '../elsewhere' leads out of the super-repo, or is its root",
        "/.serena/project.yml:6: modules.root: path '.' leads out of the super-repo, or is its root",
        "/.serena/project.yml:8: modules.absolute: path '/etc' must be relative to the super-repo's root",
        (
            "/.serena/project.yml:10: modules.missing: path 'modules/missing' is not a folder (a submodule that is not "
            "checked out?)"
        ),
        "/.serena/project.yml:15: modules.gits: path 'modules/web/.git' is inside .git, where no project can be",
        "/.serena/project.yml:18: routing_hints.react: 'vue' is not a module",
        "/.serena/project.yml:2: default_module: 'apj' is not a module",
    ]
    server = load_server_config({}, sources_in(tmp_path))
    (broken,) = load_project_config(tmp_path, server, sources=sources_in(tmp_path)).problems
    assert str(broken).startswith(f"{tmp_path}/.serena/project.yml:12: modules.broken: must be a mapping")


def test_a_module_is_opened_under_its_name_and_the_root_without_their_files(tmp_path: Path) -> None:
    repo = super_repo(tmp_path)
    server = load_server_config({}, sources_in(tmp_path))
    plain = load_project_config(tmp_path / "modules/api", server, sources=sources_in(tmp_path)).value
    api = repo.settings_in(repo.modules["api"].root, plain)
    assert (api.project_name, api.languages) == ("api", ["go"])
    assert repo.settings_in(repo.root, plain).ignored_paths == ["/modules/api/", "/modules/api/tests/", "/modules/web/"]
    assert repo.settings_in(repo.root / "docs", plain) == plain


def test_a_change_of_the_file_is_seen_by_the_next_call(tmp_path: Path) -> None:
    root = write(tmp_path, GOOD)
    server = load_server_config({}, sources_in(tmp_path))
    read_anew: list[list[str]] = []
    repos = SuperRepos(
        lambda at: load_project_config(at, server, sources=sources_in(tmp_path)),
        changed=lambda repo: read_anew.append(list(repo.modules)),
    )
    inside = root / "modules/web/src"
    first = repos.around(inside)
    assert first is not None
    assert repos.around(inside) is first
    write(root, GOOD.replace("  web:\n    path: modules/web\n", ""))
    second = repos.around(inside)
    assert second is not None
    assert read_anew == [["api", "api-tests", "web"], ["api", "api-tests"]]
    (root / ".serena/project.yml").unlink()
    assert repos.around(inside) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_what_somebody_else_put_above_a_project_makes_no_super_repo_of_it(tmp_path: Path) -> None:
    root = write(tmp_path, GOOD)
    server = load_server_config({}, sources_in(tmp_path))
    inside = root / "modules/web"
    inside.mkdir(parents=True, exist_ok=True)

    def around() -> object:
        return SuperRepos(lambda at: load_project_config(at, server, sources=sources_in(tmp_path))).around(inside)

    assert around() is not None
    os.chown(root / ".serena/project.yml", 65534, -1)
    assert around() is None
    os.chown(inside, 65534, -1)
    assert around() is not None, "who owns the project may configure it"
