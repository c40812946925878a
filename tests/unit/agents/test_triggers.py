"""REQ-AGENT-003: which descriptions are triggers, and after what."""

import pytest

from serena_central.agents.triggers import Occasion, occasions_of

EDIT, COMMAND, READ = Occasion.EDIT, Occasion.COMMAND, Occasion.READ


@pytest.mark.parametrize(
    ("description", "occasions"),
    [
        ("MUST BE USED after code changes", {EDIT}),
        ("Reviews the diff. Must be used after every edit, without exception.", {EDIT}),
        ("After any file was modified, always invoke this agent.", {EDIT}),
        ("Runs automatically whenever code has been written or refactored", {EDIT}),
        ("Always invoke it after running the tests.", {COMMAND}),
        ("MUST BE USED after code changes and after each shell command", {EDIT, COMMAND}),
        ("Automatically summarises after reading many files", {READ}),
        # An agent whose occasion is not a tool's, or that is for something else than what comes after it.
        ("MUST BE USED for all database migrations", set()),
        ("MUST BE USED before code changes", set()),
        ("Formats code automatically. Use it after edits if you like.", set()),
        ("Use it after code changes", set()),
        ("Must not be used automatically after code changes", set()),
        ("Do not always invoke this agent after edits", set()),
        ("Doesn't run automatically after edits", set()),
        ("", set()),
    ],
)
def test_a_description_is_a_trigger_where_one_sentence_has_a_phrase_and_an_occasion(
    description: str, occasions: set[Occasion]
) -> None:
    assert occasions_of(description) == occasions
