"""Lists that are longer than an answer: a page, counts per folder, and a cursor that goes through all of it."""

import dataclasses
import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.tools.answer import GUESSES, Form, Listing, by_folder, fit, most_that_fit, page

PATHS = [f"{folder}/file{number:03}.py" for folder in ("app/core", "app/web", "tests") for number in range(100)]


def listing(
    *, cursor: str = "", limit: int | None = None, chars: int = 1000, items: list[str] = PATHS, **more: Any
) -> Listing:
    asked = page(cursor, limit, chars)
    return Listing(
        page=asked,
        total=len(items),
        window=asked.window(len(items), 4),
        noun="file",
        build=lambda first, last: items[first:last],
        narrow="Name a folder.",
        per_file=Counter(items),
        **more,
    )


def test_a_list_that_fits_comes_whole_and_bare() -> None:
    assert fit({"p": listing(items=PATHS[:3])}, 1000, grouped=False)[:2] == (
        json.dumps(PATHS[:3]).replace(" ", ""),
        False,
    )


def test_a_longer_one_says_how_many_there_are_where_they_lie_and_how_to_go_on() -> None:
    text, shortened, *_ = fit({"p": listing()}, 1000, grouped=False)
    says, answer = text.split("\n")
    shown = json.loads(answer)
    assert shortened
    assert len(text) <= 1000
    assert shown == PATHS[: len(shown)]
    assert 25 < len(shown) < 50
    assert says == (
        "300 files (app/core/ 100, app/web/ 100, tests/ 100). "
        f'Shown: 1 to {len(shown)}. cursor="{len(shown)}/300" continues. Name a folder.'
    )


@given(st.lists(st.text("ab/", min_size=1, max_size=60), max_size=150), st.integers(300, 1000))
def test_the_cursor_leads_through_all_items_once(items: list[str], limit: int) -> None:
    seen: list[str] = []
    cursor = ""
    while True:
        text, *_ = fit({"p": listing(cursor=cursor, items=items, chars=limit)}, limit, grouped=False)
        assert len(text) <= limit
        says, _, answer = text.rpartition("\n")
        seen += json.loads(answer)
        found = re.search(r'cursor="([^"]+)" continues', says)
        if found is None:
            break
        cursor = found[1]
    assert seen == items


def test_what_came_or_went_between_two_pages_is_said() -> None:
    text, *_ = fit({"p": listing(cursor="100/299")}, 1000, grouped=False)
    assert "There were 299 on the first page: items may be missing or repeated." in text
    assert json.loads(text.split("\n")[1])[0] == PATHS[100]


def test_a_limit_is_kept_though_more_would_fit() -> None:
    text, shortened, *_ = fit({"p": listing(limit=2)}, 10_000, grouped=False)
    assert (json.loads(text.split("\n")[1]), shortened) == (PATHS[:2], True)
    assert 'cursor="2/300" continues' in text


def test_a_cursor_behind_the_end_answers_that_there_is_nothing() -> None:
    text, *_ = fit({"p": listing(cursor="300/300")}, 1000, grouped=False)
    assert text == "300 files. No items after 300.\n[]"


