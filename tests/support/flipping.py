"""A process that puts a symlink in the place of a folder, and the folder back, as often as it can."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_FLIP = """
import ctypes, os, random, sys, time
folder, link, seed = sys.argv[1], sys.argv[2], sys.argv[3]
exchange = getattr(ctypes.CDLL(None), "renameat2", None)
chosen = random.Random(int(seed))

def flip():
    if exchange is not None and exchange(-100, os.fsencode(folder), -100, os.fsencode(link), 2) == 0:
        return
    os.rename(folder, link + ".real" if os.path.islink(link) else link + ".link")
    os.rename(link, folder)
    os.rename(link + (".real" if os.path.exists(link + ".real") else ".link"), link)

print("flipping", flush=True)
while True:
    flip()
    # All lengths, from one that cuts into a single opening to one that lets a whole edit through.
    time.sleep(chosen.choice((0, 0.0001, 0.0005, 0.002, 0.01)))
"""


@contextmanager
def flipped(folder: Path, outside: Path, seed: int = 0) -> Generator[None]:
    """`folder` is, by turns, itself and a symlink to `outside`; afterwards it is itself again."""
    link = folder.with_name(f".{folder.name}-flipped")
    link.symlink_to(outside)
    with subprocess.Popen(
        [sys.executable, "-c", _FLIP, str(folder), str(link), str(seed)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "flipping\n"
            yield
        finally:
            process.kill()
    if folder.is_symlink():
        folder.unlink()
        link.rename(folder)
    else:
        link.unlink()
