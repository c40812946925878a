"""The conflict guard, from reading to editing, over a real server's parts and a real language server."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import EditConflict
from serena_central.tools.symbol_answers import VIEWS_PER_SESSION
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

TEXT = """class Shape:
    def area(self):
        return 0

    def name(self):
        return "shape"


def twice(value):
    return value * 2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shapes.py").write_text(TEXT)
    return folder


class Agent:
    """One session and its project."""

    def __init__(self, central: Application, root: Path, name: str, **facts: Any) -> None:
        self.central, self.root = central, root
        self.session = session_of(central, client_name=f"client-{name}", **({"explicit_id": name} | facts))

    async def call(self, tool: str, **arguments: Any) -> str:
        answer = await self.central.caller.call(self.session, tool, {"project": str(self.root), **arguments})
        return "\n".join(answer.blocks)

    async def see(self, name_path: str) -> str:
        return await self.call("find_symbol", name_path_pattern=name_path, include_body=True)

    async def replace(self, name_path: str, body: str) -> str:
        return await self.call("replace_symbol_body", name_path=name_path, body=body)


async def test_what_another_session_changed_is_not_overwritten_unseen(central: Application, root: Path) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await one.see("twice")
    await two.see("twice")
    await two.replace("twice", "def twice(value):\n    return value + value")

    with pytest.raises(
        EditConflict, match=r"session two \(client-two\) at \d{4}-.*Its current text:\ndef twice\(value\)"
    ) as e:
        await one.replace("twice", "def twice(value):\n    return 2 * value")

    assert e.value.current == "def twice(value):\n    return value + value"
    await one.see("twice")
    await one.replace("twice", "def twice(value):\n    return 2 * value")
    assert "return 2 * value" in (root / "shapes.py").read_text()


async def test_what_an_editor_changed_is_not_overwritten_unseen(central: Application, root: Path) -> None:
    one = Agent(central, root, "one")
    await one.see("twice")
    (root / "shapes.py").write_text(TEXT.replace("value * 2", "value << 1"))

    with pytest.raises(EditConflict, match="changed by something outside this server"):
        await one.replace("twice", "def twice(value):\n    return 2 * value")

    assert "value << 1" in (root / "shapes.py").read_text()


async def test_other_symbols_of_the_same_file_can_be_edited(central: Application, root: Path) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await one.see("Shape")
    await two.replace("twice", "def twice(value):\n    return value + value")
    await one.replace("Shape/area", "def area(self):\n        return 1")

    text = (root / "shapes.py").read_text()
    assert "return value + value" in text
    assert "return 1" in text


async def test_a_session_may_go_on_from_its_own_edits(central: Application, root: Path) -> None:
    one = Agent(central, root, "one")
    await one.see("Shape")
    for number in range(3):
        await one.replace("Shape/area", f"def area(self):\n        return {number}")
    await one.call("insert_after_symbol", name_path="Shape/area", body="def sides(self):\n    return 4")
    await one.replace("Shape/sides", "def sides(self):\n        return 5")
    await one.replace("Shape", "class Shape:\n    pass")

    assert "class Shape:\n    pass\n\n\ndef twice" in (root / "shapes.py").read_text()


async def test_a_container_conflicts_when_another_changed_what_is_in_it(central: Application, root: Path) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await one.see("Shape")
    await two.replace("Shape/name", 'def name(self):\n        return "two"')
    await one.replace("Shape/area", "def area(self):\n        return 1")

    with pytest.raises(EditConflict, match="Shape in"):
        await one.replace("Shape", "class Shape:\n    pass")


async def test_who_never_looked_at_a_symbol_may_replace_it(central: Application, root: Path) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await two.replace("twice", "def twice(value):\n    return value + value")
    await one.replace("twice", "def twice(value):\n    return 2 * value")

    assert "return 2 * value" in (root / "shapes.py").read_text()


async def test_seeing_a_name_does_not_make_an_older_body_good(central: Application, root: Path) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await one.see("twice")
    await two.replace("twice", "def twice(value):\n    return value + value")
    await one.call("get_symbols_overview", relative_path="shapes.py")

    with pytest.raises(EditConflict):
        await one.replace("twice", "def twice(value):\n    return 2 * value")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_symbols_overview", {"relative_path": "shapes.py"}),
        ("read_file", {"relative_path": "shapes.py"}),
        ("get_symbol_context", {"name_path": "twice"}),
        ("find_declaration", {"relative_path": "use.py", "regex": r"(twice)\(1", "include_body": True}),
    ],
)
async def test_every_way_of_reading_counts(
    central: Application, root: Path, tool: str, arguments: dict[str, Any]
) -> None:
    (root / "use.py").write_text("from shapes import twice\n\n\ndef use():\n    return twice(1)\n")
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await two.see("twice")  # the file's symbols are known from now on
    await one.call(tool, **arguments)
    await two.replace("twice", "def twice(value):\n    return value + value")

    with pytest.raises(EditConflict):
        await one.replace("twice", "def twice(value):\n    return 2 * value")


