"""Merges layers of settings: effective values, their origins, and what they shadow. Pure.

Objects merge deeply. Lists append in the order of loading, without repeats. Of single values that of the strongest
layer counts. Where layers disagree on the kind of a value, the strongest one's kind counts; the others are shadowed. So
the result depends on the layers and their ranks alone, and not on the order in which they are given; a list, as
`permissions.deny`, is the union of all layers'.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from serena_central.claude_config.problems import KeyPath


class Layer(NamedTuple):
    """One file's values. `order`: of loading; `strength`: of single values; both are different for each layer."""

    name: str
    order: tuple[int, ...]
    strength: tuple[int, ...]
    value: Mapping[str, Any]


class Given(NamedTuple):
    """A value as one layer gives it; `path` is where it stands in that layer."""

    layer: str
    path: KeyPath
    value: Any


class Merged(NamedTuple):
    """`value`: what counts. `origins`: leaf (an item of a list, a single value, an empty object) → who gave it, the
    first one counts, the others are shadowed or repeat it."""

    value: dict[str, Any]
    origins: dict[KeyPath, tuple[Given, ...]]


class _One(NamedTuple):
    layer: Layer
    path: KeyPath
    value: Any


def merge(layers: Iterable[Layer]) -> Merged:
    """All layers as one, in whatever order they are given."""
    ordered = sorted(layers, key=lambda layer: layer.order)
    origins: dict[KeyPath, tuple[Given, ...]] = {}
    value = _merged([_One(layer, (), dict(layer.value)) for layer in ordered], (), origins)
    return Merged(value if ordered else {}, origins)


def _merged(given: Sequence[_One], at: KeyPath, origins: dict[KeyPath, tuple[Given, ...]]) -> Any:
    """What counts of values under one key, in the order of loading."""
    if not given:
        return {}
    strongest = max(given, key=lambda one: one.layer.strength)
    kind = _kind(strongest.value)
    same = [one for one in given if _kind(one.value) == kind]
    others = [one for one in given if _kind(one.value) != kind]
    if kind == "object":
        return _object(same, others, at, origins)
    if kind == "list":
        return _list(same, others, at, origins)
    ranked = sorted(given, key=lambda one: one.layer.strength, reverse=True)
    origins[at] = tuple(map(_given, ranked))
    return strongest.value


def _object(
    same: Sequence[_One], others: Sequence[_One], at: KeyPath, origins: dict[KeyPath, tuple[Given, ...]]
) -> dict[str, Any]:
    keys = list(dict.fromkeys(key for one in same for key in cast("dict[str, Any]", one.value)))
    if not keys or others:
        origins[at] = tuple(map(_given, (*same, *others)))
    return {
        key: _merged(
            [_One(one.layer, (*one.path, key), one.value[key]) for one in same if key in one.value], (*at, key), origins
        )
        for key in keys
    }


def _list(
    same: Sequence[_One], others: Sequence[_One], at: KeyPath, origins: dict[KeyPath, tuple[Given, ...]]
) -> list[Any]:
    items: list[Any] = []
    places: dict[str, int] = {}
    givers: list[list[Given]] = []
    for one in same:
        for place, item in enumerate(cast("list[Any]", one.value)):
            form = canonical(item)
            if form not in places:
                places[form] = len(items)
                items.append(item)
                givers.append([])
            givers[places[form]].append(Given(one.layer.name, (*one.path, place), item))
    for place, found in enumerate(givers):
        origins[*at, place] = tuple(found)
    if not items or others:
        origins[at] = tuple(map(_given, (*same, *others)))
    return items


def _given(one: _One) -> Given:
    return Given(one.layer.name, one.path, one.value)


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    return "list" if isinstance(value, list) else "single"


def canonical(value: Any) -> str:
    """One text for all forms of one value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def get(value: Any, path: KeyPath) -> Any:
    """The value at a path, None where there is none."""
    for part in path:
        if isinstance(value, dict) and part in value:
            value = cast("dict[Any, Any]", value)[part]
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[part]
        else:
            return None
    return value
