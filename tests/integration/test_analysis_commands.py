"""`serena-central graph` and `validate` against a server that runs as a child: what they write, how they end."""

import re
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.support.child import PATIENCE_S, Child, run_command
from tests.support.terminal import CTRL_C, in_terminal

CLEAN = "from stone import Stone\n\n\nclass Ring:\n    stone: Stone\n\n\nprint(Ring().stone)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two files of which one uses the other, committed."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "ring.py").write_text(CLEAN)
    (root / "stone.py").write_text("class Stone:\n    pass\n")
    initialize(root)
    return root


def initialize(root: Path) -> None:
    subprocess.run(["git", "-C", str(root), "init", "--quiet"], check=True)
    commit(root)


def commit(root: Path) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "change"], check=True)


async def test_a_graph_is_printed_or_written(serving: Child, project: Path, tmp_path: Path) -> None:
    printed = await run_command(serving.folder, "graph", "--format", "json", cwd=project)
    assert printed.code == 0, printed.err
    edges = [(edge["source"], edge["target"]) for edge in printed.json["drawn"]["edges"]]
    assert edges == [("ring.py", "stone.py")]
    assert "reading symbols" in printed.err.splitlines()
    out = tmp_path / "graph.md"
    written = await run_command(serving.folder, "graph", str(project), "--out", str(out))
    assert (written.code, written.out) == (0, "")
    assert f"Wrote {out}" in written.err
    assert "```mermaid" in out.read_text()


ASKING = r"collecting references: (\d+) of (\d+) symbols"


def chain(root: Path) -> Path:
    """Files of which each uses what the one before it defines: more than can be asked about in some seconds."""
    (root / ".git").mkdir(parents=True)
    for number in range(150):
        names = [f"part_{number}_{one}" for one in range(20)]
        before = ", ".join(f"part_{number - 1}_{one}" for one in range(20))
        head = f"from file_{number - 1} import {before}\n\nprint({before})\n" if number else ""
        (root / f"file_{number}.py").write_text(head + "".join(f"\n\ndef {name}() -> None: ...\n" for name in names))
    return root


async def test_ctrl_c_ends_a_graph_with_what_was_found_so_far_and_the_next_run_goes_on_where_it_was(
    serving: Child, tmp_path: Path
) -> None:
    graph = ("graph", str(chain(tmp_path / "chain")), "--out", str(tmp_path / "graph.md"))
    async with in_terminal(serving.folder, *graph) as terminal:
        done, total = map(int, (await terminal.until(ASKING)).groups())
        terminal.press(CTRL_C)
        assert await terminal.end() == 0
        assert "Interrupted: fetching the result so far." in terminal.text
        assert re.search(r"Out of time: the references to \d+ of \d+ symbols .* call again to resume", terminal.text)
    async with serving.http() as http:
        with anyio.fail_after(PATIENCE_S):
            while any(one["running"] for one in (await http.get("/api/v1/sessions")).json()["sessions"]):
                await anyio.sleep(0.01)
    assert "```mermaid" in (tmp_path / "graph.md").read_text()
    async with in_terminal(serving.folder, *graph) as terminal:
        _, left = map(int, (await terminal.until(ASKING)).groups())
        assert left <= total - done
        terminal.press(CTRL_C)
        assert await terminal.end() == 0


async def test_a_graph_with_a_wrong_option_or_without_a_server_is_not_drawn(project: Path, tmp_path: Path) -> None:
    wrong = await run_command(tmp_path, "graph", str(project), "--granularity", "planet")
    assert wrong.code == 2
    alone = await run_command(tmp_path, "graph", str(project))
    assert alone.code == 3
    assert "No server is running" in alone.err


async def test_validate_ends_with_0_where_nothing_is_wrong(serving: Child, project: Path) -> None:
    ended = await run_command(serving.folder, "validate", "--project", str(project), "--json")
    assert ended.code == 0, ended.out + ended.err
    assert (ended.json["broken"], ended.json["unused"]) == ([], [])


async def test_validate_ends_with_1_where_it_finds_something_and_tells_where(serving: Child, project: Path) -> None:
    (project / "lost.py").write_text("from stone import Missing\n\n\ndef forgotten() -> None:\n    pass\n")
    both = await run_command(serving.folder, "validate", cwd=project)
    assert both.code == 1, both.err
    assert "lost.py:1: unresolved import" in both.out
    assert "lost.py:4: unused function forgotten (high" in both.out
    unused = await run_command(serving.folder, "validate", "--unused", "--json", cwd=project)
    assert unused.code == 1
    assert ([one["name_path"] for one in unused.json["unused"]], unused.json["broken"]) == (["forgotten"], [])


