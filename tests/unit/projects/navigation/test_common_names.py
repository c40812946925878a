import pytest

from serena_central.projects.navigation.common_names import as_argument, is_unusual


@pytest.mark.parametrize(
    ("name", "expected"),
    [("order", False), ("Order", False), ("run", False), ("a_b", False)]
    + [(name, True) for name in ("orderLine", "OrderLine", "order_line", "Order2", "Order_Line", "ORDER", "_Order")],
)
def test_a_name_that_is_no_everyday_word_is_unusual(name: str, expected: bool) -> None:
    assert is_unusual(name) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [('x.getMethod("run")', True), ("getattr(x, 'run')", True), ('  "run",', True), ('x("run", String.class)', True)]
    + [(line, False) for line in ('say("run it")', '{"run": 1}', 'x["run"]', 'name = "run"', "x(\"run')")],
)
def test_a_name_alone_in_a_string_that_a_call_takes_is_an_argument(line: str, expected: bool) -> None:
    assert (as_argument("run").search(line) is not None) is expected
