"""A proposal is completed by the references that it leaves out, and by nothing else."""

import pytest

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range, Text
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import check_new_name, completed, own_name

TEXT = Text("old(old, alias)\n{old}\nref mut old\n")


def at(line0: int, column: int, length: int = 3) -> Range:
    return Range(Position(line0, column), Position(line0, column + length))


def test_places_that_the_proposal_leaves_out_are_added() -> None:
    rename = completed({"a": [TextEdit(at(0, 0), "new")]}, {"a": [at(0, 0), at(0, 4)]}, {"a": TEXT}, "old", "new")
    assert rename.edits == {"a": [TextEdit(at(0, 0), "new"), TextEdit(at(0, 4), "new")]}
    assert (rename.added, rename.places) == ([("a", at(0, 4))], 2)


def test_a_place_under_another_name_stays() -> None:
    rename = completed({}, {"a": [at(0, 0), at(0, 9, 5)]}, {"a": TEXT}, "old", "new")
    assert rename.edits == {"a": [TextEdit(at(0, 0), "new")]}


def test_a_wider_edit_covers_the_place_inside() -> None:
    shorthand = TextEdit(at(1, 0, 5), "{old: new}")
    rename = completed({"a": [shorthand]}, {"a": [at(1, 1)]}, {"a": TEXT}, "old", "new")
    assert (rename.edits, rename.added) == ({"a": [shorthand]}, [])


def test_an_insertion_beside_a_place_does_not_cover_it() -> None:
    label = TextEdit(Range(Position(1, 1), Position(1, 1)), "x: ")
    rename = completed({"a": [label]}, {"a": [at(1, 1)]}, {"a": TEXT}, "old", "new")
    assert rename.added == [("a", at(1, 1))]


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (TextEdit(at(1, 1), "new: old"), at(1, 1)),
        (TextEdit(at(1, 1, 0), "new: "), at(1, 1)),
        (TextEdit(at(1, 4, 0), ": new"), at(1, 1)),
        (TextEdit(at(2, 0, 0), "new: "), at(2, 8)),
    ],
    ids=["replaced by both", "put before it", "put behind it", "put before its modifiers"],
)
def test_a_place_at_which_the_old_name_stays_beside_the_new_one_is_kept(edit: TextEdit, place: Range) -> None:
    rename = completed({"a": [edit]}, {"a": [at(0, 0), place]}, {"a": TEXT}, "old", "new")
    assert rename.kept == {("a", place.start)}
    assert rename.added == [("a", at(0, 0))]
    assert rename.without([("a", at(0, 0))]).edits == {"a": [edit]}


def test_a_place_that_is_proposed_for_a_field_and_for_its_variable_is_changed_for_the_field() -> None:
    field, variable = TextEdit(at(1, 1), "new: old"), TextEdit(at(1, 1), "old: new")
    for both in ([field, variable], [variable, field]):
        assert completed({"a": both}, {}, {"a": TEXT}, "old", "new").edits == {"a": [field]}
    assert completed({"a": [variable]}, {}, {"a": TEXT}, "old", "new").edits == {"a": [variable]}


def test_what_is_proposed_or_referred_to_twice_is_changed_once() -> None:
    edit = TextEdit(at(0, 0), "new")
    rename = completed({"a": [edit, edit], "b": []}, {"a": [at(0, 4), at(0, 4)]}, {"a": TEXT}, "old", "new")
    assert rename.edits == {"a": [edit, TextEdit(at(0, 4), "new")]}


@pytest.mark.parametrize("name", ["", "two words", "a.b", "f()", "1st", "a-b", "x" * 501, "a\nb", "old"])
def test_what_can_be_no_new_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArguments):
        check_new_name("old", name)


@pytest.mark.parametrize("old", ["~Box", "operator()", "operator ==", "operator[]"])
def test_what_has_no_name_of_its_own_gets_none(old: str) -> None:
    with pytest.raises(InvalidArguments, match=r"destructor|operator"):
        check_new_name(old, "other")


def test_a_specialization_of_cpp_is_renamed_with_its_template() -> None:
    with pytest.raises(InvalidArguments, match="is renamed with its template"):
        check_new_name("rank_of<int>", "other", "cpp")


def test_a_constraint_of_go_is_not_called_a_destructor() -> None:
    with pytest.raises(InvalidArguments, match="is a constraint, which has no name"):
        check_new_name("~int | ~string", "other", "go")


@pytest.mark.parametrize("old", ["operator_count", "operator?", "operator$", "operator"])
def test_a_name_that_begins_like_an_operators_is_one(old: str) -> None:
    check_new_name(old, "count")


@pytest.mark.parametrize("name", ["new", "_x", "größe", "#private", "$el", "empty?", "save!", "x'", "名前"])
def test_names_of_many_languages_pass(name: str) -> None:
    check_new_name("old", name)


def test_a_function_s_own_name_is_found_behind_what_it_is_assigned_to() -> None:
    for text, column in (
        ("run = function run() {}", 15),
        ("run = async function* run() {}", 22),
        ("run: class run {}", 11),
        ("run ||= function run() {}", 17),
        ("run = function ran() {}", None),
        ("run = run", None),
        ("run = function" + " " * 300_000 + "ran() {}", None),
    ):
        assert own_name(Text(text), Range(Position(0, 0), Position(0, 3))) == (
            None if column is None else Position(0, column)
        )


def test_a_place_without_the_sigil_of_the_name_gets_the_new_one_without_it() -> None:
    text = Text("public $old; $this->old; $older")
    places = {"a": [at(0, 7, 4), at(0, 20), at(0, 25, 6)]}
    rename = completed({}, places, {"a": text}, "$old", "$new", sigil="$")
    assert rename.edits == {"a": [TextEdit(at(0, 7, 4), "$new"), TextEdit(at(0, 20), "new")]}
    with_it = completed({}, places, {"a": text}, "$old", "$new")
    assert with_it.edits == {"a": [TextEdit(at(0, 7, 4), "$new")]}


def test_a_name_of_php_keeps_its_sigil() -> None:
    with pytest.raises(InvalidArguments, match=r"Pass '\$new'"):
        check_new_name("$old", "new", "php")
    with pytest.raises(InvalidArguments, match="Pass 'new'"):
        check_new_name("old", "$new", "php")
    check_new_name("$old", "new", "javascript")
