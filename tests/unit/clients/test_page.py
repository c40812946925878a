"""The documentation says what `connect` writes."""

from pathlib import Path

from serena_central.clients.page import page


def test_the_page_is_made_of_the_clients() -> None:
    written = Path(__file__).parents[3] / "docs" / "connecting.md"
    assert written.read_text(encoding="utf-8") == page(), "run `make docs`"
