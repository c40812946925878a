"""Memories: names that can't leave their folder, and nothing overwritten unseen."""

from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from serena_central.config.settings import ProjectSettings
from serena_central.core.errors import (
    InvalidArguments,
    MemoryChanged,
    MemoryNotFound,
    PathRefused,
    ToolRefused,
    WriteFailed,
)
from serena_central.editing.change import Author
from serena_central.editing.transaction import Applier
from serena_central.files.boundary import OPEN
from serena_central.projects.editing.edit_records import AppliedEdit
from serena_central.projects.memories import MAX_BYTES, Memories
from tests.support.editing import FailingDisk, applier_in

pytestmark = pytest.mark.anyio


AUTHOR = Author(session="s", tool="write_memory", call="c")


@pytest.fixture
def root(tmp_path: Path) -> Generator[Path]:
    folder = tmp_path / "project"
    folder.mkdir()
    with applier_in(tmp_path / "home") as applier:
        APPLIERS[folder] = applier
        yield folder
    del APPLIERS[folder]


APPLIERS: dict[Path, Applier] = {}
"""By the root of the running test."""


def memories(root: Path, *, told: list[AppliedEdit] | None = None, **settings: object) -> Memories:
    tell = (told if told is not None else []).append
    return Memories(
        root, root.parent / "serena", msgspec.convert(settings, ProjectSettings), APPLIERS[root], tell, OPEN
    )


