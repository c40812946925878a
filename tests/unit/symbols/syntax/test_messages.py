"""Batches of requests to the parser hold each source once."""

from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.decoding import msgpack_decoder
from serena_central.symbols.syntax.messages import Request, framed, with_repetition, without_repetition

REQUESTS = st.builds(Request, st.sampled_from(["python", "go"]), st.sampled_from([b"", b"a = 1", b"b"]), name=st.text())


@given(st.lists(REQUESTS))
def test_a_batch_arrives_as_it_was_sent(batch: list[Request]) -> None:
    sent = framed(without_repetition(batch))
    received = with_repetition(msgpack_decoder(list[Request]).decode(sent[4:]))
    assert [(one.identifier, one.source, one.name) for one in received] == [
        (one.identifier, one.source, one.name) for one in batch
    ]


def test_a_source_that_is_asked_about_twice_is_sent_once() -> None:
    source = b"x" * 10_000
    assert len(framed(without_repetition([Request("python", source), Request("python", source, "x")]))) < 10_100
