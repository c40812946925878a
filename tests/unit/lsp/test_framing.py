from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.lsp.wire import BrokenFraming, FrameReader, frame

bodies = st.lists(st.binary(max_size=200), max_size=8)


@given(bodies, st.lists(st.integers(min_value=1, max_value=40), min_size=1))
def test_frames_come_out_as_they_went_in_however_the_stream_is_chopped(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(body) for body in sent)
    reader = FrameReader()
    received: list[bytes] = []
    at = step = 0
    while at < len(stream):
        size = cuts[step % len(cuts)]
        received += reader.feed(stream[at : at + size])
        at, step = at + size, step + 1
    assert received == sent


@given(st.binary(max_size=20_000))
def test_any_bytes_give_frames_or_broken_framing_and_nothing_else(noise: bytes) -> None:
    with suppress(BrokenFraming):
        FrameReader().feed(noise)


def test_header_names_are_matched_in_any_case_beside_other_headers() -> None:
    stream = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-LENGTH:  2 \r\n\r\n{}"
    assert FrameReader().feed(stream) == [b"{}"]


@pytest.mark.parametrize(
    "stream",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 1e3\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"X: 1\r\n\r\n",
        b"\r\n\r\n",
        b"Content-Length: " + b"9" * 4000 + b"\r\n\r\n",
        b"log line\n" * 1000,
    ],
)
def test_a_header_that_makes_no_sense_breaks_the_framing(stream: bytes) -> None:
    with pytest.raises(BrokenFraming):
        FrameReader().feed(stream)


def test_a_frame_beyond_the_cap_is_refused_before_it_is_read() -> None:
    with pytest.raises(BrokenFraming):
        FrameReader(max_frame_bytes=10).feed(b"Content-Length: 11\r\n\r\n")
