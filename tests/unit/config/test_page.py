from pathlib import Path

from serena_central.config.page import page


def test_the_page_of_settings_is_current() -> None:
    written = Path(__file__).parents[3] / "docs" / "settings.md"
    assert written.read_text(encoding="utf-8") == page(), "run `make docs`"
