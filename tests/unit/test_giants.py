"""What `make bench ARGS=giants` asks of a giant."""

import pytest

from benchmarks.giant_sources import GIANTS
from serena_central.tools.families import CATALOGUE


@pytest.mark.parametrize("name", GIANTS)
def test_every_tool_that_reads_a_project_is_asked_with_arguments_that_it_takes(name: str) -> None:
    tools = [tool for name in CATALOGUE.names() if (tool := CATALOGUE.get(name)) is not None]
    asked = list(GIANTS[name].broad)
    reading = {tool.name for tool in tools if tool.read_only and tool.on_project}
    assert reading - {tool for tool, _ in asked} == {"read_memory"}, (
        "what it answers with is no matter of the project's size"
    )
    for tool, arguments in asked:
        found = CATALOGUE.get(tool)
        assert found is not None
        found.parse(dict(arguments))
