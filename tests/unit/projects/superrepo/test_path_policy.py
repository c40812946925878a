"""Infrastructure is refused with the way out; modules and what belongs to agents pass."""

from pathlib import Path

import pytest

from serena_central.core.errors import ToolRefused
from serena_central.projects.superrepo.path_policy import check_path
from tests.unit.projects.superrepo.test_configuration import GOOD, super_repo


@pytest.mark.parametrize(
    "path", ["docs/guide.md", "docs", "scripts\\x.py", "./.serena/project.yml", ".github/x.yml", "/docs/x", "README.md"]
)
def test_infrastructure_is_refused_with_the_way_out(tmp_path: Path, path: str) -> None:
    with pytest.raises(ToolRefused, match=r"infrastructure of the super-repo 'platform' .* 'api', 'api-tests', 'web'"):
        check_path(super_repo(tmp_path), path)


@pytest.mark.parametrize(
    "path",
    [".", "", ".claude/x.md", "modules/api/docs/x.md", "modules/web", "modules/other/x", "modules", "docsy/x"],
)
def test_everything_else_passes(tmp_path: Path, path: str) -> None:
    check_path(super_repo(tmp_path), path)


def test_the_prefixes_are_a_setting(tmp_path: Path) -> None:
    repo = super_repo(tmp_path, GOOD + "infrastructure_prefixes: [tools/]\n")
    check_path(repo, "docs/guide.md")
    with pytest.raises(ToolRefused, match="below 'tools/'"):
        check_path(repo, "tools/x.py")


def test_a_module_below_a_prefix_passes(tmp_path: Path) -> None:
    (tmp_path / "scripts/lib").mkdir(parents=True)
    repo = super_repo(tmp_path, GOOD.replace("path: modules/web", "path: scripts/lib"))
    check_path(repo, "scripts/lib/x.py")
    with pytest.raises(ToolRefused):
        check_path(repo, "scripts/x.py")
