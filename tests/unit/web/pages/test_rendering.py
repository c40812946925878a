"""How text, times and sizes are written."""

from pathlib import Path

import pytest
from markupsafe import Markup

from serena_central.web.pages.overview import Attention, AttentionItem
from serena_central.web.pages.rendering import (
    HOVER_CHARS,
    PATH_CHARS,
    bounded,
    breakable,
    duration,
    milliseconds,
    moment,
    number,
    path,
    render,
    size,
    visible,
)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n\ttext é 漢 👍", "plain\n\ttext é 漢 👍"),
        ("\x1b[31mred\x07\x7f\x00", "␛[31mred␇␡␀"),
        ("a\u202eb\u2066c\u200fd", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩d"),
        ("zero\u200bwidth\ufeff\x85\u2028", "zero⟨U+200B⟩width⟨U+FEFF⟩⟨U+0085⟩⟨U+2028⟩"),
        ("no utf-8 \udcff", "no utf-8 \ufffd"),
    ],
)
def test_what_can_not_be_seen_is_made_visible(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_html_and_what_is_not_text_stay_as_they_are() -> None:
    assert visible(Markup("<b>")) == Markup("<b>")
    assert visible(3) == 3


def test_everything_printed_is_escaped() -> None:
    said = render("_said.html", said="<b>'\"&\x1b", failed=False)
    assert "&lt;b&gt;&#39;&#34;&amp;␛" in said


def test_a_text_is_cut_where_it_is_too_long_and_says_so() -> None:
    assert [bounded(text, 3) for text in ("", "abc", "abcd")] == ["", "abc", "abc…"]


def test_times_are_told_in_utc_for_who_has_no_script() -> None:
    assert moment(0) == '<time datetime="1970-01-01T00:00:00Z">1970-01-01 00:00:00 UTC</time>'
    assert moment(None) == "–"


def test_sizes_and_durations_are_written_for_people() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1536, 5 << 20, 1023 << 20, 3 << 30)] == [
        "0 B", "1023 B", "1 KiB", "1.5 KiB", "5 MiB", "1023 MiB", "3 GiB",
    ]  # fmt: skip
    assert [milliseconds(n) for n in (0.4, 3.14, 42, 999, 1500, 61000)] == [
        "0.4 ms", "3.1 ms", "42 ms", "999 ms", "1.5 s", "1 min 1 s",
    ]  # fmt: skip
    assert [duration(n) for n in (0, 59, 60, 61, 3600, 3660, 90000)] == [
        "0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "1 d 1 h",
    ]  # fmt: skip


def test_numbers_and_paths_are_written_for_people() -> None:
    assert number(1234567) == "1,234,567"
    assert path("/srv/shop") == "/srv/shop"
    short = path(f"{Path.home()}/src/<b>").replace("<wbr>", "")
    assert short == f'<span title="{Path.home()}/src/&lt;b&gt;">~/src/&lt;b&gt;</span>'
    long = path(f"/srv/{'long/' * 20}shop").replace("<wbr>", "")
    assert long.endswith('long/shop">…/long/long/long/long/long/long/long/long/long/long/shop</span>')
    assert path("x" * 999).startswith(f'<span title="{"x" * HOVER_CHARS}…">')
    assert path("x" * 99).replace("<wbr>", "").endswith(f">…{'x' * PATH_CHARS}</span>")
    assert breakable("x" * 40) == "<wbr>".join(("x" * 16, "x" * 16, "x" * 8))
    assert breakable("find_<b>.x") == "find_<wbr>&lt;b&gt;.<wbr>x"


def test_there_is_nothing_between_rows() -> None:
    html = render("overview/_attention.html", section=Attention([AttentionItem("error", "a  b", "", "/x")] * 2, 0))
    assert html.startswith('<ul class="problems"><li class="error"><a href="/x">a  b</a></li><li')
    assert html.rstrip().endswith("</li></ul>")
