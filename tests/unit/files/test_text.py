"""A file is read as text exactly, and what can't be text is refused without ever blocking."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import ConfigError, NotInEncoding, PathNotFound, PathRefused
from serena_central.files.stamp import Stamp
from serena_central.files.text import digest_of, read_text


@pytest.mark.parametrize(
    ("data", "encoding", "expected", "codec", "bom"),
    [
        (b"caf\xc3\xa9\n", None, "café\n", "utf-8", b""),
        (codecs.BOM_UTF8 + b"a", None, "a", "utf-8", codecs.BOM_UTF8),
        (codecs.BOM_UTF8 + b"a", "latin-1", "a", "utf-8", codecs.BOM_UTF8),
        ("\ufeffé🙂".encode("utf-16-le"), None, "é🙂", "utf-16-le", codecs.BOM_UTF16_LE),
        ("\ufeffé🙂".encode("utf-16-be"), None, "é🙂", "utf-16-be", codecs.BOM_UTF16_BE),
        ("\ufeffé🙂".encode("utf-32-le"), None, "é🙂", "utf-32-le", codecs.BOM_UTF32_LE),
        ("é".encode("utf-16-le"), "utf-16", "é", "utf-16-le", b""),
        ("中文\n".encode("utf-16-le"), "utf-16", "中文\n", "utf-16-le", b""),
        (b"even", "utf-16", "even", "utf-8", b""),
        ("caf\u00e9".encode(), "utf-32", "café", "utf-8", b""),
        (b"a", "utf-8-sig", "a", "utf-8", b""),
        (b"caf\xe9", "latin-1", "café", "iso8859-1", b""),
        (b"", None, "", "utf-8", b""),
    ],
)
def test_encodings_and_marks_are_known_and_written_back(
    tmp_path: Path, data: bytes, encoding: str | None, expected: str, codec: str, bom: bytes
) -> None:
    file = tmp_path / "f"
    file.write_bytes(data)
    read = read_text(file, encoding=encoding)
    assert (read.text.content, read.encoding, read.bom, read.invalid) == (expected, codec, bom, False)
    assert read.encode(read.text.content) == data
    assert read.digest == digest_of(data)
    assert read.stamp == Stamp.of(file.stat())


def test_invalid_bytes_survive_and_are_told(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"ok \xff\xfe\x80 caf\xe9\r\n")
    read = read_text(file)
    assert read.invalid
    assert read.encode(read.text.content) == b"ok \xff\xfe\x80 caf\xe9\r\n"


@given(st.binary(max_size=200).filter(lambda data: b"\0" not in data))
def test_whatever_can_be_read_is_written_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "round-trip"
    file.write_bytes(data)
    for encoding in (None, "shift_jis", "cp1252", "utf-16"):
        try:
            read = read_text(file, encoding=encoding)
        except PathRefused:
            assert encoding in ("shift_jis", "utf-16") or data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        else:
            assert read.encode(read.text.content) == data or encoding == "shift_jis"


@pytest.mark.parametrize(
    ("content", "newline"), [("a", "\n"), ("a\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\rc\n", "\r")]
)
def test_the_usual_line_end_is_told(tmp_path: Path, content: str, newline: str) -> None:
    file = tmp_path / "f"
    file.write_bytes(content.encode())
    assert read_text(file).newline == newline
    assert read_text(file).text.content == content


def test_what_is_no_text_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a" * 9000 + b"\0")
    with pytest.raises(PathRefused, match="binary"):
        read_text(file)
    with pytest.raises(PathRefused, match="MB"):
        read_text(file, max_bytes=9000)
    file.write_bytes(b"o\0d")
    with pytest.raises(NotInEncoding, match="utf-16"):
        read_text(file, encoding="utf-16")
    for data in ("a\0b".encode("utf-16-le"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1"):
        file.write_bytes(data)
        with pytest.raises(PathRefused, match="binary"):
            read_text(file, encoding="utf-16")
    file.write_bytes(b"odd")
    for encoding in ("klingon", "hex"):
        with pytest.raises(ConfigError, match=encoding):
            read_text(file, encoding=encoding)


def test_no_pipe_device_or_folder_is_read_and_none_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(PathRefused):
            read_text(path)
    with pytest.raises(PathNotFound):
        read_text(tmp_path / "missing")
    with pytest.raises(PathNotFound):
        read_text(tmp_path / "pipe" / "x")
