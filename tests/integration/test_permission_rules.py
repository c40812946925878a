"""A deny holds for every tool and every way in: what it closes is not read, listed, searched, edited or named."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import EditRefused, PathDenied, SerenaCentralError, ToolRefused
from serena_central.tools.families import CATALOGUE
from serena_central.tools.tool_effects import stands_for
from tests.support.central import RunningCentral, running_central, session_of

pytestmark = pytest.mark.anyio

SECRET = "canary-4711"

FILES = {
    ".env": f"TOKEN={SECRET}\n",
    "app/hidden.py": (
        f'from app.cart import Cart\n\nTOKEN = "{SECRET}"\n\n\ndef spend() -> int:\n    return Cart().total()\n'
    ),
    "app/cart.py": "class Cart:\n    def total(self) -> int:\n        return 0\n",
    "app/shop.py": (
        "from app.cart import Cart\nfrom app.hidden import spend\n\n\n"
        "def buy() -> int:\n    spend()\n    return Cart().total()\n"
    ),
    "app/__init__.py": "",
    "fixed/kept.py": "def kept() -> int:\n    return 1\n",
    "keys/a/one.pem": SECRET,
    "link.txt": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "link.txt").unlink()
    (root / "link.txt").symlink_to(".env")
    (root / "open-name.txt").write_text("open")
    rules(root, deny=["Read(./.env)", "Read(app/hidden.py)", "Read(*.pem)", "Edit(fixed/**)"])
    return root


def rules(root: Path, **lists: list[str]) -> None:
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude" / "settings.json").write_text(json.dumps({"permissions": lists}))


@pytest.fixture
async def running(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    settings = {"execute_shell": True, "included_optional_tools": ["execute_shell_command"]}
    async with running_central(tmp_path, settings) as running:
        yield running


@pytest.fixture
def central(running: RunningCentral) -> Application:
    return running.central


async def call(central: Application, root: Path, tool: str, **arguments: Any) -> str:
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    return "\n".join(answer.blocks)


@pytest.mark.parametrize(
    "path", [".env", "./.env", "app/../.env", "link.txt", "app/hidden.py", "keys/a/one.pem", ".en"]
)
async def test_what_is_closed_is_not_read_by_any_name(central: Application, root: Path, path: str) -> None:
    with pytest.raises(SerenaCentralError) as refused:
        await call(central, root, "read_file", relative_path=path)
    assert SECRET not in str(refused.value)
    if path == ".en":
        assert ".env'" not in str(refused.value)
    else:
        assert isinstance(refused.value, PathDenied)
        assert ".claude/settings.json:1:" in str(refused.value)


async def test_it_is_neither_listed_nor_found_nor_searched(central: Application, root: Path) -> None:
    said = [
        await call(central, root, "list_dir", relative_path=".", recursive=True),
        await call(central, root, "list_dir", relative_path=".", recursive=True, skip_ignored_files=True),
        await call(central, root, "find_file", file_mask="*"),
        await call(central, root, "search_for_pattern", substring_pattern=SECRET[:6]),
        await call(central, root, "search_for_pattern", substring_pattern=SECRET[:6], skip_ignored_files=False),
        await call(central, root, "find_symbol", name_path_pattern="spend"),
        await call(central, root, "find_symbol", name_path_pattern="TOKEN"),
        await call(central, root, "get_symbols_overview", relative_path="app"),
    ]
    for text in said:
        for word in (SECRET, "hidden.py", "one.pem", '".env"', "spend"):
            assert word not in text.replace('"spend"', ""), text
    assert "open-name.txt" in said[0]


async def test_references_into_a_closed_file_are_counted_and_not_shown(central: Application, root: Path) -> None:
    said = await call(central, root, "find_referencing_symbols", name_path="Cart/total", relative_path="app/cart.py")
    assert "app/shop.py" in said
    assert "hidden" not in said
    assert "1 place lies in files that permission rules close" in said
    callers = await call(central, root, "get_call_hierarchy", name_path="Cart/total", relative_path="app/cart.py")
    assert "hidden" not in callers
    assert "spend" not in callers
    with pytest.raises(PathDenied, match="defined in a file that a permission rule closes"):
        await call(central, root, "find_declaration", relative_path="app/shop.py", regex=r"\n    (spend)\(\)")


async def test_nothing_that_only_a_closed_file_uses_is_deleted(central: Application, root: Path) -> None:
    (root / "app/shop.py").write_text("")
    with pytest.raises(EditRefused, match="in files that permission rules close"):
        await call(central, root, "safe_delete_symbol", name_path_pattern="Cart", relative_path="app/cart.py")
    assert (root / "app/cart.py").read_text() == FILES["app/cart.py"]


async def test_nothing_that_only_a_closed_file_uses_is_called_unused(central: Application, root: Path) -> None:
    (root / "app/shop.py").write_text("def forgotten() -> int:\n    return 1\n")
    said = await call(central, root, "find_unused_symbols", relative_path="app")
    assert '"name_path":"forgotten"' in said
    assert "Cart" in said.partition("files that permission rules close may refer to them: ")[2]
    assert '"name_path":"Cart"' not in said
    assert "hidden" not in said


async def test_a_rename_that_would_change_a_closed_file_changes_nothing(central: Application, root: Path) -> None:
    before = {name: (root / name).read_text() for name in FILES if name != "link.txt"}
    with pytest.raises(SerenaCentralError) as refused:
        await call(central, root, "rename_symbol", name_path="Cart/total", relative_path="app/cart.py", new_name="sum")
    assert "hidden" not in str(refused.value)
    assert {name: (root / name).read_text() for name in before} == before


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_text_file", {"relative_path": ".env", "content": "x"}),
        ("create_text_file", {"relative_path": "fixed/new.py", "content": "x"}),
        ("create_text_file", {"relative_path": "new.pem", "content": "x"}),
        ("replace_content", {"relative_path": "fixed/kept.py", "needle": "1", "repl": "2", "mode": "literal"}),
        ("replace_symbol_body", {"relative_path": "fixed/kept.py", "name_path": "kept", "body": "def kept(): ..."}),
        ("rename_symbol", {"relative_path": "fixed/kept.py", "name_path": "kept", "new_name": "held"}),
        ("create_text_file", {"relative_path": ".claude/settings.json", "content": "{}"}),
    ],
)
async def test_what_may_not_be_edited_is_not(
    central: Application, root: Path, tool: str, arguments: dict[str, Any]
) -> None:
    path = root / arguments["relative_path"]
    before = path.read_text() if path.exists() else None
    with pytest.raises(PathDenied):
        await call(central, root, tool, **arguments)
    assert (path.read_text() if path.exists() else None) == before


async def test_what_may_only_not_be_edited_can_be_read(central: Application, root: Path) -> None:
    assert "return 1" in await call(central, root, "read_file", relative_path="fixed/kept.py")
    assert "kept" in await call(central, root, "find_symbol", name_path_pattern="kept")


async def test_a_changed_rule_counts_at_the_next_call(central: Application, root: Path) -> None:
    assert "0 " not in await call(central, root, "find_file", file_mask="open-name.txt")
    rules(root, deny=["Read(open-name.txt)"])
    assert SECRET in await call(central, root, "read_file", relative_path=".env")
    assert "spend" in await call(central, root, "find_symbol", name_path_pattern="spend")
    with pytest.raises(PathDenied):
        await call(central, root, "read_file", relative_path="open-name.txt")
    (root / ".claude" / "settings.json").unlink()
    assert "open" in await call(central, root, "read_file", relative_path="open-name.txt")


async def test_a_broken_file_lifts_no_rule_and_is_told_once(central: Application, root: Path) -> None:
    await call(central, root, "list_dir", relative_path=".")
    (root / ".claude" / "settings.json").write_text('{"permissions": {"deny": [')
    with pytest.raises(PathDenied):
        await call(central, root, "read_file", relative_path=".env")
    said = await call(central, root, "list_dir", relative_path=".")
    assert "1 error in settings" in said
    assert "what it said before stays in force" in said
    assert "error in settings" not in await call(central, root, "list_dir", relative_path=".")


@pytest.mark.parametrize(
    "text", ['{"mcpServers": {"a": {"command": "x"', "[]", '{"mcpServers": {"a": {"command": 5}}}']
)
async def test_a_broken_file_of_mcp_servers_is_told_once(central: Application, root: Path, text: str) -> None:
    """Its servers were silently not there."""
    assert "in settings" not in await call(central, root, "list_dir", relative_path=".")
    (root / ".mcp.json").write_text(text)
    said = await call(central, root, "list_dir", relative_path=".")
    assert "in settings, the first: " in said
    assert ".mcp.json" in said.partition("in settings")[2]
    assert "in settings" not in await call(central, root, "list_dir", relative_path=".")


async def test_rules_of_a_folder_above_hold_in_a_project_below(central: Application, root: Path) -> None:
    rules(root, deny=["Read(app/hidden.py)"])
    (root / "app" / ".git").mkdir()
    with pytest.raises(PathDenied):
        await call(central, root / "app", "read_file", relative_path="hidden.py")
    assert "hidden" not in await call(central, root / "app", "list_dir", relative_path=".")


async def test_a_bare_rule_switches_tools_off(central: Application, root: Path) -> None:
    rules(root, deny=["Edit", "Grep", "mcp__serena-central__find_file"])
    for tool, arguments in (
        ("create_text_file", {"relative_path": "x", "content": "x"}),
        ("search_for_pattern", {"substring_pattern": "x"}),
        ("find_file", {"file_mask": "*"}),
    ):
        with pytest.raises(ToolRefused, match="denied by the permission rule"):
            await call(central, root, tool, **arguments)
    assert "total" in await call(central, root, "find_symbol", name_path_pattern="total")


async def test_ask_refuses_with_who_can_allow_it(central: Application, root: Path) -> None:
    rules(root, ask=["Read(.env)", "Bash(git push:*)"])
    with pytest.raises(PathDenied, match="not done without a person's consent"):
        await call(central, root, "read_file", relative_path=".env")
    with pytest.raises(ToolRefused, match=r"Bash\(git push:\*\)"):
        await call(central, root, "execute_shell_command", command="true && git push")


async def test_commands_follow_rules_for_each_command_of_a_line(central: Application, root: Path) -> None:
    rules(root, deny=["Bash(git push:*)", "Read(.env)"])
    for command in ("git push", "true; FOO=1 git -C . push", "bash -c 'git push'", "cat .env", "cat < app/../.env"):
        with pytest.raises(ToolRefused, match="permission rule"):
            await call(central, root, "execute_shell_command", command=command)
    assert "hello" in await call(central, root, "execute_shell_command", command="echo hello")


async def test_every_way_in_is_held_to_the_rules(running: RunningCentral, root: Path) -> None:
    asked = {"project": str(root), "relative_path": ".env"}
    async with running.http() as http:
        told = await http.post("/api/v1/tools/read_file", json={"arguments": asked})
        assert SECRET not in told.text
        assert "permission rule" in told.text
    for era in ("handshake", "modern"):
        async with running.raw(era) as client:
            said = json.dumps(await client.call("read_file", **asked))
            assert SECRET not in said
            assert "permission rule" in said


async def test_memories_are_held_to_the_rules(central: Application, root: Path) -> None:
    rules(root, deny=["Read(.serena/memories/private/**)", "Edit(.serena/memories/fixed.md)"])
    for name in ("private/keys", "fixed"):
        (root / f".serena/memories/{name}.md").parent.mkdir(parents=True, exist_ok=True)
        (root / f".serena/memories/{name}.md").write_text(SECRET)
    assert "private" not in await call(central, root, "list_memories")
    with pytest.raises(PathDenied):
        await call(central, root, "read_memory", memory_name="private/keys")
    with pytest.raises(PathDenied):
        await call(central, root, "write_memory", memory_name="fixed", content="x")
    assert SECRET in await call(central, root, "read_memory", memory_name="fixed")


def test_every_tool_has_an_effect() -> None:
    for tool in CATALOGUE:
        effect, kinds = stands_for(tool)
        if tool.name == "execute_shell_command":
            assert (effect, kinds) == ("run", ("Bash",))
        elif tool.edits:
            assert effect == "edit"
            assert "Edit" in kinds
        elif tool.on_project and tool.about == "code":
            assert "Read" in kinds
