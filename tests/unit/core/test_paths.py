"""Paths as they are written: `~` is expanded in one way, which raises nothing."""

from pathlib import Path

from serena_central.core.paths import expanded

PACKAGE = Path(__file__).parents[3] / "serena_central"


def test_a_home_folder_is_put_in_place_and_that_of_no_user_stays_a_name() -> None:
    assert expanded("~/x") == Path.home() / "x"
    assert expanded("~no-such-user-anywhere/x") == Path("~no-such-user-anywhere/x")


def test_no_module_expands_paths_by_what_raises_for_an_unknown_user() -> None:
    assert [str(file) for file in PACKAGE.rglob("*.py") if ".expanduser()" in file.read_text("utf-8")] == []
