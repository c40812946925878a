"""Answers of upstreams: what fits goes on as it came, the rest is read in pages; nothing is left out silently."""

from typing import Any

import msgspec
import pytest

from serena_central.tools.answer import MAX_CHARS, Answer, PassedOn, size_of
from serena_central.tools.passed_on import KeptResults, page_of, passed_answer

IMAGE = {"type": "image", "mimeType": "image/png", "data": "A" * 3_000_000}

LINK = {"type": "resource_link", "name": "n" * 500, "uri": "scripted://one"}


def answer_to(result: dict[str, Any], limit: int, kept: KeptResults | None = None) -> Answer:
    return passed_answer(PassedOn(result), kept or KeptResults(), "s", limit)


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


@pytest.mark.parametrize("character", ["x", "é", "語", "😀"])
@pytest.mark.parametrize("limit", [100, 1000])
def test_a_long_text_is_read_in_pages_of_so_many_bytes(character: str, limit: int) -> None:
    kept = KeptResults()
    whole = f"{character * 7}\n" * 200 + character * 500
    first = answer_to({"content": [text(whole)]}, limit, kept)
    shown, note = first.blocks
    assert first.passed == {"content": [text(shown)]}
    assert first.notes == [note]
    result_id = note.partition('result_id="')[2].partition('"')[0]
    read = shown
    while note:
        page, note = page_of(kept.read("s", result_id), result_id, len(read), limit)
        assert size_of(page) > 0
        assert limit == 100 or size_of(f"{page}{note}") <= limit
        read += page
    assert read == whole


def test_what_fits_in_bytes_goes_on_as_it_came() -> None:
    result = {"content": [text("é" * 500)], "structuredContent": {"result": 1}, "_meta": {"own": 1}}
    assert answer_to(result, 1012).passed == result
    assert answer_to(result, 1010).shortened


def test_images_that_are_too_large_together_are_named_instead() -> None:
    answer = answer_to({"content": [text("look:"), IMAGE, IMAGE, IMAGE], "_meta": {"own": 1}}, 30_000)
    assert answer.passed is not None
    assert answer.passed["content"][1:] == [IMAGE]
    named = "[image image/png, 2250000 bytes]"
    assert answer.blocks == [f"look:\n{named}\n{named}", named]
    assert answer.notes == []


def test_a_flood_of_links_is_bounded_and_read_in_pages() -> None:
    answer = answer_to({"content": [LINK] * 10_000}, 10_000)
    assert answer.passed is not None
    assert len(msgspec.json.encode(answer.passed)) < 11_000
    assert answer.passed["content"][-1] == LINK
    assert "read_result" in answer.notes[0]


@pytest.mark.parametrize("where", ["_meta", "annotations"])
def test_what_nobody_reads_makes_no_answer_longer(where: str) -> None:
    flood = {where: {"own": "x" * 3 * MAX_CHARS}}
    result = {"content": [text("a") | (flood if where == "annotations" else {})], **(flood if where == "_meta" else {})}
    assert answer_to(result, 30_000).passed == {"content": [text("a")]}


def test_a_short_text_stays_beside_images_that_do_not_fit() -> None:
    answer = answer_to({"content": [text("done"), IMAGE | {"data": "A" * 2 * MAX_CHARS}], "isError": True}, 30_000)
    assert answer.failed
    assert answer.passed == {"content": [text("done\n[image image/png, 7500000 bytes]")], "isError": True}
