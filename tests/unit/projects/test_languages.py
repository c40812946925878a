"""What becomes of servers when the settings of a project change."""

from pathlib import Path
from typing import Any

import pytest

from serena_central.projects.languages import ProjectLanguages
from tests.support.registries import Registered

pytestmark = pytest.mark.anyio


def languages(world: Registered, root: Path, **chosen: Any) -> ProjectLanguages:
    return ProjectLanguages(root, world.pool, world.places, trusted=True, chosen=chosen)


@pytest.mark.parametrize(
    ("chosen", "stays"),
    [
        ({}, True),
        ({"go": {"memory_mb": 5}}, True),
        ({"python": {"settings": {"ty": {"a": 1}}}}, False),
        ({"ty": {"launch": {"env": {"A": "1"}}}}, False),
        ({"python": "pyrefly"}, False),
    ],
)
async def test_a_server_stays_unless_what_was_said_of_it_changed(
    tmp_path: Path, chosen: dict[str, Any], stays: bool
) -> None:
    world = Registered(tmp_path)
    before = languages(world, tmp_path)
    spec = before.spec_for("a.py")
    assert spec
    wanted = before.wanted(spec, "a.py")
    assert (languages(world, tmp_path, **chosen).key_now(wanted) == wanted.key) is stays


async def test_what_has_no_effect_is_among_the_problems(tmp_path: Path) -> None:
    world = Registered(tmp_path)
    made = ProjectLanguages(
        tmp_path, world.pool, world.places, trusted=True, languages=["cobol", "golang"], chosen={"python": "tie"}
    )
    assert [problem.key for problem in made.problems] == ["python", "languages"]
    assert made.language_of("a.go") == "go"
    assert made.language_of("a.py") is None
