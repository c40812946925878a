"""Types that several threads decode for the first time at once."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from serena_central.core.decoding import converted, from_json, from_msgpack, json_decoder, msgpack_decoder

IN_THREADS = """
import sys
import threading
import msgspec
from serena_central.core import decoding

sys.setswitchinterval(1e-6)
for turn in range(20):
    fields = [(f"f{n}", int | None, None) for n in range(30)]
    below = [msgspec.defstruct(f"Below{turn}_{n}", fields) for n in range(20)]
    kind = msgspec.defstruct(f"Kind{turn}", [(f"b{n}", list[one], []) for n, one in enumerate(below)])
    value = {f"b{n}": [{f"f{m}": m for m in range(30)}] for n in range(20)}
    together = threading.Barrier(4)

    def first_use(decode):
        together.wait()
        decode()

    threads = [threading.Thread(target=first_use, args=(one,)) for one in (
        lambda: decoding.converted(value, kind),
        lambda: decoding.from_json(msgspec.json.encode(value), list[kind] | kind),
        lambda: decoding.from_msgpack(msgspec.msgpack.encode(value), kind),
        lambda: decoding.json_decoder(kind).decode(msgspec.json.encode(value)),
    )]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("decoded")
"""


def test_threads_may_decode_a_type_for_the_first_time_at_once() -> None:
    """Without turns this ends by SIGSEGV each time."""
    done = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "decoded\n", "")


class Point(msgspec.Struct):
    x: int


def test_values_are_checked() -> None:
    assert converted({"x": 1}, Point) == Point(1)
    assert converted({"x": "1"}, Point, strict=False) == Point(1)
    assert from_json(b'[{"x": 1}]', list[Point]) == [Point(1)]
    assert from_json("[1]") == [1]
    assert from_msgpack(b"\x81\xa1x\x01", Point) == Point(1)
    assert json_decoder(Point).decode(b'{"x": 1}') == Point(1)
    assert msgpack_decoder(dict[str, int]).decode(b"\x81\xa1x\x01") == {"x": 1}
    for attempt in (lambda: converted({"x": "1"}, Point), lambda: from_json(b"{}", Point)):
        with pytest.raises(msgspec.ValidationError):
            attempt()


@pytest.mark.parametrize("content", [b'"\xff"', b'{"x\xff": 1}', b"[" * 100_000, b"\xff", b"", b"\0"])
def test_whatever_is_no_value_is_one_kind_of_error(content: bytes) -> None:
    """Callers that read a damaged file of their own expect this one."""
    for kind in (Any, Point, list[str]):
        with pytest.raises(msgspec.DecodeError):
            from_json(content, kind)
    with pytest.raises(msgspec.DecodeError):
        from_msgpack(b"\xa1\xff", str)
    with pytest.raises(msgspec.DecodeError):
        from_msgpack(b"\x91" * 100_000 + b"\x01")
