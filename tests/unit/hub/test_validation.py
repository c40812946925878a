"""Schemas of other MCP servers that are made, or happen, to take very long: a check comes to an end."""

from typing import Any

import pytest

from serena_central.hub.validation import NAMES_CHARS, ArgumentChecker, problem_text

CATASTROPHIC = "^(a+)+$"
UNFIT = "a" * 40 + "b"

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def doubled(levels: int) -> dict[str, Any]:
    """A schema of 3 KB that a validator looks at 2^`levels` times."""
    parts: dict[str, Any] = {"a0": {}}
    for level in range(1, levels + 1):
        parts[f"a{level}"] = {"allOf": [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"$defs": parts, "allOf": [{"$ref": f"#/$defs/a{levels}"}]}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        pytest.param(doubled(40), {"text": "x"}, id="references-doubled"),
        pytest.param(
            {"patternProperties": {CATASTROPHIC: {}}, "additionalProperties": False}, {UNFIT: 1}, id="names-by-patterns"
        ),
        pytest.param(
            {"patternProperties": {CATASTROPHIC: {}}, "unevaluatedProperties": False}, {UNFIT: 1}, id="names-left-over"
        ),
        pytest.param(
            {"properties": {"text": {"$schema": DIALECT, "pattern": CATASTROPHIC}}},
            {"text": UNFIT},
            id="part-that-names-a-dialect",
        ),
        pytest.param(
            {"properties": {"all": {"uniqueItems": True}}},
            {"all": [{"n": number} for number in range(20_000)]},
            id="many-unlike-items",
        ),
        pytest.param(
            {"properties": {"all": {"items": {"enum": [{"n": number} for number in range(10_000)]}}}},
            {"all": [{"n": -1}] * 20_000},
            id="many-wrong-items",
        ),
    ],
)
def test_a_check_ends(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert ArgumentChecker(schema).checked(arguments)[0] == arguments


def test_problems_that_are_found_in_time_count() -> None:
    schema = {"properties": {"number": {"type": "integer"}}, **doubled(40)}
    assert ArgumentChecker(schema).checked({"number": "x"})[1] == ["number: 'x' is not of type 'integer'"]


def test_arguments_are_checked_by_a_schema_of_a_megabyte() -> None:
    checker = ArgumentChecker({"properties": {f"p{number}": {"type": "string"} for number in range(40_000)}})
    assert [checker.checked({"p7": 1})[1] for _ in range(2)] == [["p7: 1 is not of type 'string'"]] * 2


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"$ref": "#/x", "x": {"type": "foo"}}, 1, id="unknown-type"),
        pytest.param({"properties": {"value": {"multipleOf": 0.1}}}, 10**400, id="number-of-400-digits"),
        pytest.param({"properties": {"value": {"multipleOf": 0.1}}}, float("inf"), id="infinite"),
        pytest.param({"$schema": 5}, 1, id="dialect-of-a-wrong-type"),
        pytest.param({"properties": {"value": {"pattern": "a" * 100_000}}}, "b", id="pattern-of-100000-characters"),
    ],
)
def test_what_can_not_be_checked_is_left_to_the_server(schema: dict[str, Any], value: object) -> None:
    assert ArgumentChecker(schema).checked({"value": value}) == ({"value": value}, [])


def test_names_and_items_are_checked_as_the_standard_says() -> None:
    closed = {
        "properties": {"known": {}, "all": {"uniqueItems": True}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }
    checker = ArgumentChecker(closed)
    assert checker.checked({"known": 1, "x-a": "text", "all": [1, [1], {"n": 1}]})[1] == []
    assert checker.checked({"x-a": 1})[1] == ["x-a: 1 is not of type 'string'"]
    assert checker.checked({"b": 1})[1] == ["Additional properties are not allowed ('b' was unexpected)"]
    assert checker.checked({"all": [{"n": 1}, {"n": 1}]})[1] == ["all: [{'n': 1}, {'n': 1}] has non-unique elements"]
    numbers = ArgumentChecker({"properties": {"known": {}}, "additionalProperties": {"type": "integer"}})
    assert numbers.checked({"known": "x", "a": 1, "b": "x"})[1] == ["b: 'x' is not of type 'integer'"]


def test_a_refusal_names_no_hundred_thousand_parameters() -> None:
    schema = {"properties": {f"p{number}": {} for number in range(100_000)}}
    assert len(problem_text("tool", ["it is wrong"], schema)) < NAMES_CHARS + 100
