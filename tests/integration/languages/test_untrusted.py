"""Hostile repositories, opened with real language servers: nothing of them is executed before they are trusted.

Each of them is opened twice. The second time, trusted, proves that its canaries fire: else the first proved nothing.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from serena_central.core.errors import ServerNotTrusted
from tests.support import hostile
from tests.support.browser import visiting
from tests.support.central import session_of
from tests.support.hostile import Hostile
from tests.support.languages import AS_SHIPPED, Asker, asker

pytestmark = pytest.mark.anyio


async def use(asked: Asker, name: str = "opened") -> tuple[list[str], str]:
    """Finds a function and its references; where they stand, and all notes."""
    found = await asked.result("find_symbol", name_path_pattern=name)
    texts = [part["text"] for part in found["content"]]
    assert not found["isError"], texts
    symbols = json.loads(texts[0])
    assert len(symbols) == 1, texts
    path = symbols[0]["relative_path"]
    uses = await asked.result("find_referencing_symbols", name_path=name, relative_path=path)
    texts += [part["text"] for part in uses["content"]]
    return [] if uses["isError"] else sorted(json.loads(uses["content"][0]["text"])), "\n".join(texts)


def settings(box: Hostile, *, trusted: bool, **more: Any) -> dict[str, Any]:
    return {"trusted_roots": [str(box.root)] if trusted else [], **more}


async def opened(box: Hostile, folder: Path, *, trusted: bool, **more: Any) -> tuple[list[str], str]:
    home = folder / ("trusted" if trusted else "untrusted")
    home.mkdir()
    async with asker(home, box.root, settings(box, trusted=trusted, **more), rust_std=True) as asked:
        return await use(asked)


_NO_SOURCES = {"cargo": {"sysrootSrc": "/nowhere"}}

WITHOUT_SOURCES = {
    "language_servers": {"rust": {"settings": {"rust-analyzer": _NO_SOURCES}, "initialization_options": _NO_SOURCES}}
}
"""Settings for Rust code that is not asked about the standard library. Unlike without one, rust-analyzer looks for the
toolchain as ever, and runs whatever it runs for that."""

WORKS_AT_ONCE: dict[str, tuple[Callable[[Hostile], None], str, set[str], str]] = {
    # its maker, the file with the reference, what runs when it is trusted, what an untrusted answer says
    "ty": (hostile.python, "shop.py", set(), ""),
    "typescript": (hostile.typescript, "shop.ts", set(), "types of packages"),
    "rust": (hostile.rust, "src/main.rs", {"build.rs", "macro"}, "macros are not expanded"),
    "rust as shipped": (hostile.rust, "src/main.rs", {"build.rs", "macro"}, "macros are not expanded"),
    "rust with .cargo": (
        hostile.rust_configured,
        "src/main.rs",
        {"rustc", "rustc-wrapper", "preloaded.so"},
        "macros are not expanded",
    ),
    "rust with a toolchain": (
        hostile.rust_toolchain,
        "src/main.rs",
        {"toolchain-rustc"},
        "macros are not expanded",
    ),
    "go": (hostile.go, "shop.go", set(), "cgo"),
    "c": (hostile.c, "shop.c", set(), ""),
}


@pytest.mark.parametrize(
    "name",
    # As shipped, rust-analyzer goes through the whole standard library first.
    [pytest.param(name, marks=pytest.mark.slow if name == "rust as shipped" else ()) for name in WORKS_AT_ONCE],
)
async def test_what_needs_nothing_of_the_repository_works_at_once_and_executes_nothing_of_it(
    tmp_path: Path, name: str
) -> None:
    make, where, fires, says = WORKS_AT_ONCE[name]
    box = Hostile(tmp_path)
    make(box)
    servers = WITHOUT_SOURCES if name in ("rust with .cargo", "rust with a toolchain") else {}
    uses, notes = await opened(box, tmp_path, trusted=False, **(AS_SHIPPED if name == "rust as shipped" else servers))
    assert box.ran == set()
    assert uses == [where]
    assert says in notes
    if says:
        assert f"serena-central trust {box.root}" in notes
    if fires:
        _, notes = await opened(box, tmp_path, trusted=True, **servers)
        assert fires <= box.ran
        assert "not trusted" not in notes


async def test_a_server_that_runs_the_interpreter_of_the_repository_is_not_run_though_its_settings_choose_it(
    tmp_path: Path,
) -> None:
    box = Hostile(tmp_path)
    hostile.python(box)
    box.write(".serena/project.yml", "language_servers: {python: basedpyright}\n")
    uses, notes = await opened(box, tmp_path, trusted=False)
    assert box.ran == set()
    assert uses == []
    assert "By syntax only (tree-sitter): " in notes
    assert "The language server basedpyright for python was not started: it would execute an interpreter" in notes
    assert f"serena-central trust {box.root}" in notes
    uses, notes = await opened(box, tmp_path, trusted=True)
    assert uses == ["shop.py"]
    assert "venv-python" in box.ran


async def test_a_file_that_overrules_what_a_client_says_keeps_its_server_from_being_run(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.rust_analyzer_told(box)
    uses, notes = await opened(box, tmp_path, trusted=False)
    assert (uses, box.ran) == ([], set())
    assert f"what {box.root / 'rust-analyzer.toml'} may name" in notes
    _, notes = await opened(box, tmp_path, trusted=True, **WITHOUT_SOURCES)
    assert "build.rs" in box.ran


async def test_a_server_ends_when_such_a_file_appears(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.rust(box)
    async with asker(tmp_path, box.root, settings(box, trusted=False, **WITHOUT_SOURCES)) as asked:
        uses, _ = await use(asked)
        assert uses == ["src/main.rs"]
        hostile.rust_analyzer_told(box)
        await asked.project.fresh()
        with pytest.raises(ServerNotTrusted):
            await asked.uses("opened", "src/main.rs")
        shown = asked.central.central.pool.snapshot()
        assert {one.state for one in shown if one.server == "rust-analyzer"} <= {"expired", "disconnected"}
    assert box.ran == set()


async def test_the_toolchain_that_a_module_names_is_neither_run_nor_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Hostile(tmp_path)
    hostile.go(box)
    box.write("go.mod", "module example.com/shop\n\ngo 1.21\n\ntoolchain go1.99.0\n")
    elsewhere = tmp_path / "bin"
    elsewhere.mkdir()
    box.program("go1.99.0").rename(elsewhere / "go1.99.0")  # go runs the toolchain that it finds in PATH
    monkeypatch.setenv("PATH", f"{elsewhere}{os.pathsep}{os.environ['PATH']}")
    go = await anyio.run_process(
        ["go", "version"], cwd=box.root, env={**os.environ, "GOTOOLCHAIN": "path"}, check=False
    )
    assert go.returncode != 0
    assert box.ran == {"go1.99.0"}  # so this would have been seen
    next(box.canaries.iterdir()).unlink()
    for trusted in (False, True):
        uses, _ = await opened(box, tmp_path, trusted=trusted)
        assert (uses, box.ran) == (["shop.go"], set())


async def test_cgo_runs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Hostile(tmp_path)
    hostile.go(box, cgo=True)
    spy = box.program("pkg-config", then="exit 1")  # in PATH, as if it were the user's
    elsewhere = tmp_path / "bin"
    elsewhere.mkdir()
    spy.rename(elsewhere / "pkg-config")
    monkeypatch.setenv("PATH", f"{elsewhere}{os.pathsep}{os.environ['PATH']}")
    uses, _ = await opened(box, tmp_path, trusted=False)
    assert (uses, box.ran) == (["shop.go"], set())
    uses, _ = await opened(box, tmp_path, trusted=True)
    assert (uses, box.ran) == (["shop.go"], {"pkg-config"})


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
async def test_what_another_user_puts_above_a_trusted_project_is_not_executed(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.c(box)
    for name in ("compile_commands.json", ".clangd"):
        (box.root / name).rename(tmp_path / name)
    driven = {"language_servers": {"cpp": {"args": ["--background-index", "--query-driver=/**"]}}}
    async with asker(tmp_path, box.root, settings(box, trusted=True, **driven), rust_std=True) as asked:
        _, notes = await use(asked)
        assert (box.ran, "another user" in notes) == ({"evil-cc"}, False)  # it is the user's own
        next(box.canaries.iterdir()).unlink()
        os.chown(tmp_path / "compile_commands.json", 65534, -1)
        uses, notes = await use(asked)
        assert (uses, box.ran) == (["shop.c"], set())
        assert f"'{tmp_path / 'compile_commands.json'}' or its folder belongs to another user" in notes
        assert "serena-central trust" not in notes
        (tmp_path / "compile_commands.json").unlink()
        await use(asked)
        assert asked.project.restrictions == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
async def test_a_server_that_can_not_be_restricted_is_not_run_below_another_users_files(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.rust_analyzer_told(box)
    file = (box.root / "rust-analyzer.toml").rename(tmp_path / "rust-analyzer.toml")
    os.chown(file, 65534, -1)
    uses, notes = await opened(box, tmp_path, trusted=True)
    assert (uses, box.ran) == ([], set())
    assert f"what {file} may name. '{file}' or its folder belongs to another user" in notes
    assert "serena-central trust" not in notes


async def test_a_query_driver_of_the_user_does_not_reach_untrusted_compilers(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.c(box)
    args = ["--background-index", "--query-driver=/**"]
    uses, _ = await opened(box, tmp_path, trusted=False, language_servers={"cpp": {"args": args}})
    assert (uses, box.ran) == (["shop.c"], set())
    uses, _ = await opened(box, tmp_path, trusted=True, language_servers={"cpp": {"args": args}})
    assert (uses, box.ran) == (["shop.c"], {"evil-cc"})


async def test_a_server_writes_nothing_outside_that_a_stranger_names(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    log, cache = tmp_path / "authorized_keys", tmp_path / "cache"
    cache.mkdir()
    (box.root / ".cache").symlink_to(cache)
    box.write(
        "shop.c",
        "int opened(void) { return 1; }\n\nint main(void) { return opened(); }\n\nint bad(void) { return none; }\n",
    )
    flags = [
        word
        for part in ("-diagnostic-log-file", str(log), "-dwarf-debug-flags", "a\nkey\n")
        for word in ("-Xclang", part)
    ]
    database = [{"directory": str(box.root), "file": "shop.c", "arguments": ["cc", *flags, "-c", "shop.c"]}]
    box.write("compile_commands.json", json.dumps(database))
    uses, _ = await opened(box, tmp_path, trusted=False)
    assert (uses, log.exists(), list(cache.iterdir())) == (["shop.c"], False, [])
    uses, _ = await opened(box, tmp_path, trusted=True)
    assert (uses, log.exists(), bool(list(cache.iterdir()))) == (["shop.c"], True, True)


async def test_a_server_shows_nothing_of_hidden_files_that_a_stranger_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Hostile(tmp_path)
    user = tmp_path / "user"
    (user / ".ssh").mkdir(parents=True)
    (user / ".ssh" / "id_rsa").write_text("SECRET")
    monkeypatch.setenv("HOME", str(user))
    box.write("shop.cpp", f'constexpr char key[] = {{\n#embed "{user}/.ssh/id_rsa"\n, 0}};\n')
    box.write("compile_flags.txt", "-xc++\n-std=c++23\n")
    shown: list[bool] = []
    for trusted in (False, True):
        home = tmp_path / f"home-{trusted}"
        home.mkdir()
        async with asker(home, box.root, settings(box, trusted=trusted), rust_std=True) as asked:
            found = await asked.result("find_symbol", name_path_pattern="key", include_info=True)
            assert not found["isError"], found
            shown.append("SECRET" in str(found["content"]))
    assert shown == [False, True]


async def test_programs_in_the_repository_are_not_run_though_they_stand_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Hostile(tmp_path)
    hostile.typescript(box)
    box.write("run.sh", "opened() { true; }\nopened\n")
    for name in ("bash-language-server", "git", "npm", "node"):
        box.program(f"bin/{name}")
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{box.root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    home = tmp_path / "home"
    home.mkdir()
    async with asker(home, box.root, settings(box, trusted=False), rust_std=True) as asked:
        for path in ("shop.ts", "run.sh"):
            await asked.result("get_symbols_overview", relative_path=path)
    assert box.ran == set()


async def test_what_a_restricted_server_lacks_is_told_once_in_a_session(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.typescript(box)
    async with asker(tmp_path, box.root, settings(box, trusted=False), rust_std=True) as asked:
        _, first = await use(asked)
        assert first.count("is not trusted") == 1
        async with visiting(asked.central) as visitor:
            assert "restricted, because the project is not trusted: types of" in (
                await visitor.see(f"/projects/one?root={quote(str(box.root))}")
            )
        _, second = await use(asked)
        assert "trusted" not in second
        other = session_of(asked.central.central, explicit_id="other")
        answer = await asked.central.central.caller.call(
            other, "find_symbol", {"project": str(box.root), "name_path_pattern": "opened"}
        )
        assert "is not trusted" in answer.blocks[1]


async def test_who_trusts_and_who_does_not_never_share_a_server(tmp_path: Path) -> None:
    box = Hostile(tmp_path)
    hostile.rust(box)
    async with asker(tmp_path, box.root, settings(box, trusted=False, **WITHOUT_SOURCES)) as asked:
        await use(asked)
        languages = asked.project.languages
        spec = languages.spec_for("src/main.rs")
        assert spec is not None
        key = languages.orders.order(spec, "src/main.rs").key
        assert key.untrusted == box.root
        assert key != key._replace(untrusted=None)
