"""Where the transcripts that this server writes lie: a folder for each project, with a file for each day (UTC)."""

import re
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json

DAY_FILE = re.compile(r"\d{4}-\d{2}-\d{2}\.jsonl")


class _Project(msgspec.Struct):
    root: str


def root_of(folder: Path) -> str | None:
    """The project whose transcripts lie in a folder of ours; None for any other folder."""
    try:
        return from_json((folder / "project.json").read_bytes(), _Project).root
    except (OSError, msgspec.DecodeError):
        return None


def project_folders(folder: Path) -> list[Path]:
    """The folders of our transcripts in `folder`."""
    try:
        return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink() and root_of(one))
    except OSError:
        return []


def day_files(project_folder: Path) -> list[Path]:
    """In the order of their days."""
    found = [one for one in project_folder.iterdir() if DAY_FILE.fullmatch(one.name)]
    return sorted(one for one in found if one.is_file() and not one.is_symlink())
