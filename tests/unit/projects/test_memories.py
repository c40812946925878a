"""Memories: names that can't leave their folder, and nothing overwritten unseen."""

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
)
from serena_central.projects.memories import MAX_BYTES, Memories

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def memories(root: Path, **settings: object) -> Memories:
    return Memories(root, root.parent / "serena", msgspec.convert(settings, ProjectSettings))


async def test_memories_are_files_that_serena_reads_too(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("backend/commands.md", "# Test\nmake test\n", seen=None)
    await of_project.write("global/style", "Plain words.", seen=None)
    assert (root / ".serena/memories/backend/commands.md").read_text() == "# Test\nmake test\n"
    assert (root.parent / "serena/memories/global/style.md").read_text() == "Plain words."
    assert (await of_project.names()).names == ["backend/commands", "global/style"]
    assert (await of_project.names("backend")).names == ["backend/commands"]
    assert (await of_project.read("backend/commands")).content == "# Test\nmake test\n"


async def test_claudes_folder_is_used_where_it_is_the_only_one(root: Path) -> None:
    (root / ".claude/.serena").mkdir(parents=True)
    await memories(root).write("a", "text", seen=None)
    assert (root / ".claude/.serena/memories/a.md").read_text() == "text"


@pytest.mark.parametrize(
    "name", ["", " ", "..", "../x", "/etc/passwd", "a//b", "a/", ".hidden", "a\\b", "a\0b", "x" * 201]
)
async def test_names_that_could_lead_elsewhere_are_refused(root: Path, name: str) -> None:
    with pytest.raises(InvalidArguments, match="can't be a memory's name"):
        await memories(root).write(name, "text", seen=None)


async def test_a_link_that_leads_out_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (root / ".serena/memories").mkdir(parents=True)
    (root / ".serena/memories/x.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(PathRefused, match="is a link"):
        await memories(root).read("x")
    with pytest.raises(PathRefused, match="is a link"):
        await memories(root).write("x", "mine", seen=None)
    assert (tmp_path / "secret.md").read_text() == "secret"


async def test_an_unknown_memory_names_the_known_ones(root: Path) -> None:
    await memories(root).write("known", "text", seen=None)
    with pytest.raises(MemoryNotFound, match="Memories: 'known'"):
        await memories(root).read("unknown")


async def test_what_was_not_seen_is_shown_and_not_overwritten(root: Path) -> None:
    of_project = memories(root)
    first = await of_project.write("plan", "first", seen=None)
    with pytest.raises(MemoryChanged, match=r"What it says now .*\n<<< \w+\nfirst\n>>> ") as refused:
        await of_project.write("plan", "second", seen=None)
    await of_project.write("plan", "second", seen=refused.value.digest)
    with pytest.raises(MemoryChanged, match="second"):
        await of_project.delete("plan", seen=first.digest)
    with pytest.raises(MemoryChanged, match="second"):
        await of_project.edit("plan", "second", "third", "literal", several=False, seen=first.digest)
    assert (await of_project.read("plan")).content == "second"


async def test_a_part_is_changed_by_its_words(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("plan", "one two", seen=None)
    changed = await of_project.edit("plan", r"(\w+) two", "$!1 three", "regex", several=False, seen=None)
    assert changed.content == (root / ".serena/memories/plan.md").read_text() == "one three"


async def test_a_memory_moves_only_to_a_free_name(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("a", "A", seen=None)
    await of_project.write("b", "B", seen=None)
    with pytest.raises(InvalidArguments, match="exists already"):
        await of_project.rename("a", "b")
    await of_project.rename("a", "topic/c")
    assert (await of_project.names()).names == ["b", "topic/c"]
    with pytest.raises(MemoryNotFound):
        await of_project.rename("a", "d")


async def test_deleting_needs_no_sight(root: Path) -> None:
    of_project = memories(root)
    await of_project.write("a", "A", seen=None)
    await of_project.delete("a", seen=None)
    assert (await of_project.names()).names == []
    with pytest.raises(MemoryNotFound):
        await of_project.delete("a", seen=None)


async def test_patterns_keep_and_hide(root: Path) -> None:
    await memories(root).write("global/law", "law", seen=None)
    await memories(root).write("secret/x", "x", seen=None)
    bound = memories(root, read_only_memory_patterns=["global/.*"], ignored_memory_patterns=["secret/.*", "("])
    assert (await bound.names()).names == ["global/law"]
    assert not bound.changeable("global/law")
    with pytest.raises(ToolRefused, match="read_only_memory_patterns"):
        await bound.delete("global/law", seen=None)
    with pytest.raises(MemoryNotFound):
        await bound.read("secret/x")
    with pytest.raises(ToolRefused, match="ignored_memory_patterns"):
        await bound.write("secret/x", "y", seen=None)


async def test_a_project_that_is_read_only_has_memories_that_are(root: Path) -> None:
    with pytest.raises(ToolRefused, match="read_only"):
        await memories(root, read_only=True).write("a", "text", seen=None)


async def test_content_is_bounded_and_must_be_text(root: Path) -> None:
    with pytest.raises(InvalidArguments, match="are the most"):
        await memories(root).write("a", "x" * (MAX_BYTES + 1), seen=None)
    with pytest.raises(InvalidArguments, match="no valid text"):
        await memories(root).write("a", "\ud800", seen=None)
    assert not (root / ".serena").exists()


async def test_a_folder_that_can_not_be_written_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serena_central.projects.memories.write_in", full)
    with pytest.raises(PathRefused, match="No space left"):
        await memories(root).write("a", "text", seen=None)
