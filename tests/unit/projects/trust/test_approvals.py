"""What a person approved is kept by one small file, which nobody else may have written."""

import os
import stat
from pathlib import Path

import pytest

from serena_central.core.errors import TrustRefused
from serena_central.projects.trust.approvals import Approvals, ExecutablePart, digest_of

PARTS = (ExecutablePart("settings", "/r/.serena/project.yml", "language_servers:\n  go: gopls\n"),)


def approvals(tmp_path: Path) -> Approvals:
    return Approvals(tmp_path / "home" / "trust.json", clock=lambda: 7.0)


def test_an_approval_is_kept_for_the_next_process(tmp_path: Path) -> None:
    approvals(tmp_path).put(Path("/r"), PARTS, "me")
    found = approvals(tmp_path).of(Path("/r"))
    assert found is not None
    assert (found.root, found.digest, found.parts, found.at, found.by) == ("/r", digest_of(PARTS), PARTS, 7.0, "me")
    assert approvals(tmp_path).of(Path("/other")) is None


def test_what_another_process_approves_or_revokes_is_seen_at_once(tmp_path: Path) -> None:
    one, other = approvals(tmp_path), approvals(tmp_path)
    stamps = {one.stamp()}
    one.put(Path("/a"), PARTS, "one")
    stamps.add(one.stamp())
    other.put(Path("/b"), (), "other")
    stamps.add(one.stamp())
    assert [approval.root for approval in one.all()] == ["/a", "/b"]
    assert other.remove(Path("/a"))
    assert not other.remove(Path("/a"))
    stamps.add(one.stamp())
    assert one.of(Path("/a")) is None
    assert len(stamps) == 4


def test_the_file_is_private_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        approvals(tmp_path).put(Path("/r"), PARTS, "me")
    finally:
        os.umask(before)
    files = list((tmp_path / "home").iterdir())
    assert {file.name for file in files} == {"trust.json", "trust.lock"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize("damage", ["writable", "link", "not json", "folder"])
def test_a_file_that_must_not_be_believed_approves_nothing_and_is_not_written_over(tmp_path: Path, damage: str) -> None:
    known = approvals(tmp_path)
    known.put(Path("/r"), PARTS, "me")
    file = tmp_path / "home" / "trust.json"
    match damage:
        case "writable":
            file.chmod(0o622)
        case "link":
            file.rename(tmp_path / "elsewhere")
            file.symlink_to(tmp_path / "elsewhere")
        case "not json":
            file.write_text("{")
        case _:
            file.unlink()
            file.mkdir()
    # A new process; one that runs reads again when the stamp differs, which a mode alone does not change.
    assert approvals(tmp_path).all() == []
    with pytest.raises(TrustRefused):
        approvals(tmp_path).put(Path("/r"), PARTS, "me")


def test_a_copy_that_does_not_fit_its_hash_is_no_approval(tmp_path: Path) -> None:
    approvals(tmp_path).put(Path("/r"), PARTS, "me")
    file = tmp_path / "home" / "trust.json"
    file.write_text(file.read_text().replace("gopls", "evil"))
    assert approvals(tmp_path).of(Path("/r")) is None


def test_parts_are_told_apart_by_all_that_they_are() -> None:
    one = ExecutablePart("settings", "/a", "text")
    others = [
        (),
        (one, one),
        *((changed,) for changed in (ExecutablePart("hooks", "/a", "text"), ExecutablePart("settings", "/at", "ext"))),
    ]
    assert digest_of((one,)) not in {digest_of(parts) for parts in others}
