"""`serena-central superrepo init` and `route`: what is written, what is never overwritten, what is printed."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from serena_central.cli.route import command as route
from serena_central.cli.superrepo import command as superrepo


def repository(folder: Path) -> Path:
    (folder / "parts/web").mkdir(parents=True)
    (folder / "parts/web/package.json").write_text('{"dependencies": {"react": "19"}}')
    (folder / "package.json").write_text('{"workspaces": ["parts/*"]}')
    return folder


def init(*arguments: str) -> Result:
    return CliRunner().invoke(superrepo, ["init", *arguments])


def test_a_file_that_is_there_is_replaced_by_force_alone(tmp_path: Path) -> None:
    root = repository(tmp_path)
    file = root / ".serena/project.yml"
    assert "type: super-repo" in init(str(root), "--dry-run").stdout
    assert not file.exists()
    assert init(str(root)).exit_code == 0
    assert "/project.local.yml" in (root / ".serena/.gitignore").read_text().splitlines()
    proposed = file.read_text()
    file.write_text("name: mine\n")
    refused = init(str(root))
    assert (refused.exit_code, file.read_text()) == (1, "name: mine\n")
    assert "--force" in refused.stderr
    written = json.loads(init(str(root), "--force", "--json").stdout)
    assert (written["written"], [module["path"] for module in written["modules"]]) == (True, ["parts/web"])
    assert file.read_text() == proposed


def test_where_nothing_names_modules_nothing_is_written(tmp_path: Path) -> None:
    refused = init(str(tmp_path))
    assert refused.exit_code == 1
    assert "config init" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_words_are_routed_from_any_folder_in_the_super_repo_without_a_server(tmp_path: Path) -> None:
    root = repository(tmp_path)
    init(str(root))
    inside = str(root / "parts/web")
    table = CliRunner().invoke(route, ["Fix", "React rendering", "--project", inside]).stdout
    assert table.splitlines()[1].split() == ["web", "10", "hint", "react", "+10"]
    found = json.loads(CliRunner().invoke(route, ["nothing", "--project", inside, "--json"]).stdout)
    assert (found["module"], found["by"], found["scores"]) == ("web", "default_module", [])


def test_a_file_that_can_not_be_read_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / ".serena/project.yml"
    file.parent.mkdir()
    file.write_text("type: super-repo\nmodules: [\n")
    refused = CliRunner().invoke(route, ["words", "--project", str(tmp_path)])
    assert refused.exit_code == 1
    assert f"{file}:" in refused.stderr


def test_elsewhere_nothing_is_routed(tmp_path: Path) -> None:
    refused = CliRunner().invoke(route, ["words", "--project", str(tmp_path)])
    assert refused.exit_code == 1
    assert "is not in a super-repo" in refused.stderr
