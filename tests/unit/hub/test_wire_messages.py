"""Messages of upstreams as they come in."""

import json

import pytest
from mcp_types import JSONRPCResponse

from serena_central.hub import wire_messages
from serena_central.hub.wire_messages import MAX_BATCH, batch_of, message_of

ANSWER = b'{"jsonrpc": "2.0", "id": 7, "result": {}}'


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is read as a message."""
    parts: list[bytes] = []

    def message(part: bytes) -> object:
        parts.append(part)
        return message_of(part)

    monkeypatch.setattr(wire_messages, "message_of", message)
    return parts


@pytest.mark.parametrize("part", [b"1", b"{}", b'"jsonrpc"', b"[]"])
def test_an_array_of_data_is_not_read_for_messages(part: bytes, read: list[bytes]) -> None:
    assert batch_of(b"[" + b", ".join([part] * (MAX_BATCH + 1)) + b"]") == []
    assert read == []


def test_more_messages_than_a_batch_has_are_not_read(read: list[bytes]) -> None:
    assert batch_of(b"[" + b",".join([ANSWER] * (MAX_BATCH + 1)) + b"]") == []
    assert read == []


def test_of_a_batch_only_objects_are_read(read: list[bytes]) -> None:
    found = batch_of(b"[ 1, null,\n " + ANSWER + b', "x", [2]]')
    assert [one.id for one in found if isinstance(one, JSONRPCResponse)] == [7]
    assert read == [ANSWER]


@pytest.mark.parametrize("text", [b"[1, 2]", b'{"level": "info"}', "\u00fc".encode(), b'["\\u00fc"]'])
def test_what_can_not_be_repaired_is_not_read_again(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(_text: str) -> object:
        raise AssertionError("read again")

    monkeypatch.setattr(json, "loads", loads)
    assert message_of(text) is None


@pytest.mark.parametrize("cut", [b"\\ud83d", b"\\uD83D", b"\xf0\x9f"])
def test_half_a_character_is_a_question_mark(cut: bytes) -> None:
    found = message_of(b'{"jsonrpc": "2.0", "id": 7, "result": {"text": "a' + cut + b'z"}}')
    assert isinstance(found, JSONRPCResponse)
    assert str(found.result["text"]).strip("az") in ("?", "\ufffd")
