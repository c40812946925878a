"""Runs a language server of a project that is not trusted, kept to what it needs (Linux, Landlock).

Such a project may name files that a server writes, reads or fetches (clangd's `-diagnostic-log-file` and `#embed`, a
cache that is a link, a JSON schema's URL), and no list of such options is ever complete. So the kernel sees to it that
the server, and all that it starts, writes nothing but its caches, opens none of the hidden files of the user's home
except toolchains, and connects to nobody.

Run as `python -I -S confined.py CONFINEMENT COMMAND…`; standard library only, and nothing of this package. Where the
kernel has no Landlock the command runs as it is: who starts it asks before whether that will do.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The system calls' numbers, the same on every architecture that Linux has but Alpha."""

_PR_SET_NO_NEW_PRIVS = 38
_ASK_VERSION = 1
_BENEATH_PATH = 1

_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_CHANGE_FOLDERS = sum(1 << bit for bit in range(4, 13))
"""To remove and to make files, folders, links, devices, sockets and pipes."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_CONNECT_TCP = 1 << 1

_SINCE_REFER, _SINCE_TRUNCATE, _SINCE_NETWORK = 2, 3, 4
"""Versions of Landlock: Linux 5.19, 6.2 and 6.7."""

_PLACE: int = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)

NOWHERE = "/dev/null"

TOOLCHAINS = (
    *(".asdf", ".bun", ".cache", ".cargo/bin", ".cargo/git", ".cargo/registry", ".conda", ".config/go", ".deno"),
    *(".dotnet", ".fnm", ".ghcup", ".goenv", ".gvm", ".jdks", ".juliaup", ".local/bin", ".local/lib"),
    *(".local/share/fnm", ".local/share/hatch", ".local/share/mise", ".local/share/nvm", ".local/share/pdm"),
    *(".local/share/pnpm", ".local/share/pypoetry", ".local/share/uv", ".local/share/virtualenvs", ".m2/repository"),
    *(".npm", ".nvm", ".opam", ".pixi", ".proto", ".pyenv", ".rbenv", ".rustup", ".rye", ".sdkman", ".venvs"),
    *(".virtualenvs", ".volta", ".yarn"),
)
"""What is hidden in homes and no secret: compilers, interpreters, libraries, and what says which are used."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64), ("handled_access_net", ctypes.c_uint64))


class _BeneathPath(ctypes.Structure):
    """Packed in C; the kernel reads no further than the last field, so what follows it here is not seen."""

    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


@cache
def version() -> int:
    """Which version of Landlock the kernel has; 0 for none."""
    if sys.platform != "linux":
        return 0
    found: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    return max(found, 0)


def confine(*, writes: list[str], reads: list[str], home: str, offline: bool) -> None:
    """From now on this process and all that it starts are kept to what the module says. `writes` and `reads` are
    folders, with what is below them; `home` is the user's."""
    has = version()
    if not has:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    changing = _WRITE_FILE | _CHANGE_FOLDERS
    changing |= (_REFER if has >= _SINCE_REFER else 0) | (_TRUNCATE if has >= _SINCE_TRUNCATE else 0)
    ruleset = _Ruleset(changing | _READ_FILE, _CONNECT_TCP if offline and has >= _SINCE_NETWORK else 0)
    size = ctypes.sizeof(ruleset) if has >= _SINCE_NETWORK else ctypes.sizeof(ctypes.c_uint64)
    rules: int = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "Landlock")

    def allow(path: str, access: int) -> None:
        with suppress(OSError):
            descriptor = os.open(path, _PLACE)
            rule = _BeneathPath(access, descriptor)
            libc.syscall(_ADD_RULE, rules, _BENEATH_PATH, ctypes.byref(rule), 0)
            os.close(descriptor)

    allow(NOWHERE, changing & (_WRITE_FILE | _TRUNCATE))
    for folder in writes:
        allow(folder, changing | _READ_FILE)
    for path in (*reads, *_open_to_all(os.path.realpath(home))):
        allow(path, _READ_FILE)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(_RESTRICT_SELF, rules, 0) != 0:
        raise OSError(ctypes.get_errno(), "Landlock")
    os.close(rules)


def _open_to_all(home: str) -> Iterator[str]:
    """Everything there is but what is hidden in a home, without links: what they lead to is found where it lies."""
    folder, inside = home, ""
    while folder != inside:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                is_shown = folder != home or not entry.name.startswith(".")
                if is_shown and entry.path != inside and not entry.is_symlink():
                    yield entry.path
        folder, inside = os.path.dirname(folder), folder  # noqa: PTH120  (quicker, and this runs at each start)
    yield from (f"{home}/{one}" for one in TOOLCHAINS)


def main() -> None:
    confinement, command = json.loads(sys.argv[1]), sys.argv[2:]
    for folder in confinement["writes"]:
        with suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    temporary = os.environ.get("TMPDIR")
    confinement["writes"] += [temporary] if temporary else []
    try:
        confine(**confinement)
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command[0]}: {error}")


if __name__ == "__main__":
    main()
