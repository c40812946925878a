"""The guard: a small process between this server and one language server, so that nothing outlives either of them.

Run as `python -I -S guard.py LIFELINE UMASK FOLDER COMMAND…`; standard library only, and nothing of this package.
LIFELINE is the read end of a pipe whose write end only the server has. When that end closes, however the server ended,
everything that descends from the guard is killed. UMASK (octal) is for the language server, FOLDER its temporary
folder, or empty. The language server's standard streams are the guard's own, handed through untouched.

On Linux the guard is a subreaper: a descendant that leaves its session or loses its parent becomes the guard's child,
and is found. Elsewhere only the language server's process group can be killed.

    SIGTERM, SIGINT, SIGHUP     forwarded to the language server's process group, as SIGTERM
    the language server ends    its descendants are killed; the guard ends in the same way, by code or by signal
    the lifeline closes         all are killed at once, and the temporary folder is removed: the server may be gone
    the guard is killed         the language server is killed by the kernel (Linux)
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

CANNOT_EXECUTE = 127
"""The exit code when the command can't be started, as shells have it."""

MAX_ROUNDS = 100
"""How often the tree is killed again until nothing is left; a round finds what was forked during the one before."""


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(command: list[str], lifeline: int, umask: int) -> int:
    """Starts the language server in a session of its own; returns its pid, which is its process group's id too."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.umask(umask)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(lifeline)
        # Python ignores these, and what is ignored stays so through exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_EXECUTE)


def release_streams() -> None:
    """Lets go of the standard streams, so that their end is seen when the language server closes them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def descendants() -> list[int]:
    """Every living process below this one, by /proc. Linux only."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = children.get(os.getpid(), [])
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def reap(leader: int) -> int | None:
    """Collects every child that has ended; the language server's wait status if it was among them."""
    status = None
    while True:
        try:
            pid, found = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == leader:
            status = found


def kill_all(leader: int) -> None:
    """Kills the process group and every descendant, again until none is left."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        pass
    if sys.platform != "linux":
        return
    for _ in range(MAX_ROUNDS):
        below = descendants()
        if not below:
            return
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        # A killed process leaves its children to this one; they are waited for, or found in the next round.
        time.sleep(0.005)
        reap(leader)


def remove_tree(folder: str) -> None:
    """Removes a folder and all below it, as far as that is possible: also what was made read-only."""
    todo, found = [folder], list[str]()
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            os.chmod(one, 0o700)
            with os.scandir(one) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        os.unlink(entry.path)
        except OSError:
            pass
    for one in reversed(found):
        try:
            os.rmdir(one)
        except OSError:
            pass


def end_like(status: int) -> None:
    """Ends this process as the language server ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        prctl(PR_SET_DUMPABLE, 0)  # one core file is enough
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def take_note(number: int, frame: object) -> None:
    """A signal's handler does nothing: that it arrived is read from the wakeup pipe."""


def guard(lifeline: int, umask: int, folder: str, command: list[str]) -> None:
    awake, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_inheritable(lifeline, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    stops = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in (signal.SIGCHLD, *stops):
        signal.signal(number, take_note)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    leader = start(command, lifeline, umask)
    release_streams()
    while True:
        ready, _, _ = select.select([lifeline, awake], [], [])
        if lifeline in ready:
            kill_all(leader)
            if folder:
                remove_tree(folder)
            os._exit(128 + signal.SIGKILL)
        arrived = os.read(awake, 512)
        status = reap(leader)
        if status is not None:
            kill_all(leader)
            end_like(status)
        if any(number in arrived for number in stops):
            try:
                os.killpg(leader, signal.SIGTERM)
            except OSError:
                pass


if __name__ == "__main__":
    guard(int(sys.argv[1]), int(sys.argv[2], 8), sys.argv[3], sys.argv[4:])
