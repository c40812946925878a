"""Close names: other conventions, misspellings, parts; nearest first, and none that is far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.symbols.similar_names import nearest

NAMES = ["get_user", "GetUser", "get_users", "getUsre", "user", "set_user", "schedule_timeout", "timeout", "x"]


@pytest.mark.parametrize(
    ("wanted", "close"),
    [
        ("getUser", ["GetUser", "get_user", "getUsre", "set_user", "get_users"]),
        ("schedule_timout", ["schedule_timeout"]),
        ("sheduel_timeout", ["schedule_timeout"]),
        ("timeouts", ["timeout"]),
        ("schedule", ["schedule_timeout"]),
        ("y", []),
        ("_", []),
        ("y" * 1000, []),
    ],
)
def test_the_nearest_names_come_first(wanted: str, close: list[str]) -> None:
    assert nearest(wanted, NAMES) == close


@given(st.text("abcdefgh", min_size=6, max_size=12), st.data())
def test_one_wrong_letter_is_always_found(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2))
    wrong = data.draw(
        st.sampled_from(
            [
                name[:at] + name[at + 1 :],
                name[:at] + "z" + name[at:],
                name[:at] + "z" + name[at + 1 :],
                name[:at] + name[at + 1] + name[at] + name[at + 2 :],
            ]
        )
    )
    assert nearest(wrong, [name]) == ([name] if wrong != name else [])


def test_many_names_that_share_a_piece_stay_within_bounds() -> None:
    names = [f"get_name_{number:05}" for number in range(20_000)]
    assert len(nearest("get_name_0x000", names)) == 5
