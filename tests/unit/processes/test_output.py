"""What is kept of a child's output, whatever its chunks."""

from serena_central.processes.output import MAX_LINE_BYTES, Head, Lines, Tail


def test_a_head_keeps_what_came_first_and_counts_the_rest() -> None:
    head = Head(4)
    for chunk in (b"ab", b"cde", b"f"):
        head.take(chunk)
    assert (head.text, head.dropped) == ("abcd", 2)


def test_a_tail_keeps_what_came_last_and_counts_the_rest() -> None:
    tail = Tail(4)
    for chunk in (b"ab", b"cde", b"f"):
        tail.take(chunk)
    assert (tail.text, tail.dropped) == ("cdef", 2)


def test_lines_are_whole_however_they_are_cut_on_the_way() -> None:
    found: list[bytes] = []
    lines = Lines(found.append)
    for chunk in (b"one\ntw", b"o", b"\n\nthr", b"ee"):
        lines.take(chunk)
    assert found == [b"one", b"two", b""]
    lines.finish()
    assert found[-1] == b"three"


def test_a_line_without_an_end_is_handed_on_in_parts() -> None:
    found: list[bytes] = []
    lines = Lines(found.append)
    for _ in range(5):
        lines.take(b"x" * MAX_LINE_BYTES)
    assert sum(map(len, found)) == 4 * MAX_LINE_BYTES
    lines.finish()
    assert sum(map(len, found)) == 5 * MAX_LINE_BYTES
