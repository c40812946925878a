"""From one signature come a tool's schema, the check of its arguments, and what agents are told."""

import json
import re
from types import ModuleType
from typing import Annotated, Any

import pytest
from msgspec import Meta

from serena_central.core.errors import InvalidArguments
from serena_central.tools import call as _families  # noqa: F401 - importing it fills the catalogue
from serena_central.tools.catalogue import Catalogue, Tool, tools_in
from serena_central.tools.catalogue import tool as make_tool
from serena_central.tools.families import CATALOGUE

EVERY_TOOL = pytest.mark.parametrize("tool", list(CATALOGUE), ids=lambda tool: tool.name)


def find_symbol() -> Tool:
    tool = CATALOGUE.get("find_symbol")
    assert tool is not None
    return tool


@EVERY_TOOL
def test_every_tool_and_parameter_is_described(tool: Tool) -> None:
    assert tool.title
    assert tool.description
    shared = {"project", "semantic_context"}
    assert all(part.get("description") for name, part in tool.schema["properties"].items() if name not in shared)
    assert shared <= tool.schema["properties"].keys() or not tool.on_project
    assert shared <= {*tool.params.__struct_fields__}


@EVERY_TOOL
def test_descriptions_of_parameters_name_no_parameter_that_the_tool_has_not(tool: Tool) -> None:
    of_all = {name for one in CATALOGUE for name in one.schema["properties"] if "_" in name}
    own = tool.schema["properties"]
    words = {word for part in own.values() for word in re.findall(r"\w+", part.get("description", ""))}
    assert (words & of_all) - own.keys() == set()


def test_what_all_tools_take_is_described_once() -> None:
    described = CATALOGUE.get("list_projects")
    assert described is not None
    assert "project (name or path" in described.description
    assert "semantic_context (" in described.description


@EVERY_TOOL
def test_a_schema_declares_its_defaults_and_a_type_for_each_parameter(tool: Tool) -> None:
    defaults = tool.parse(
        {name: None for name in tool.params.__struct_fields__ if name not in required(tool)} | required(tool)
    )
    for name, part in tool.schema["properties"].items():
        assert isinstance(part["type"], str), name
        assert isinstance(part.get("items", {"type": ""})["type"], str), name
        if name not in required(tool) and defaults[name] is not None:
            assert part["default"] == defaults[name], name


def required(tool: Tool) -> dict[str, Any]:
    """Any arguments that a tool takes."""
    some = {"string": "literal", "integer": 1, "array": [], "number": 1, "boolean": True}
    return {name: some[tool.schema["properties"][name]["type"]] for name in tool.schema.get("required", ())}


@EVERY_TOOL
def test_schemas_are_flat_objects_without_references_and_nulls(tool: Tool) -> None:
    text = json.dumps(tool.schema)
    assert tool.schema["type"] == "object"
    assert "$ref" not in text
    assert '"null"' not in text
    assert not any(part.get("default", "none") is None for part in tool.schema["properties"].values())


def test_optional_tools_are_those_that_prompts_do_not_expect() -> None:
    assert {tool.name for tool in CATALOGUE if tool.shown == "optional"} == {
        "delete_lines",
        "check_references",
        "dependency_graph",
        "execute_shell_command",
        "find_all_symbols",
        "find_unused_symbols",
        "get_call_hierarchy",
        "get_diagnostics_for_symbol",
        "get_type_hierarchy",
        "insert_at_line",
        "list_queryable_projects",
        "query_project",
        "refactoring_report",
        "remove_project",
        "replace_in_files",
        "replace_lines",
        "restart_language_server",
        "task",
        "task_result",
    }


def test_defaults_are_filled_in() -> None:
    assert find_symbol().parse({"name_path_pattern": "Foo"}) == {
        "name_path_pattern": "Foo",
        "depth": 0,
        "relative_path": "",
        "include_body": False,
        "include_info": False,
        "include_kinds": [],
        "exclude_kinds": [],
        "substring_matching": False,
        "max_matches": -1,
        "limit": None,
        "cursor": "",
        "max_answer_chars": -1,
        "project": None,
        "semantic_context": None,
    }


@pytest.mark.parametrize("name", ["name_path_pattern", "name_path", "symbol", "name"])
def test_a_symbol_may_be_named_by_any_alias(name: str) -> None:
    assert find_symbol().parse({name: "Foo"})["name_path_pattern"] == "Foo"


def test_aliases_are_not_listed() -> None:
    assert not {"name_path", "symbol", "name", "semanticContext"} & find_symbol().schema["properties"].keys()


def test_null_means_not_given() -> None:
    parsed = find_symbol().parse({"name_path_pattern": "Foo", "relative_path": None, "depth": None, "project": None})
    assert (parsed["relative_path"], parsed["depth"], parsed["project"]) == ("", 0, None)


def test_numbers_and_truths_may_come_as_text() -> None:
    parsed = find_symbol().parse({"name_path_pattern": "Foo", "depth": "2", "include_body": "true"})
    assert (parsed["depth"], parsed["include_body"]) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "name_path_pattern"),
        ({"name_path_pattern": None}, "name_path_pattern"),
        ({"name_path_pattern": "Foo", "colour": "red"}, "no parameter 'colour'"),
        (
            {"name_path_pattern": "Foo", "depth": "deep"},
            'depth must be an integer of at least 0 and at most 20, not "deep"',
        ),
        ({"name_path_pattern": "Foo", "depth": -1}, "depth must be an integer of at least 0 and at most 20, not -1"),
        ({"name_path_pattern": ["Foo"]}, "name_path_pattern must be a string"),
        ({"depth": "x" * 999}, 'name_path_pattern is required .*depth must be .*, not "x{59}…'),
        ({"name_path_pattern": "Foo", "name": "Bar"}, "name_path_pattern.*twice"),
        ({"symbol": "Foo", "name": "Bar"}, "name_path_pattern.*twice"),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_allowed(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArguments, match=says) as caught:
        find_symbol().parse(arguments)
    assert "include_body" in str(caught.value)


def test_an_ignored_argument_is_dropped() -> None:
    tool = CATALOGUE.get("activate_project")
    assert tool is not None
    assert tool.parse({"project": "app", "session": "x"})["project"] == "app"


def test_a_tool_is_found_by_its_other_name() -> None:
    @make_tool("Test", also=("old_name",), reads=False, destructive=True)
    async def new_name(call: object, count: Annotated[int | None, Meta(description="How many")] = None) -> None:
        """Does nothing."""

    module = ModuleType(__name__)
    module.__dict__["new_name"] = new_name
    catalogue = Catalogue(tools_in(module))
    tool = catalogue.get("old_name")
    assert tool is catalogue.get("new_name")
    assert tool is not None
    assert (tool.read_only, tool.destructive, tool.idempotent) == (False, True, False)
    assert tool.schema["properties"]["count"] == {"type": "integer", "description": "How many"}
    assert catalogue.names() == ["new_name"]