async def test_what_a_server_may_only_not_see_closes_no_gate_and_is_listed_when_it_is_asked_for(
    serving: Child, project: Path
) -> None:
    (project / "dark.py").write_text("import not_installed\n\nprint((1).nothing, not_installed)\n")
    ended = await run_command(serving.folder, "validate", "--broken-refs", cwd=project)
    assert (ended.code, ended.out) == (0, ""), ended.err
    assert "2 possible broken references not listed" in ended.err
    assert "--possible" in ended.err
    listed = await run_command(serving.folder, "validate", "--broken-refs", "--possible", "--json", cwd=project)
    assert listed.code == 0
    assert {(one["what"], one["certainty"]) for one in listed.json["broken"]} == {
        ("unresolved import", "possible"),
        ("missing member", "possible"),
    }


async def test_what_a_package_hands_to_others_is_listed_as_unused_and_closes_no_gate(
    serving: Child, project: Path
) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'shop'\nversion = '1'\n")
    (project / "shop").mkdir()
    (project / "shop/__init__.py").write_text("")
    (project / "shop/saw.py").write_text("def cut() -> None: ...\n")
    ended = await run_command(serving.folder, "validate", "--unused", "--json", cwd=project)
    assert ended.code == 0, ended.err
    assert [(one["name_path"], one["confidence"]) for one in ended.json["unused"]] == [("cut", "medium")]
    (project / "shop/saw.py").write_text("def _cut() -> None: ...\n")
    assert (await run_command(serving.folder, "validate", "--unused", cwd=project)).code == 1


async def test_validate_since_a_revision_looks_at_what_changed(serving: Child, project: Path) -> None:
    (project / "lost.py").write_text("print(undefined_name)\n")
    changed = await run_command(serving.folder, "validate", "--broken-refs", "--since", "HEAD", cwd=project)
    assert (changed.code, changed.out.splitlines()[0].split(": ")[0]) == (1, "lost.py:1")
    commit(project)
    nothing = await run_command(serving.folder, "validate", "--broken-refs", "--since", "HEAD", "--json", cwd=project)
    assert (nothing.code, nothing.json["broken"]) == (0, [])


