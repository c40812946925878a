"""Which folder a client's roots name. How it is asked for them is tested over HTTP in tests/integration."""

from serena_central.files.boundary import MOST_PATH_CHARS
from serena_central.mcp_server.roots import KEY, MOST_ROOTS, folder_in_answers


def folder_among(*uris: str) -> str | None:
    return folder_in_answers({KEY: {"roots": [{"uri": uri} for uri in uris]}})


def test_as_many_roots_are_looked_at_as_a_client_may_have_open() -> None:
    no_folder = "https://example.com"
    assert folder_among(*[no_folder] * (MOST_ROOTS - 1), "file:///work") == "/work"
    assert folder_among(*[no_folder] * MOST_ROOTS, "file:///work") is None


def test_a_root_that_is_longer_than_any_path_is_passed_over() -> None:
    assert folder_among("file:///" + "%C3%BC" * (MOST_PATH_CHARS - 1), "file:///work") == "/" + "ü" * (
        MOST_PATH_CHARS - 1
    )
    assert folder_among("file:///work#" + "x" * 10 * MOST_PATH_CHARS, "file:///other") == "/other"
