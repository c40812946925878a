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
    assert {path: name for path, name in found(root).items() if path != "parts/no"} == dict.fromkeys(
        ("parts/a_b", "parts/c"), source
    )
    assert ("parts/no" in found(root)) is (manifest != "x.go" and "!parts/no" not in text)


def test_python_projects_are_found_where_they_lie_and_not_where_git_ignores_them(tmp_path: Path) -> None:
    files = {"services/one/pyproject.toml": "", "pyproject.toml": "", "build/two/pyproject.toml": "", ".git/HEAD": ""}
    root = write(tmp_path, {**files, ".gitignore": "build/\n", "services/one/plugins/pyproject.toml": ""})
    assert found(root) == {"services/one": "pyproject.toml"}
    reasons = dict(propose(root).left_out)
    assert reasons == {"services/one/plugins": "has a pyproject.toml, but is part of services/one"}


MANY = {
    "go.work": "go 1.21\n\nuse (\n\t./services/billing\n\t./services/gone\n)\n",
    ".gitmodules": "path = modules/risk\npath = modules/risk-models\npath = modules/absent\n",
    "modules/risk/.git": "gitdir: ../../.git/modules/risk\n",
    "modules/risk/risk/score.py": "def score() -> int: ...\n",
    "modules/risk-models/.git": "gitdir: ../../.git/modules/risk-models\n",
    "modules/risk-models/models/tree.py": "class Tree: ...\n",
    "services/billing/go.mod": "module example.com/billing\n",
    "services/billing/invoices/invoice.go": "package invoices\n",
    "services/billing/tools/go.mod": "module example.com/billing/tools\n",
    "services/mail/backend/go.mod": "module example.com/mail\n",
    "services/mail/backend/queue/queue.go": "package queue\n",
    "crates/hasher/Cargo.toml": '[package]\nname = "hasher"\n',
    "crates/hasher/src/lib.rs": "pub fn hash() {}\n",
    "crates/parser/Cargo.toml": '[package]\nname = "parser"\n',
    "crates/parser/src/lib.rs": "pub fn parse() {}\n",
    "native/CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(native)\nadd_subdirectory(codec)\n",
    "native/codec/CMakeLists.txt": "add_library(codec codec.cpp)\n",
    "native/codec/codec.cpp": "int decode() { return 1; }\n",
    "native/README.md": "# Native\n\nVideo transcoding.\n",
    "web/package.json": '{"name": "web"}',
    "web/apps/shop/package.json": '{"name": "shop"}',
    "web/apps/shop/src/page.ts": "export const page = 1;\n",
    "web/apps/admin/package.json": '{"name": "admin"}',
    "web/apps/admin/src/page.ts": "export const page = 1;\n",
    "py/scoring/setup.py": "from setuptools import setup\n",
    "py/scoring/scoring/main.py": "def main() -> None: ...\n",
    "jvm/ledger/build.gradle.kts": "plugins {}\n",
    "jvm/ledger/src/Ledger.java": "class Ledger {}\n",
    ".claude/hooks/check.py": "def check() -> None: ...\n",
    ".claude/tools/package.json": '{"name": "tools"}',
    "checkouts/other/.git/HEAD": "ref: refs/heads/main\n",
    "checkouts/other/other.py": "def other() -> None: ...\n",
    "trees/feature/.git": "gitdir: /src/.git/worktrees/feature\n",
    "third_party/zlib/CMakeLists.txt": "project(zlib)\n",
    ".github/actions/lint/package.json": "{}",
    "scripts/deploy.py": "def deploy() -> None: ...\n",
    "conftest.py": "",
}


def test_all_modules_are_found_however_they_are_made_and_the_others_are_told_with_the_reason(tmp_path: Path) -> None:
    root = write(tmp_path / "platform", MANY)
    (root / "modules/absent").mkdir()
    assert found(root) == {
        ".claude": ".claude",
        "checkouts/other": ".git",
        "crates/hasher": "Cargo.toml",
        "crates/parser": "Cargo.toml",
        "jvm/ledger": "build.gradle.kts",
        "modules/risk": ".gitmodules",
        "modules/risk-models": ".gitmodules",
        "native": "CMakeLists.txt",
        "py/scoring": "setup.py",
        "services/billing": "go.work",
        "services/mail/backend": "go.mod",
        "web/apps/admin": "package.json",
        "web/apps/shop": "package.json",
    }
    proposal = propose(root)
    assert dict(proposal.left_out) == {
        ".": "1 file with code outside the modules",
        ".claude/tools": "has a package.json, but is part of .claude",
        ".github/actions/lint": "has a package.json, but is inside a hidden folder",
        "modules/absent": ".gitmodules names it, but it is not checked out (git submodule update --init)",
        "scripts": "1 file with code, but no package manifest",
        "services/billing/tools": "has a go.mod, but is part of services/billing",
        "services/gone": "go.work names it, but the folder does not exist",
        "third_party/zlib": "has a CMakeLists.txt, but is inside third_party",
        "trees/feature": "a worktree: a copy of a repository",
        "web": "contains modules, but no code of its own",
    }
    modules = {module.path: module for module in proposal.modules}
    assert (modules[".claude"].name, modules["native"].concerns) == ("claude", ["codec", "video", "transcoding"])
    text = proposal.as_yaml()
    assert "#   web: contains modules, but no code of its own\n" in text
    write(root, {PROJECT_FILE: text})
    repo = super_repo_of(root, load_project_config(root, load_server_config({}, sources_in(tmp_path))))
    assert repo is not None
    assert (len(repo.modules), repo.problems) == (13, [])


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