async def test_a_user_of_a_symbol_was_seen_with_its_references(central: Application, root: Path) -> None:
    (root / "use.py").write_text("from shapes import twice\n\n\ndef use():\n    return twice(1)\n")
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await one.call("find_referencing_symbols", name_path="twice", relative_path="shapes.py")
    await two.replace("use", "def use():\n    return twice(2)")

    with pytest.raises(EditConflict):
        await one.replace("use", "def use():\n    return twice(3)")


async def test_lines_that_were_not_shown_are_not_known(central: Application, root: Path) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await two.see("twice")
    await one.call("read_file", relative_path="shapes.py", end_line=3)
    await two.replace("twice", "def twice(value):\n    return value + value")
    await one.replace("twice", "def twice(value):\n    return 2 * value")

    assert "return 2 * value" in (root / "shapes.py").read_text()


async def test_a_shared_session_is_told_that_its_guard_is_weaker(central: Application, root: Path) -> None:
    shared = Agent(central, root, "any", explicit_id=None)
    assert shared.session.shared

    assert "Several clients may share this session" in await shared.replace("twice", "def twice(v):\n    return v")


async def test_the_setting_lets_a_conflict_pass_and_says_so(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path / "h", {"edit_diagnostics_s": 0, "edit_conflicts": "warn"}) as central:
            one = Agent(central, root, "one")
            await one.see("twice")
            (root / "shapes.py").write_text(TEXT.replace("value * 2", "value << 1"))

            assert "Conflict, allowed" in await one.replace("twice", "def twice(value):\n    return 2 * value")
    assert "return 2 * value" in (root / "shapes.py").read_text()


@pytest.mark.parametrize("journal", ["there", "lost"])
async def test_who_changed_a_symbol_before_a_restart_is_known_by_the_journal(
    tmp_path: Path, root: Path, journal: str
) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:
            await Agent(central, root, "one").see("twice")
            await Agent(central, root, "two").replace("twice", "def twice(value):\n    return value + value")
        if journal == "lost":
            (tmp_path / "home" / "edits.journal").unlink()
        told = (
            r"session two \(client-two\)"
            if journal == "there"
            else "by an edit before the project was opened .* history"
        )
        async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:
            with pytest.raises(EditConflict, match=told):
                await Agent(central, root, "one").replace("twice", "def twice(value):\n    return 2 * value")


class Forgetting(Agent):
    """A session whose server was killed before it could note what its newest edits made."""

    async def forgetting(self, tool: str, **arguments: Any) -> None:
        known = dict(self.session.views)
        await self.call(tool, **arguments)
        self.session.views.clear()
        self.session.views.update(known)


async def test_what_a_session_wrote_itself_it_knows_though_the_server_forgot(central: Application, root: Path) -> None:
    one = Forgetting(central, root, "one")
    await one.see("Shape")
    await one.see("twice")
    await one.forgetting("replace_symbol_body", name_path="twice", body="def twice(value):\n    return value + value")
    await one.replace("twice", "def twice(value):\n    return 2 * value")
    await one.forgetting("insert_after_symbol", name_path="Shape/name", body="def sides(self):\n    return 0")
    await one.forgetting("replace_symbol_body", name_path="Shape/area", body="def area(self):\n        return 1")
    await one.replace("Shape/area", "def area(self):\n        return 2")
    await one.replace("Shape", "class Shape:\n    pass")

    assert (root / "shapes.py").read_text() == "class Shape:\n    pass\n\n\ndef twice(value):\n    return 2 * value\n"


async def test_what_others_changed_elsewhere_does_not_hide_an_own_edit(central: Application, root: Path) -> None:
    one, two = Forgetting(central, root, "one"), Agent(central, root, "two")
    await one.see("Shape/name")
    await one.forgetting("replace_symbol_body", name_path="Shape/name", body="def name(self):\n        return 0")
    await two.call("insert_before_symbol", name_path="Shape", body="import os")
    await two.call("insert_after_symbol", name_path="Shape/name", body="def other(self):\n    return 0")
    await two.replace("twice", "def twice(value):\n    return 0")
    await one.replace("Shape/name", "def name(self):\n        return 1")

    assert (
        "def name(self):\n        return 1\n\n    def other(self):\n        return 0"
        in (root / "shapes.py").read_text()
    )


@pytest.mark.parametrize("who", ["another session", "an editor", "an editor, elsewhere"])
async def test_what_others_changed_after_an_own_edit_is_not_overwritten(
    central: Application, root: Path, who: str
) -> None:
    one, two = Forgetting(central, root, "one"), Agent(central, root, "two")
    file = root / "shapes.py"
    await one.see("twice")
    await one.forgetting("replace_symbol_body", name_path="twice", body="def twice(value):\n    return value + value")
    if who == "another session":
        await two.replace("twice", "def twice(value):\n    return value << 1")
    else:
        old, new = ("value + value", "value << 1") if who == "an editor" else ("return 0", "return 1")
        file.write_text(file.read_text().replace(old, new))
    before = file.read_text()

    with pytest.raises(EditConflict, match=r"session two" if who == "another session" else "was changed by"):
        await one.replace("twice", "def twice(value):\n    return 2 * value")
    assert file.read_text() == before


