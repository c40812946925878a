"""Messages of upstreams as they come in."""

import json

import pytest
from mcp_types import JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from serena_central.hub import wire_messages
from serena_central.hub.wire_messages import MAX_BATCH, MOST_PARTS, Parts, batch_of, has_too_many_parts, message_of

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


def in_slices(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_objects_and_lists_are_counted_however_they_are_sliced(size: int) -> None:
    text = rb'{"a": [{"b": "{[\"{\\"}, [], "\\"], "{\"[": {}}'
    json.loads(text)
    parts = Parts()
    assert [parts.add(part) for part in in_slices(text, size)][-1] == 5


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_counted_one_by_one(size: int) -> None:
    stream = b'data: {"a": [{}]}\r\n\r\n' * 3 + b'data: {"a": "it is cut off\n\n' + b'data: {"b": []}\n\n'
    parts = Parts()
    assert max(parts.add_events(part) for part in in_slices(stream, size)) == 3


def test_texts_may_hold_braces() -> None:
    assert not has_too_many_parts(json.dumps({"text": '{["' * MOST_PARTS}).encode())
    assert not has_too_many_parts(json.dumps([{}] * (MOST_PARTS - 1)).encode())
    assert has_too_many_parts(json.dumps([{}] * MOST_PARTS).encode())


@pytest.mark.parametrize("message", [{"result": {}, "method": "x"}, {"result": {}, "error": {}}, {"result": 1}, {}])
def test_what_is_more_than_an_answer_is_read_as_the_sdk_reads_it(message: dict[str, object]) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 7, **message}).encode()
    try:
        expected = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        expected = None
    assert message_of(text) == expected


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_an_answer_may_hold_what_python_writes_for_no_number(number: bytes) -> None:
    found = message_of(b'{"jsonrpc": "2.0", "id": 7, "result": {"text": "a", "n": ' + number + b"}}")
    assert isinstance(found, JSONRPCResponse)
    assert found.result["text"] == "a"
