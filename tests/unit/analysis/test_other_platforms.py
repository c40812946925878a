"""When files of other platforms are asked about."""

from serena_central.analysis.other_platforms import OtherPlatforms
from serena_central.lsp.go_platforms import LOADS_S


def test_the_first_of_a_call_may_be_asked_about_in_any_case_and_others_where_time_suffices() -> None:
    others = OtherPlatforms()
    assert not others.begins("windows", 0.0)
    assert others.begins("windows", 1.0)
    assert not others.begins("windows", 1.0)  # it has not answered
    assert not others.begins("darwin", LOADS_S / 2)
    assert others.begins("darwin", LOADS_S)
    others.answered("darwin")
    assert others.begins("darwin", 0.1)
    assert not others.begins("windows", 0.1)
    assert not others.begins("darwin", 0.0)


def test_a_call_that_has_asked_about_others_does_not_begin_late() -> None:
    assert not OtherPlatforms(has_begun=True).begins("windows", LOADS_S / 2)
