"""Edits by symbol on files as they really are: encodings, line ends, modes, links; and bad input."""

import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import (
    AmbiguousSymbol,
    EditRefused,
    InvalidArguments,
    PathOutsideProject,
    PathRefused,
    SerenaCentralError,
    SymbolNotFound,
    ToolRefused,
)
from serena_central.symbols.syntax import reader
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


async def test_the_parser_is_asked_about_a_symbol_and_its_replacement_in_one_go(
    central: Application, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "mod.py").write_bytes(b"def first():\n    return 1\n")
    asked: list[set[str]] = []
    ask = reader._ask

    async def noting(process: Any, answers: Any, batch: Sequence[Any]) -> str:
        asked.append({"edit" if one.request.edit else "claimed" for one in batch})
        return await ask(process, answers, batch)

    monkeypatch.setattr(reader, "_ask", noting)
    await edit(central, root)

    assert asked == [{"claimed", "edit"}]


async def test_a_replacement_that_the_syntax_widens_is_looked_at_as_it_is_made(
    central: Application, root: Path
) -> None:
    (root / "mod.py").write_bytes(b"@cache\ndef first():\n    return 1\n")
    await edit(central, root, relative_path="mod.py", body="@lru_cache\n" + BODY)
    with pytest.raises(EditRefused, match="can't be parsed"):
        await edit(central, root, relative_path="mod.py", body="@lru_cache\ndef first(:\n    return 10")

    assert (root / "mod.py").read_bytes() == b"@lru_cache\ndef first():\n    return 10\n"


async def test_a_project_s_encoding_is_kept(central: Application, root: Path) -> None:
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text("encoding: latin-1\n")
    (root / "mod.py").write_bytes("# café\ndef first():\n    return 1\n".encode("latin-1"))
    await edit(central, root, body="def first():\n    return 'é'")

    assert (root / "mod.py").read_bytes() == "# café\ndef first():\n    return 'é'\n".encode("latin-1")
    with pytest.raises(InvalidArguments, match="has no '𝒳'"):
        await edit(central, root, body="def first():\n    return '𝒳'")


async def test_a_file_of_an_unknown_encoding_gets_no_characters_of_another(central: Application, root: Path) -> None:
    before = "# caf\xe9\ndef first():\n    return 1\n".encode("latin-1")
    (root / "mod.py").write_bytes(before)
    with pytest.raises(InvalidArguments, match=r"is not valid utf-8.*'äö'.*Set `encoding`"):
        await edit(central, root, body="def first():\n    return 'äö'")
    assert (root / "mod.py").read_bytes() == before
    await edit(central, root, body="def first():\n    return '\\xe4'")
    assert b"\\xe4" in (root / "mod.py").read_bytes()


@pytest.mark.parametrize(
    ("file", "before", "body", "after"),
    [
        ("a.go", "package a\n\n// F old.\nfunc F() {}\n", "// F new.\nfunc F() { }", "// F new.\nfunc F() { }\n"),
        (
            "a.ts",
            "/** Old. */\nexport function F() {}\n",
            "// New.\nexport function F() { }",
            "// New.\nexport function F() { }\n",
        ),
        (
            "a.cpp",
            "// --- apart\n/* Old. */\nint F() { return 1; }\n",
            "/* New. */\nint F() { return 2; }",
            "// --- apart\n/* New. */\nint F() { return 2; }\n",
        ),
        (
            "a.rs",
            "/// Old.\n#[inline]\nfn F() {}\n",
            "/// New.\n#[inline]\nfn F() { }",
            "/// New.\n#[inline]\nfn F() { }\n",
        ),
        ("a.ts", "/** Old. */\nfunction F() {}\n", "function F() { }", "/** Old. */\nfunction F() { }\n"),
        (
            "a.ts",
            "// Copyright of all.\nfunction F() {}\n",
            "// New.\nfunction F() { }",
            "// Copyright of all.\n// New.\nfunction F() { }\n",
        ),
        ("a.ts", "const F = 1; // one\n", "const F = 2; // one", "const F = 2; // one\n"),
    ],
)
async def test_a_body_s_comment_takes_the_place_of_the_one_above(
    central: Application, root: Path, file: str, before: str, body: str, after: str
) -> None:
    (root / file).write_text(before)
    await edit(central, root, name_path="F", body=body)
    assert (root / file).read_text().removeprefix("package a\n\n") == after


