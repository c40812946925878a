"""What `superrepo init` proposes: modules by what the files of a repository say of its parts."""

from pathlib import Path

import pytest

from serena_central.config.load import load_project_config, load_server_config
from serena_central.projects.superrepo.configuration import super_repo_of
from serena_central.projects.superrepo.proposal import PROJECT_FILE, Proposal, propose
from tests.support.central import sources_in


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root.resolve()


def found(root: Path) -> dict[str, str]:
    return {module.path: module.found_by for module in propose(root).modules}


@pytest.mark.parametrize(
    ("source", "text", "manifest"),
    [
        (".gitmodules", '[submodule "a b"]\n\tpath = parts/a_b\n\turl = x\n[submodule "c"]\n\tpath=parts/c\n', "x.go"),
        ("go.work", "go 1.21\nuse (\n\t./parts/a_b // first\n\t./parts/c\n\t../elsewhere\n)\n", "go.mod"),
        ("package.json", '{"workspaces": ["parts/*", "!parts/no"]}', "package.json"),
        ("package.json", '{"workspaces": {"packages": ["parts/a_b", "parts/c"]}}', "package.json"),
        ("pnpm-workspace.yaml", "packages:\n  - parts/*\n  - '!parts/no'\n", "package.json"),
        ("Cargo.toml", '[workspace]\nmembers = ["parts/[!n]*"]\n', "Cargo.toml"),
    ],
)
def test_modules_are_found_by_each_kind_of_list(tmp_path: Path, source: str, text: str, manifest: str) -> None:
    root = write(tmp_path / "repo", {source: text, **{f"parts/{name}/{manifest}": "" for name in ("a_b", "c", "no")}})
    (tmp_path / "elsewhere").mkdir()
    assert found(root) == {"parts/a_b": source, "parts/c": source}


def test_python_projects_are_found_where_they_lie_and_not_where_git_ignores_them(tmp_path: Path) -> None:
    files = {"services/one/pyproject.toml": "", "pyproject.toml": "", "build/two/pyproject.toml": "", ".git/HEAD": ""}
    root = write(tmp_path, {**files, ".gitignore": "build/\n", "services/one/plugins/pyproject.toml": ""})
    assert found(root) == {"services/one": "pyproject.toml"}


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"workspaces": 3}', '{"workspaces": [null, "", "/", "**x**"]}', "\udc80"]
)
def test_a_broken_list_names_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert propose(tmp_path.resolve()).modules == []


def platform(root: Path) -> Proposal:
    return propose(
        write(
            root,
            {
                ".gitmodules": "path = modules/chariot\npath = modules/chariot-ui\npath = old/chariot\n",
                "modules/chariot/backend/go.mod": "module x\n\nrequire github.com/gin-gonic/gin v1\n",
                "modules/chariot/backend/handlers/h.go": "package h\n",
                "modules/chariot/backend/handlers/i.go": "package h\n",
                "modules/chariot/README.md": "# Chariot\n\nAttack surface of the platform.\n\nOther words.\n",
                "modules/chariot-ui/package.json": '{"dependencies": {"react": "19"}}',
                "modules/chariot-ui/src/components/a.tsx": "export const a = 1\n",
                "modules/chariot-ui/src/components/a.css": "a {}\n",
                "old/chariot/x.py": "x = 1\n",
            },
        )
    )


def test_languages_concerns_hints_and_the_default_come_from_files_names_and_manifests(tmp_path: Path) -> None:
    proposal = platform(tmp_path / "super")
    said = {module.name: (module.languages, module.concerns) for module in proposal.modules}
    assert said == {
        "modules-chariot": (["go"], ["backend", "handlers", "attack", "surface", "platform"]),
        "chariot-ui": (["typescript"], ["components"]),
        "old-chariot": (["python"], []),
    }
    assert proposal.routing_hints == {
        "gin": ["modules-chariot"],
        "react": ["chariot-ui"],
        "old": ["old-chariot"],
    }
    assert (proposal.name, proposal.default_module) == ("super", "modules-chariot")


def test_the_written_proposal_is_a_configuration_without_problems_and_without_absolute_paths(tmp_path: Path) -> None:
    root = (tmp_path / "super").resolve()
    proposal = platform(root)
    text = proposal.as_yaml()
    assert str(tmp_path) not in text
    write(root, {PROJECT_FILE: text})
    loaded = load_project_config(root, load_server_config({}, sources_in(tmp_path)), sources=sources_in(tmp_path))
    repo = super_repo_of(root, loaded)
    assert repo is not None
    assert (loaded.problems, repo.problems) == ([], [])
    assert {name: module.path for name, module in repo.modules.items()} == {
        module.name: module.path for module in proposal.modules
    }
    assert repo.routing("Fix React component rendering")["module"] == "chariot-ui"
