"""Pages of a transcript: each call has its result, wherever that stands."""

from serena_central.transcripts.messages import Message
from serena_central.web.transcripts import entries_of


def call(name: str) -> Message:
    return Message(role="tool_call", at="", tool="Read", call=name, given={})


def result(name: str) -> Message:
    return Message(role="tool_result", at="", call=name, text=f"of {name}", failed=name == "a")


def prompt(text: str) -> Message:
    return Message(role="user", at="", text=text)


def pages(said: list[Message], limit: int) -> list[list[tuple[str, str, bool]]]:
    found: list[list[tuple[str, str, bool]]] = []
    start, more = 0, True
    while more:
        entries, more = entries_of(iter(said), start, limit)
        found.append([(one.call or one.text, one.result, one.failed) for one in entries])
        start += limit
    return found


def test_results_of_parallel_calls_stand_with_them_though_the_page_ends_between() -> None:
    said = [prompt("p"), call("a"), call("b"), result("b"), result("a"), prompt("q"), call("c"), result("c")]
    first, a, b, c = ("p", "", False), ("a", "of a", True), ("b", "of b", False), ("c", "of c", False)
    assert pages(said, 2) == [[first, a], [b, ("q", "", False)], [c]]
    assert pages(said, 1) == [[first], [a], [b], [("q", "", False)], [c]]
    assert pages(said, 9) == [[first, a, b, ("q", "", False), c]]


def test_a_call_without_a_result_ends_a_page_as_well() -> None:
    said = [call("a"), prompt("q"), prompt("  "), result("stray")]
    assert pages(said, 1) == [[("a", "", False)], [("q", "", False)], [("stray", "of stray", False)]]


def test_the_last_page_has_nothing_behind_it() -> None:
    assert entries_of([call("a"), result("a"), prompt(" ")], 0, 1)[1] is False
