"""Django's source distribution: the project that is measured on. Fetched by pip once, kept in build/bench."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

BUILD = Path(__file__).parent.parent / "build" / "bench"
VERSION = "5.2"


def source() -> Path:
    """The root of the unpacked sources. Raises CalledProcessError when pip can't fetch them."""
    root = BUILD / f"django-{VERSION}"
    if root.exists() and not _has_links(root):
        return root
    shutil.rmtree(root, ignore_errors=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    archives = list(BUILD.glob(f"[Dd]jango-{VERSION}.tar.gz"))
    if not archives:
        _download()
        archives = list(BUILD.glob(f"[Dd]jango-{VERSION}.tar.gz"))
    with tarfile.open(archives[0]) as archive:
        archive.extractall(BUILD / "unpacked", filter="data")
    (unpacked,) = (BUILD / "unpacked").iterdir()
    # A checkout of its own, as people have it; else the ignore rules of this repository would apply to it.
    subprocess.run(["git", "init", "--quiet", str(unpacked)], check=True)
    unpacked.rename(root)
    return root


def _has_links(root: Path) -> bool:
    """Whether some file has a second name, as in a copy made of hard links: such files are read anew by each call."""
    return any(path.is_file() and path.stat().st_nlink > 1 for path in root.rglob("*"))


def _download() -> None:
    # A source distribution of pure Python: nothing of it is run but the metadata of its build.
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
    subprocess.run([*pip, "--dest", str(BUILD), f"django=={VERSION}"], check=True)