async def test_what_is_written_for_a_newer_python_is_judged_as_all_else(serving: Child, project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'shop'\nversion = '1'\nrequires-python = '>=3.14'\n")
    (project / "new.py").write_text(
        "type Pair[T = int] = tuple[T, T]\n\n\ndef told[T](x: Pair[T]) -> Pair[T]:\n"
        '    print(t"{x["a"]}", lost)\n    try:\n        wanted\n    except KeyError, NameError:\n        pass\n'
    )
    (project / "group.py").write_text("try:\n    wanted\nexcept* NameError:\n    pass\n")
    ended = await run_command(serving.folder, "validate", "--broken-refs", "--json", cwd=project)
    assert ended.code == 1, ended.err
    assert [(one["path"], one["line"], one["certainty"]) for one in ended.json["broken"]] == [("new.py", 4, "certain")]


@pytest.mark.parametrize("first", ["", "type Number = int\n"], ids=["any Python", "Python 3.12"])
async def test_what_is_only_possible_counts_since_a_revision_if_the_revision_did_not_have_it(
    serving: Child, project: Path, first: str
) -> None:
    cut, grind = "    def cut(self): ...\n", "    def grind(self): ...\n"
    (project / "stone.py").write_text(f"{first}class Stone:\n{cut}\n{grind}\nprint('cut')\n")
    (project / "ring.py").write_text(
        "from stone import Stone\n\n\ndef work(stone: Stone):\n    stone.cut()\n    stone.dynamic\n\n\nwork(Stone())\n"
    )
    commit(project)
    since = ("validate", "--broken-refs", "--json", "--since", "HEAD")
    (project / "stone.py").write_text(f"{first}class Stone:\n{cut}\nprint('cut')\n")
    ended = await run_command(serving.folder, *since, cwd=project)
    assert (ended.code, ended.json["broken"]) == (0, []), ended.err
    (project / "stone.py").write_text(f"{first}class Stone:\n{grind}\nprint('cut')\n")
    ended = await run_command(serving.folder, *since, cwd=project)
    assert ended.code == 1, ended.err
    assert [(one["path"], one["line"], one["certainty"], one["new"]) for one in ended.json["broken"]] == [
        ("ring.py", 4, "possible", True)
    ]
    assert "1 possible broken reference not listed" in ended.err + "".join(ended.json["notes"])


async def test_a_folder_of_a_project_is_asked_about_with_what_all_of_the_project_uses(
    serving: Child, project: Path
) -> None:
    (project / "tools").mkdir()
    (project / "tools/__init__.py").touch()
    (project / "tools/saw.py").write_text("def cut() -> None: ...\n\n\ndef rust() -> None: ...\n")
    (project / "bench.py").write_text("from tools.saw import cut\n\ncut()\n")
    (project / "lost.py").write_text("print(undefined_name)\n")
    ended = await run_command(serving.folder, "validate", "--json", cwd=project / "tools")
    assert ended.code == 1, ended.err
    assert [(one["relative_path"], one["name_path"]) for one in ended.json["unused"]] == [("tools/saw.py", "rust")]
    assert ended.json["broken"] == []


async def test_a_folder_that_no_project_holds_is_taken_for_one(serving: Child, tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text("print(undefined_name)\n")
    ended = await run_command(serving.folder, "validate", "--project", str(tmp_path))
    assert (ended.code, ended.out.partition(": ")[0]) == (1, "lost.py:1")
    drawn = await run_command(serving.folder, "graph", str(tmp_path), "--format", "json")
    assert (drawn.code, drawn.json["nodes"]) == (0, 1)


async def test_a_folder_that_the_project_around_it_ignores_is_taken_for_one(serving: Child, project: Path) -> None:
    (project / ".gitignore").write_text("scratch/\n")
    (project / "scratch").mkdir()
    (project / "scratch/lost.py").write_text("print(undefined_name)\n")
    ended = await run_command(serving.folder, "validate", "--project", "scratch", cwd=project)
    assert (ended.code, ended.out.partition(": ")[0]) == (1, "lost.py:1")


async def test_at_a_super_repo_s_root_its_modules_are_looked_through_submodules_since_a_revision_too(
    serving: Child, project: Path
) -> None:
    root = project.parent
    (root / ".serena").mkdir()
    (root / ".serena/project.yml").write_text("type: super-repo\nmodules: {shop: {path: shop}, web: {path: web}}\n")
    (root / "web").mkdir()
    (root / "web/page.py").write_text("def lost() -> None: ...\n")
    initialize(root)
    (project / "lost.py").write_text("print(undefined_name)\n")
    every = await run_command(serving.folder, "validate", "--json", cwd=root)
    since = await run_command(serving.folder, "validate", "--json", "--since", "HEAD", cwd=root)
    for ended, unused in ((every, ["web/page.py"]), (since, [])):
        assert ended.code == 1, ended.err
        assert [one["path"] for one in ended.json["broken"]] == ["shop/lost.py"]
        assert [one["relative_path"] for one in ended.json["unused"]] == unused


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--wrong"], 2),
        (["--project", "nowhere"], 2),
        (["--since", "no-such-revision"], 2),
        (["--since=--output=x"], 2),
        (["extra"], 2),
        ([], 3),
    ],
    ids=["no option", "no folder", "no revision", "no revision but an option", "no argument", "no server"],
)
async def test_validate_tells_wrong_usage_and_a_missing_server_from_findings(
    arguments: list[str], code: int, project: Path, tmp_path: Path
) -> None:
    ended = await run_command(tmp_path, "validate", *arguments, cwd=project)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err


async def test_validate_ends_in_its_seconds_with_what_it_found_and_says_what_it_did_not_look_at(
    serving: Child, tmp_path: Path
) -> None:
    root = chain(tmp_path / "chain")
    short = await run_command(
        serving.folder, "validate", "--unused", "--json", "--seconds", "2", "--project", str(root)
    )
    assert short.json["not_examined"] > 0
    assert any("Out of time: " in note for note in short.json["notes"])
    # What nobody could look at is no finding: the last file's functions are the only ones that nothing uses.
    assert {one["relative_path"] for one in short.json["unused"]} <= {"file_149.py"}
    assert short.code == 1