@pytest.mark.parametrize("line", ["//go:noinline", "//nolint:errcheck"])
async def test_instructions_to_tools_do_not_get_lost_with_a_comment(
    central: Application, root: Path, line: str
) -> None:
    before = f"package a\n\n// F old.\n//\n{line}\nfunc F() {{}}\n"
    (root / "a.go").write_text(before)
    with pytest.raises(EditRefused, match=f"holds '{line}'"):
        await edit(central, root, name_path="F", body="// F new.\nfunc F() { }")
    assert (root / "a.go").read_text() == before
    await edit(central, root, name_path="F", body=f"// F new.\n//\n{line}\nfunc F() {{ }}")
    assert (root / "a.go").read_text() == f"package a\n\n// F new.\n//\n{line}\nfunc F() {{ }}\n"


@pytest.mark.parametrize(
    ("file", "text", "name_path", "refused"),
    [
        ("a.ts", "class A { f() {} }\n", "A/f", "ba"),
        ("a.ts", "class A { f() {}\n  g() {} }\n", "A/f", "b"),
        ("a.ts", "class A { f() {}\n  g() {} }\n", "A/g", "a"),
        ("a.ts", "namespace N { export function f() {} }\n", "N/f", "ba"),
        ("a.go", "package a\n\ntype T struct { A int }\n", "T/A", "ba"),
        ("a.rs", "struct S { a: u8 }\n", "S/a", "ba"),
        ("a.cpp", "struct S { int a; };\n", "S/a", "ba"),
        ("a.cpp", "struct S\n{ int f() { return 1; }\n};\n", "S/f", "b"),
        ("a.py", "class A: x = 1\n", "A/x", "ba"),
        ("a.py", "class A:\n    x = 1\n", "A/x", ""),
        ("a.py", "class A:\n    def f(self): pass\n\n\nx = 1\n", "A/f", ""),
    ],
)
async def test_nothing_is_inserted_outside_of_the_container(
    central: Application, root: Path, file: str, text: str, name_path: str, refused: str
) -> None:
    for key, tool in (("b", "insert_before_symbol"), ("a", "insert_after_symbol")):
        (root / file).write_text(text)
        if key in refused:
            with pytest.raises(EditRefused, match="as lines of its own"):
                await edit(central, root, tool, name_path=name_path, body="x")
            assert (root / file).read_text() == text
        else:
            await edit(central, root, tool, name_path=name_path, body="x")


@pytest.mark.parametrize(
    ("file", "text", "last", "first"),
    [
        ("A.java", "enum A {\n    X,\n    Y;\n\n    int f() { return 1; }\n}\n", "A/Y", "A/X"),
        ("a.c", "enum a {\n    X,\n    Y\n};\n", "a/Y", "a/X"),
        ("a.rs", "enum A {\n    X,\n    Y\n}\n", "A/Y", "A/X"),
        ("a.ts", "enum A {\n    X,\n    Y\n}\n", "A/Y", "A/X"),
    ],
)
async def test_what_follows_the_last_of_a_list_is_not_inserted_behind_its_end(
    central: Application, root: Path, file: str, text: str, last: str, first: str
) -> None:
    (root / file).write_text(text)
    with pytest.raises(EditRefused, match=f"inserted in {file}:3, .*replace_content"):
        await edit(central, root, "insert_after_symbol", name_path=last, body="Z,")
    assert (root / file).read_text() == text
    await edit(central, root, "insert_after_symbol", name_path=first, body="Z,")
    assert "    X,\n    Z,\n    Y" in (root / file).read_text()


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
