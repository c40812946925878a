"""What children inherit."""

import pytest

from serena_central.processes.environment import inherited


def test_children_do_not_get_the_token_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/secret")
    monkeypatch.setenv("SERENA_CENTRAL_DATABASE_URL", "postgresql://serena:secret@db/serena")
    monkeypatch.setenv("KEPT", "kept")
    found = inherited()
    assert found["KEPT"] == "kept"
    assert not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "SERENA_CENTRAL_DATABASE_URL"} & found.keys()
