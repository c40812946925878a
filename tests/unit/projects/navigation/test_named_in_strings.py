"""Which strings with an everyday name in them mean a symbol."""

import re
from pathlib import Path

import pytest

from serena_central.core.text import Position, Range
from serena_central.projects.navigation.named_in_strings import named_in_strings
from serena_central.projects.navigation.places_in_code import PlaceInCode
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

MANY = 30_000


async def test_many_places_in_one_line_do_not_take_long(tmp_path: Path) -> None:
    """Of generated data a line has megabytes."""
    root = tmp_path / "root"
    root.mkdir()
    line = "x = [getattr('run', 'run'), 'jobs.run', 'to run', " + ", ".join(["{1: 'run'}"] * MANY) + "]"
    (root / "data.py").write_text(f"{line}\n")
    (root / "jobs.py").write_text("def run() -> None: ...\n")
    columns = [at for at in range(len(line)) if line.startswith("run", at)]
    places = [PlaceInCode("data.py", Range(Position(0, at), Position(0, at + 3))) for at in columns]
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        hit = await project.find_one("run", "jobs.py")
        meant, alone = await named_in_strings(project.navigation.places, hit, places)
    assert meant == places[:3]
    assert alone == places[4:]


@pytest.mark.parametrize(
    ("defined", "path", "line", "meant"),
    [
        (
            "jobs.py",
            "data.php",
            r"""$x = ['Shop\run', "\\Shop\\run", 'Shop\run::go', 'to run', 'a\ run', 'C:\x\run', 'Shop\runs']""",
            3,
        ),
        (
            "jobs.sh",
            "data.sh",
            "trap 'run 1' INT; trap \"a; run\" EXIT; bash -c 'run {}'; X_COMMAND='run'; echo 'run it'; tie-trap 'run'",
            4,
        ),
        ("jobs.py", "data.py", "x = 'after the timeout', 'run it'", 0),
    ],
    ids=["behind a namespace", "in what a shell runs", "in prose"],
)
async def test_an_everyday_name_is_meant_in_a_string(
    defined: str, path: str, line: str, meant: int, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / path).write_text(f"\n{line}\n")
    (root / defined).write_text("def run() -> None: ...\n" if defined.endswith(".py") else "run() { echo; }\n")
    columns = [found.start() for found in re.finditer(r"run\b", line)]
    places = [PlaceInCode(path, Range(Position(1, at), Position(1, at + 3))) for at in columns]
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        hit = await project.find_one("run", defined)
        found, _ = await named_in_strings(project.navigation.places, hit, places)
    assert found == places[:meant]
