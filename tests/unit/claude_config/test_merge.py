"""Merging depends on the layers and their ranks alone."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from serena_central.claude_config.merge import Layer, get, merge

SINGLE = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3))
KEYS = st.sampled_from(["a", "b", "c", "deny"])
VALUES = st.recursive(
    SINGLE, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "model": SINGLE,
        "deny": st.lists(st.sampled_from(["x", "y", "z"]), max_size=3),
        "nested": st.dictionaries(KEYS, st.integers(), max_size=3),
    },
)
"""Values whose kinds agree, as those of known keys do."""


def layers_of(values: list[dict[str, Any]]) -> list[Layer]:
    """In order and strength as they stand."""
    return [Layer(str(place), (place,), (place,), value) for place, value in enumerate(values)]


@given(st.lists(OBJECTS, max_size=4), st.randoms())
def test_the_order_in_which_layers_are_given_means_nothing(values: list[dict[str, Any]], chance: random.Random) -> None:
    layers = layers_of(values)
    shuffled = chance.sample(layers, len(layers))
    assert merge(shuffled) == merge(layers)


@given(SHAPED, SHAPED, SHAPED)
def test_neighbours_may_be_merged_first(first: Any, second: Any, third: Any) -> None:
    def two(weaker: Any, stronger: Any) -> Any:
        return merge(layers_of([weaker, stronger])).value

    whole = merge(layers_of([first, second, third])).value
    assert two(two(first, second), third) == two(first, two(second, third)) == whole


@given(OBJECTS)
def test_a_layer_alone_and_a_layer_twice_are_that_layer_without_repeats(value: dict[str, Any]) -> None:
    once = merge(layers_of([value])).value
    assert merge(layers_of([value, value])).value == once
    assert merge(layers_of([once])).value == once


@given(st.lists(st.lists(st.text(max_size=4), max_size=4), max_size=4), st.randoms())
def test_deny_is_the_union_in_any_order(lists: list[list[str]], chance: random.Random) -> None:
    layers = layers_of([{"permissions": {"deny": rules}} for rules in lists])
    merged = merge(chance.sample(layers, len(layers))).value
    found = get(merged, ("permissions", "deny")) or []
    assert set(found) == {rule for rules in lists for rule in rules}
    assert len(found) == len(set(found))


@given(st.lists(OBJECTS, min_size=1, max_size=4))
def test_every_leaf_has_an_origin_that_gave_it(values: list[dict[str, Any]]) -> None:
    merged = merge(layers_of(values))
    for path, origins in merged.origins.items():
        first = origins[0]
        assert get(values[int(first.layer)], first.path) == first.value
        if not isinstance(first.value, dict | list):
            assert get(merged.value, path) == first.value


def test_where_kinds_differ_the_strongest_layers_counts_and_the_others_are_shadowed() -> None:
    merged = merge(layers_of([{"a": {"x": 1}}, {"a": [1]}, {"a": {"y": 2}}]))
    assert merged.value == {"a": {"x": 1, "y": 2}}
    assert [one.layer for one in merged.origins["a",]] == ["0", "2", "1"]
