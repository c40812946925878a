"""Edits by symbol on files as they really are: encodings, line ends, modes, links; and bad input."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import (
    AmbiguousSymbol,
    InvalidArguments,
    PathOutsideProject,
    PathRefused,
    SerenaCentralError,
    SymbolNotFound,
    ToolRefused,
)
from tests.support.central import session_of

pytestmark = pytest.mark.anyio

BODY = "def first():\n    return 10"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def edit(central: Application, root: Path, tool: str = "replace_symbol_body", **arguments: Any) -> str:
    arguments = {"name_path": "first", "body": BODY, "project": str(root), **arguments}
    return "\n".join((await central.caller.call(session_of(central), tool, arguments)).blocks)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"def first():\r\n    return 1\r\n\r\nx = 1\r\n", b"def first():\r\n    return 10\r\n\r\nx = 1\r\n"),
        (b"\xef\xbb\xbfdef first():\n    return 1\n", b"\xef\xbb\xbfdef first():\n    return 10\n"),
        (b"def first():\n\treturn 1", b"def first():\n    return 10"),
        (b"# \xff\ndef first():\n    return 1\n", b"# \xff\ndef first():\n    return 10\n"),
        ("# 𝒳é\ndef first():\n    return '𝒳'; x = 1\n".encode(), "# 𝒳é\ndef first():\n    return 10\n".encode()),
    ],
)
async def test_the_bytes_around_a_symbol_stay(central: Application, root: Path, before: bytes, after: bytes) -> None:
    (root / "mod.py").write_bytes(before)
    await edit(central, root)

    assert (root / "mod.py").read_bytes() == after


async def test_a_project_s_encoding_is_kept(central: Application, root: Path) -> None:
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text("encoding: latin-1\n")
    (root / "mod.py").write_bytes("# café\ndef first():\n    return 1\n".encode("latin-1"))
    await edit(central, root, body="def first():\n    return 'é'")

    assert (root / "mod.py").read_bytes() == "# café\ndef first():\n    return 'é'\n".encode("latin-1")
    with pytest.raises(InvalidArguments, match="has no '𝒳'"):
        await edit(central, root, body="def first():\n    return '𝒳'")


async def test_mode_and_symlink_stay(central: Application, root: Path) -> None:
    real = root / "real.py"
    real.write_text("def first():\n    return 1\n")
    real.chmod(0o755)
    (root / "link.py").symlink_to("real.py")
    await edit(central, root, relative_path="link.py")

    assert (root / "link.py").is_symlink()
    assert real.read_text() == BODY + "\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o755
    assert sorted(path.name for path in root.iterdir()) == ["link.py", "real.py"]


def _twice(root: Path) -> None:
    (root / "other.py").write_text("def first():\n    return 2\n")


def _overloaded(root: Path) -> None:
    (root / "mod.py").write_text("def first():\n    return 1\ndef first():\n    return 2\n")


def _read_only(root: Path) -> None:
    (root / "mod.py").chmod(0o444)


def _ignored(root: Path) -> None:
    (root / ".gitignore").write_text("mod.py\n")


def _nothing(root: Path) -> None:
    """The project as it is."""


@pytest.mark.parametrize(
    ("prepare", "arguments", "error", "says"),
    [
        (_nothing, {"name_path": "firs"}, SymbolNotFound, "Close matches: 'first'"),
        (_twice, {}, AmbiguousSymbol, "other.py: first"),
        (_overloaded, {"name_path": "first[7]"}, SymbolNotFound, r"first\[7\]"),
        (_nothing, {"name_path": "first[0]"}, SymbolNotFound, "first"),
        (_nothing, {"name_path": ""}, InvalidArguments, "not a name path"),
        (_nothing, {"body": "  \n"}, InvalidArguments, "body is empty"),
        (_nothing, {"body": "x" * 30_000_000}, InvalidArguments, "MB"),
        (_nothing, {"body": "def first():\n    return '\0'"}, InvalidArguments, "NUL"),
        (_nothing, {"relative_path": "../../etc/passwd"}, PathOutsideProject, "outside"),
        (_read_only, {}, PathRefused, "read-only"),
        (_ignored, {"relative_path": "mod.py"}, PathRefused, "ignored"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:20],
)
async def test_bad_input_is_refused_and_changes_nothing(
    central: Application,
    root: Path,
    prepare: Callable[[Path], None],
    arguments: dict[str, Any],
    error: type[SerenaCentralError],
    says: str,
) -> None:
    (root / "mod.py").write_text("def first():\n    return 1\n")
    prepare(root)
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    for tool in ("replace_symbol_body", "insert_after_symbol", "insert_before_symbol"):
        with pytest.raises(error, match=says):
            await edit(central, root, tool, **arguments)

    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


@pytest.mark.slow
async def test_a_body_of_ten_megabytes_is_written(central: Application, root: Path) -> None:
    (root / "mod.py").write_text("def first():\n    return 1\n")
    body = "def first():\n" + f"    # {'x' * 990}\n" * 10_000 + "    return 1"
    await edit(central, root, body=body)

    assert (root / "mod.py").read_text() == body + "\n"


async def test_a_dry_run_changes_nothing_and_shows_the_difference(central: Application, root: Path) -> None:
    (root / "mod.py").write_text("def first():\n    return 1\n")
    for tool, shown in (
        ("replace_symbol_body", "-    return 1\n+    return 10"),
        ("insert_after_symbol", "+def first():"),
        ("insert_before_symbol", "+def first():"),
    ):
        assert shown in await edit(central, root, tool, dry_run=True)

    assert (root / "mod.py").read_text() == "def first():\n    return 1\n"
    assert "Nothing to change" in await edit(central, root, body="def first():\n    return 1")


async def test_the_setting_read_only_forbids_edits(central: Application, root: Path) -> None:
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text("read_only: true\n")
    (root / "mod.py").write_text("def first():\n    return 1\n")

    with pytest.raises(ToolRefused, match="read_only"):
        await edit(central, root)


async def test_any_session_reads_what_was_just_edited(central: Application, root: Path) -> None:
    (root / "mod.py").write_text("def first():\n    return 1\n")
    for number in range(5):
        await edit(central, root, body=f"def first():\n    return {number}")
        await edit(central, root, "insert_before_symbol", body=f"def before_{number}():\n    return 0")
        other = session_of(central, explicit_id="other")
        for name, line in (("first", 3 + 3 * number), (f"before_{number}", 3 * number)):
            found = await central.caller.call(
                other, "find_symbol", {"name_path_pattern": name, "include_body": True, "project": str(root)}
            )
            assert f'"start_line":{line},' in found.blocks[0]