@pytest.mark.parametrize("cursor", ["x", "-1/3", "1", "1/2/3", "9999999999/1"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArguments, match=r"was not returned by this tool\. Leave it out"):
        page(cursor, None, 100)


def test_a_shorter_form_of_the_whole_comes_before_a_page_of_the_full_one() -> None:
    short = Form("as a count", lambda: 300)
    text, *_ = fit({"p": listing(shorter=[short])}, 1000, grouped=False)
    assert text.split("\n") == [
        "The full answer exceeds 1000 bytes; it is shown as a count. Name a folder.",
        "300",
    ]
    text, *_ = fit({"p": listing(shorter=[short], limit=1)}, 1000, grouped=False)
    assert json.loads(text.split("\n")[1]) == PATHS[:1]


def test_of_several_projects_each_has_its_page_and_short_ones_are_whole() -> None:
    text, *_ = fit({"a": listing(), "b": listing(items=PATHS[:2]), "c": listing()}, 2000, grouped=True)
    *says, answer = text.split("\n")
    shown = json.loads(answer)
    assert len(text) <= 2000
    assert [line.split(":")[0] for line in says] == ["'a'", "'c'"]
    assert shown["b"] == PATHS[:2]
    assert 25 < len(shown["a"]) == len(shown["c"]) < 50


def test_only_what_is_shown_in_full_counts_as_seen() -> None:
    seen: list[tuple[int, int]] = []

    def shown(first: int, last: int) -> None:
        seen.append((first, last))

    fitted = fit({"p": listing(shown=shown)}, 1000, grouped=False)
    assert seen == []
    fitted.record()
    text = fitted.text
    assert seen == [(0, len(json.loads(text.split("\n")[1])))]
    fit({"p": listing(shown=shown, shorter=[Form("as a count", lambda: 300)])}, 1000, grouped=False).record()
    assert len(seen) == 1
    fit({"a": listing(shown=shown, items=PATHS[:2]), "b": 1}, 1000, grouped=True).record()
    assert seen[1:] == [(0, 2)]


def test_no_more_items_are_built_than_may_fit() -> None:
    asked: list[int] = []

    def build(first: int, last: int) -> list[int]:
        asked.append(last - first)
        return list(range(first, last))

    many = Listing(
        page=page("", None, 1000),
        total=1_000_000,
        window=page("", None, 1000).window(1_000_000, 2),
        noun="number",
        build=build,
        narrow="",
    )
    text, *_ = fit({"p": many}, 1000, grouped=False)
    assert max(asked) <= 501
    assert text.startswith("1,000,000 numbers. Shown: 1 to ")


def test_the_largest_folders_are_told_apart_furthest() -> None:
    per_file = {f"src/app/part{n}/file{m}.py": 1 for n in range(4) for m in range(10 * n + 1)} | {"setup.py": 2}
    assert by_folder(per_file) == (
        [("src/app/part3/", 31), ("src/app/part2/", 21), ("src/app/part1/", 11), ("./", 2), ("src/app/part0/", 1)],
        0,
    )
    many = {f"m{number:02}/a.py": 100 - number for number in range(30)}
    shown, rest = by_folder(many)
    assert (shown[0], len(shown), rest) == (("m00/", 100), 12, sum(100 - number for number in range(12, 30)))


@given(
    st.dictionaries(
        st.lists(st.sampled_from(["a", "b", "a-b", "a.x", "é"]), min_size=1, max_size=4).map("/".join),
        st.integers(1, 9),
        max_size=30,
    ),
    st.integers(1, 12),
)
def test_what_is_counted_by_folder_is_what_lies_there(per_file: dict[str, int], most: int) -> None:
    shown, rest = by_folder(per_file, most)
    assert len(shown) <= most
    assert sum(count for _, count in shown) + rest == sum(per_file.values())
    names = [folder for folder, _ in shown]
    for folder, count in shown:
        inside = "" if folder == "./" else folder
        held = {path: number for path, number in per_file.items() if path.startswith(inside)}
        direct = sum(number for path, number in held.items() if "/" not in path[len(inside) :])
        parts = [one for one in names if one != folder and one.startswith(inside) and one != "./"]
        assert count in ({direct} if parts or folder == "./" else {direct, sum(held.values())})


def test_an_item_that_is_too_long_keeps_count_and_cursor() -> None:
    long = ["x" * 900, "y", "z"]
    text, *_ = fit({"p": listing(items=long, limit=1, chars=300)}, 300, grouped=False)
    assert len(text) <= 302  # the quotes
    assert text.startswith('3 files. Shown: 1 to 1. cursor="1/3" continues.')
    assert "Truncated: file 1 has 904 characters." in text

    def shorter(first: int, last: int) -> list[str]:
        return [one[:9] for one in long[first:last]]

    brief, *_ = fit({"p": listing(items=long, limit=1, chars=300, brief=shorter)}, 300, grouped=False)
    assert brief.endswith('Shortened: file 1 has 904 characters.\n["xxxxxxxxx"]')


def test_the_cursor_of_a_group_names_it() -> None:
    one = listing()
    one = dataclasses.replace(one, page=one.page._replace(group="a"))
    text, *_ = fit({"a": one, "b": ["c"]}, 600, grouped=True)
    shown = page(re.findall(r'cursor="([^"]+)"', text)[0], None, 600)
    assert (shown.group, shown.total_before) == ("a", 300)


@given(st.lists(st.integers(0, 300), max_size=400), st.integers(0, 20_000))
def test_as_many_items_are_shown_as_fit_and_few_numbers_are_tried(lengths: list[int], room: int) -> None:
    tried: list[int] = []

    def length(count: int) -> int:
        tried.append(count)
        return sum(lengths[:count])

    fitting = [count for count in range(len(lengths) + 1) if sum(lengths[:count]) < room]
    assert most_that_fit(len(lengths), room, length) == max([*fitting, min(1, len(lengths))])
    assert len(tried) <= GUESSES + 9
