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


def test_the_oldest_go_while_the_sum_of_the_sizes_is_too_large() -> None:
    lru = Lru[str, str](max_size=6, size_of=len)
    for key in ("one", "two"):
        lru[key] = key
    assert lru.get("one") == "one"
    lru["six"] = "six"
    assert list(lru) == ["one", "six"]
    lru["one"] = "longer"
    assert list(lru.values()) == ["longer"]
    lru["one"] = ""
    lru["two"] = "two"
    assert list(lru) == ["one", "two"]


def test_a_value_that_is_too_large_by_itself_is_not_kept_and_evicts_no_other() -> None:
    lru = Lru[str, str](max_size=6, size_of=len)
    lru["one"], lru["two"] = "one", "two"
    lru["two"] = "too large"
    assert list(lru) == ["one"]
    lru.clear()
    lru["one"], lru["two"] = "one", "two"
    assert list(lru) == ["one", "two"]


def test_nothing_that_is_kept_as_a_value_is_no_miss() -> None:
    lru = Lru[str, None](1)
    lru["a"] = None
    assert ("a" in lru, lru["a"], lru.get("a")) == (True, None, None)


def test_shrinking_leaves_the_newest() -> None:
    lru = Lru[str, str](max_size=9, size_of=len)
    for key in ("one", "two", "six"):
        lru[key] = key
    lru.shrink(6)
    assert list(lru) == ["two", "six"]
    lru["ten"] = "ten"
    assert list(lru) == ["two", "six", "ten"]
