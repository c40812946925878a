"""What the pages point to is there: other pages, their headings, files and tests."""

import re
import tomllib
from pathlib import Path

import pytest

from serena_central.config.profiles import load_profiles
from serena_central.symbols.syntax.grammars import GRAMMARS

ROOT = Path(__file__).parents[2]

PAGES = [
    page for folder in (".", "docs", "benchmarks", "tests/browser") for page in sorted((ROOT / folder).glob("*.md"))
]


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if path.startswith("http"):
            continue
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE) if heading else []
        assert not heading or heading in map(anchor, headings), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_and_tests_are_there(page: Path) -> None:
    named = re.findall(
        r"`((?:tests/|unit/|integration/|scripts/|serena_central/)[\w/.-]+\.\w+)(?:::(\w+))?`", page.read_text("utf-8")
    )
    for path, test in named:
        file = ROOT / ("tests" if path.startswith(("unit/", "integration/")) else "") / path
        assert file.is_file(), path
        assert not test or f"def {test}(" in file.read_text("utf-8"), test


def test_all_modes_contexts_and_languages_by_syntax_are_named() -> None:
    profiles = load_profiles()
    proxy = (ROOT / "docs" / "proxy.md").read_text("utf-8")
    assert [name for name in (*profiles.modes, *profiles.contexts) if f"`{name}`" not in proxy] == []
    servers = (ROOT / "docs" / "language-servers.md").read_text("utf-8")
    assert [one.title for one in GRAMMARS.values() if not re.search(rf"\b{re.escape(one.title)}(?!\w)", servers)] == []


def test_packages_stand_in_the_order_of_their_imports() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = (one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    level = {
        name: number
        for number, layer in enumerate(contract["layers"])
        for name in re.findall(r"serena_central\.(\w+)", layer)
    }
    shown = re.findall(r"^\| `(\w+)/` \|", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(one.parent.name for one in (ROOT / "serena_central").glob("*/__init__.py"))
    layered = [name for name in shown if name in level and name not in ("sdk", "testing")]
    assert layered == sorted(layered, key=lambda name: -level[name])


def test_all_modules_of_the_hub_are_named() -> None:
    _, _, after = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("\n## The hub\n")
    rows = re.findall(r"^\| (`.*?) \|", after.partition("\n## ")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {one.stem for one in (ROOT / "serena_central" / "hub").glob("[!_]*.py")}
