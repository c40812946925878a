"""Why a symbol is not renamed, and what to do instead."""

import pytest

from serena_central.core.errors import EditRefused
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.refactoring.refusals import check_complete
from tests.unit.analysis.test_keep_rules import hit_in


@pytest.mark.parametrize(
    ("uses", "reason"),
    [
        (Uses(outside=1), "f is referenced in 1 place outside this project, such as generated code."),
        (Uses(note="Failed to load workspaces."), "may be incomplete: Failed to load workspaces. find_"),
    ],
)
def test_uses_that_are_not_all_known_are_refused_with_a_way_out(uses: Uses, reason: str) -> None:
    with pytest.raises(EditRefused) as refused:
        check_complete(hit_in("def f(): ...", "f", "a.py"), uses)
    assert reason in str(refused.value)
    assert "replace_content changes them as text" in str(refused.value)
