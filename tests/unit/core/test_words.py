"""Numbers as people read them."""

from serena_central.core.words import counted


def test_one_is_not_many() -> None:
    assert [counted(n, "call") for n in (0, 1, 12345)] == ["0 calls", "1 call", "12,345 calls"]