async def test_what_another_changed_before_an_own_edit_elsewhere_is_not_overwritten(
    central: Application, root: Path
) -> None:
    """An edit inside a class shows its author nothing of what another one changed there."""
    one, two = Forgetting(central, root, "one"), Agent(central, root, "two")
    await one.see("Shape")
    await two.replace("Shape/name", "def name(self):\n        return 2")
    await one.forgetting("insert_after_symbol", name_path="Shape/area", body="def sides(self):\n    return 4")

    with pytest.raises(EditConflict, match="session two"):
        await one.replace("Shape", "class Shape:\n    pass")


async def test_a_file_that_a_session_wrote_itself_it_knows_though_the_server_forgot(
    central: Application, root: Path
) -> None:
    one, two = Forgetting(central, root, "one"), Agent(central, root, "two")
    await one.call("read_file", relative_path="shapes.py")
    await one.forgetting("create_text_file", relative_path="shapes.py", content="a = 1\n")
    await one.forgetting("replace_content", relative_path="shapes.py", needle="1", repl="2", mode="literal")
    await one.call("create_text_file", relative_path="shapes.py", content="a = 3\n")
    await one.forgetting("replace_content", relative_path="shapes.py", needle="3", repl="4", mode="literal")
    await two.call("replace_content", relative_path="shapes.py", needle="4", repl="5", mode="literal")

    with pytest.raises(EditConflict, match="session two"):
        await one.call("create_text_file", relative_path="shapes.py", content="a = 6\n")


async def test_the_guard_holds_across_a_restart(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:
            one = Agent(central, root, "one")
            await one.see("twice")
        (root / "shapes.py").write_text(TEXT.replace("value * 2", "value << 1"))
        async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:
            one = Agent(central, root, "one")

            with pytest.raises(EditConflict):
                await one.replace("twice", "def twice(value):\n    return 2 * value")


async def test_a_container_of_which_only_a_part_was_seen_conflicts_when_another_changed_that(
    central: Application, root: Path
) -> None:
    one, two = Agent(central, root, "one"), Agent(central, root, "two")
    await one.see("Shape/name")
    await two.replace("Shape/name", 'def name(self):\n        return "two"')

    with pytest.raises(EditConflict, match=r"Shape/name in .* \(client-two\)"):
        await one.replace("Shape", "class Shape:\n    pass")
    with pytest.raises(EditConflict, match="Shape/name in"):
        await one.call("safe_delete_symbol", name_path="Shape")
    await one.see("Shape")
    await one.replace("Shape", "class Shape:\n    pass")

    assert "class Shape:\n    pass\n\n\ndef twice" in (root / "shapes.py").read_text()


@pytest.mark.parametrize("look", ["body", "overview"])
async def test_a_file_whose_symbols_were_told_is_not_overwritten_when_it_has_changed_since(
    central: Application, root: Path, look: str
) -> None:
    one = Agent(central, root, "one")
    if look == "body":
        await one.see("twice")
    else:
        await one.call("get_symbols_overview", relative_path="shapes.py")
    changed = f"import os\n\n{TEXT}"
    (root / "shapes.py").write_text(changed)

    with pytest.raises(EditConflict, match="read_file"):
        await one.call("create_text_file", relative_path="shapes.py", content="x = 1\n")
    assert (root / "shapes.py").read_text() == changed
    await one.call("read_file", relative_path="shapes.py")
    await one.call("create_text_file", relative_path="shapes.py", content="x = 1\n")
    assert (root / "shapes.py").read_text() == "x = 1\n"


async def test_a_file_of_more_symbols_than_are_remembered_fills_no_queue(
    central: Application, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a session saw of a large file would push the edit itself out of the writer's queue."""
    writer = central.store.writer
    monkeypatch.setattr(writer, "_queue_rows", VIEWS_PER_SESSION * 3 // 2)  # room for all else that is recorded
    agent, names = Agent(central, root, "one"), [f"name_{number}" for number in range(2 * VIEWS_PER_SESSION)]
    text = "".join(f"{name} = 1\n" for name in names)

    await agent.call("create_text_file", relative_path="names.py", content=text)
    assert dict(writer.dropped) == {}
    await agent.call("find_symbol", name_path_pattern=names[0], relative_path="names.py")  # its symbols are known then
    await agent.call("read_file", relative_path="names.py", max_answer_chars=len(text) * 2)
    assert {place.name_path for place in agent.session.views} > {names[-1], names[-VIEWS_PER_SESSION + 1]}
    assert dict(writer.dropped) == {}
