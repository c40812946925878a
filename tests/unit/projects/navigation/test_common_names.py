import pytest

from serena_central.projects.navigation.common_names import is_unusual


@pytest.mark.parametrize(
    ("name", "expected"),
    [("order", False), ("Order", False), ("run", False), ("a_b", False)]
    + [(name, True) for name in ("orderLine", "OrderLine", "order_line", "Order2", "Order_Line", "ORDER", "_Order")],
)
def test_a_name_that_is_no_everyday_word_is_unusual(name: str, expected: bool) -> None:
    assert is_unusual(name) is expected