async def test_memories_are_files_that_serena_reads_too(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("backend/commands.md", "# Test\nmake test\n", AUTHOR, seen=None)
    await of_project.write("global/style", "Plain words.", AUTHOR, seen=None)
    assert (root / ".serena/memories/backend/commands.md").read_text() == "# Test\nmake test\n"
    assert (root.parent / "serena/memories/global/style.md").read_text() == "Plain words."
    assert (await of_project.names()).names == ["backend/commands", "global/style"]
    assert (await of_project.names("backend")).names == ["backend/commands"]
    assert (await of_project.read("backend/commands")).content == "# Test\nmake test\n"


async def test_claudes_folder_is_used_where_it_is_the_only_one(root: Path) -> None:
    (root / ".claude/.serena").mkdir(parents=True)
    await memories(root).write("a", "text", AUTHOR, seen=None)
    assert (root / ".claude/.serena/memories/a.md").read_text() == "text"


@pytest.mark.parametrize(
    "name", ["", " ", "..", "../x", "/etc/passwd", "a//b", "a/", ".hidden", "a\\b", "a\0b", "x" * 201]
)
async def test_names_that_could_lead_elsewhere_are_refused(root: Path, name: str) -> None:
    with pytest.raises(InvalidArguments, match="is not a valid memory name"):
        await memories(root).write(name, "text", AUTHOR, seen=None)


async def test_a_link_that_leads_out_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (root / ".serena/memories").mkdir(parents=True)
    (root / ".serena/memories/x.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(PathRefused, match="is a symlink"):
        await memories(root).read("x")
    with pytest.raises(PathRefused, match="is a symlink"):
        await memories(root).write("x", "mine", AUTHOR, seen=None)
    assert (tmp_path / "secret.md").read_text() == "secret"


async def test_an_unknown_memory_names_the_known_ones(root: Path) -> None:
    await memories(root).write("known", "text", AUTHOR, seen=None)
    with pytest.raises(MemoryNotFound, match="Memories: 'known'"):
        await memories(root).read("unknown")


async def test_what_was_not_seen_is_shown_and_not_overwritten(root: Path) -> None:
    of_project = memories(root)
    first = await of_project.write("plan", "first", AUTHOR, seen=None)
    with pytest.raises(MemoryChanged, match=r"Its current content .*\n<<< \w+\nfirst\n>>> ") as refused:
        await of_project.write("plan", "second", AUTHOR, seen=None)
    await of_project.write("plan", "second", AUTHOR, seen=refused.value.digest)
    with pytest.raises(MemoryChanged, match="second"):
        await of_project.delete("plan", AUTHOR, seen=first.digest)
    with pytest.raises(MemoryChanged, match="second"):
        await of_project.edit("plan", "second", "third", "literal", AUTHOR, several=False, seen=first.digest)
    assert (await of_project.read("plan")).content == "second"


async def test_a_part_is_changed_by_its_words(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("plan", "one two", AUTHOR, seen=None)
    changed = await of_project.edit("plan", r"(\w+) two", "$!1 three", "regex", AUTHOR, several=False, seen=None)
    assert changed.content == (root / ".serena/memories/plan.md").read_text() == "one three"


async def test_a_memory_moves_only_to_a_free_name(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("a", "A", AUTHOR, seen=None)
    await of_project.write("b", "B", AUTHOR, seen=None)
    with pytest.raises(InvalidArguments, match="already exists"):
        await of_project.rename("a", "b", AUTHOR)
    await of_project.rename("a", "topic/c", AUTHOR)
    assert (await of_project.names()).names == ["b", "topic/c"]
    with pytest.raises(MemoryNotFound):
        await of_project.rename("a", "d", AUTHOR)


async def test_deleting_needs_no_sight(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("a", "A", AUTHOR, seen=None)
    await of_project.delete("a", AUTHOR, seen=None)
    assert (await of_project.names()).names == []
    with pytest.raises(MemoryNotFound):
        await of_project.delete("a", AUTHOR, seen=None)


async def test_patterns_keep_and_hide(root: Path) -> None:
    await memories(root).write("global/law", "law", AUTHOR, seen=None)
    await memories(root).write("secret/x", "x", AUTHOR, seen=None)
    bound = memories(root, read_only_memory_patterns=["global/.*"], ignored_memory_patterns=["secret/.*", "("])
    assert (await bound.names()).names == ["global/law"]
    assert not bound.changeable("global/law")
    with pytest.raises(ToolRefused, match="read_only_memory_patterns"):
        await bound.delete("global/law", AUTHOR, seen=None)
    with pytest.raises(MemoryNotFound):
        await bound.read("secret/x")
    with pytest.raises(ToolRefused, match="ignored_memory_patterns"):
        await bound.write("secret/x", "y", AUTHOR, seen=None)


async def test_a_project_that_is_read_only_has_memories_that_are(root: Path) -> None:
    with pytest.raises(ToolRefused, match="read_only"):
        await memories(root, read_only=True).write("a", "text", AUTHOR, seen=None)


async def test_content_is_bounded_and_must_be_text(root: Path) -> None:
    with pytest.raises(InvalidArguments, match="the limit is"):
        await memories(root).write("a", "x" * (MAX_BYTES + 1), AUTHOR, seen=None)
    with pytest.raises(InvalidArguments, match="not valid text"):
        await memories(root).write("a", "\ud800", AUTHOR, seen=None)
    assert not (root / ".serena").exists()


async def test_a_disk_that_is_full_is_told(root: Path, tmp_path: Path) -> None:
    def full(step: str, _: Path) -> None:
        raise OSError(28, "No space left on device")

    with applier_in(tmp_path / "full", FailingDisk(full)) as applier:
        APPLIERS[root] = applier
        with pytest.raises(WriteFailed, match="no space left"):
            await memories(root).write("a", "text", AUTHOR, seen=None)
    assert not (root / ".serena").exists()


async def test_a_folder_that_is_a_file_is_told(root: Path) -> None:
    (root / ".serena").mkdir()
    (root / ".serena/memories").write_text("no folder")
    with pytest.raises(PathRefused, match="uses a file as a folder"):
        await memories(root).write("a", "text", AUTHOR, seen=None)


async def test_what_is_written_is_told_with_its_text_but_for_what_belongs_to_all_projects(root: Path) -> None:
    told: list[AppliedEdit] = []
    of_project = memories(root, told=told)
    await of_project.write("plan", "one", AUTHOR, seen=None)
    await of_project.edit("plan", "one", "one", "literal", AUTHOR, several=False, seen=None)
    await of_project.rename("plan", "topic/plan", AUTHOR)
    await of_project.write("global/law", "law", AUTHOR, seen=None)
    assert [(edit.files[0].path, edit.files[0].moved_to, len(edit.patches)) for edit in told] == [
        (".serena/memories/plan.md", None, 1),
        (".serena/memories/plan.md", ".serena/memories/topic/plan.md", 1),
        (str(root.parent / "serena/memories/global/law.md"), None, 0),
    ]


async def test_a_text_that_something_else_writes_meanwhile_is_not_overwritten(root: Path, tmp_path: Path) -> None:
    path = root / ".serena/memories/plan.md"

    def outside(step: str, _: Path) -> None:
        if step == "write" and path.read_text() == "one two":
            path.write_text("one three")

    await memories(root).write("plan", "one two", AUTHOR, seen=None)
    with applier_in(tmp_path / "other", FailingDisk(outside)) as applier:
        APPLIERS[root] = applier
        await memories(root).edit("plan", "one", "four", "literal", AUTHOR, several=False, seen=None)
    assert path.read_text() == "four three"
