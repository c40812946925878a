"""What was used last stays."""

from serena_central.core.lru import Lru


def test_what_was_not_used_for_longest_goes_first() -> None:
    lru = Lru[str, int](2)
    lru["a"], lru["b"] = 1, 2
    assert lru.get("a") == 1
    lru["c"] = 3
    assert ("a" in lru, "b" in lru, "c" in lru, len(lru)) == (True, False, True, 2)
    lru["a"] = 4
    lru["d"] = 5
    assert (lru.get("c"), lru.get("a")) == (None, 4)


def test_what_is_discarded_is_gone_and_nothing_is_no_failure() -> None:
    lru = Lru[str, int](1)
    lru["a"] = 1
    lru.discard("a")
    lru.discard("a")
    assert (len(lru), lru.get("a")) == (0, None)
