"""The supervisor: a small process between this server and one child, so that nothing outlives either of them.

Run as `python -I -S supervisor.py LIFELINE REPORT UMASK MEMORY NICE PRIVILEGES FOLDER COMMAND…`; standard library only,
and nothing of this package. As `supervisor.py --serve SOCKET` it is the fork server of `fork_server.py`, and forks a
supervisor for each request: a new interpreter takes many times as long.

    LIFELINE      the read end of a pipe whose write end only the server has. When that end closes, however the server
                  ended, everything that descends from the supervisor is killed
    REPORT        the write end of a pipe: `p<pid>` before the child executes its command, `e<errno>` when it can't be
                  executed, a line each. It is closed once the command runs
    UMASK         of the child, octal
    MEMORY        the address space of each process of the child in bytes; 0 for no limit
    NICE          how much the child gives way to others that want the CPU, as for nice(1)
    PRIVILEGES    `keep`, or `drop`: no program that is executed gains privileges by set-uid bits (Linux)
    FOLDER        the child's temporary folder, or empty

The child's standard streams are the supervisor's own, handed through untouched; it leads a session and process group
of its own. On Linux the supervisor is a subreaper: a descendant that leaves its session or loses its parent becomes the
supervisor's child, and is found. Elsewhere only the child's process group can be killed.

    SIGTERM, SIGINT, SIGHUP     forwarded to the child's process group; SIGHUP as SIGTERM
    the child ends              its descendants are killed; the supervisor ends in the same way, by code or by signal
    the lifeline closes         all are killed at once, and the temporary folder is removed: the server may be gone
    the supervisor is killed    the child is killed by the kernel (Linux)
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
PR_SET_NO_NEW_PRIVS = 38

GROUP_TRIES = 4
GROUP_WAIT_S = 0.12

CANNOT_EXECUTE = 127
"""The exit code when the command can't be started, as shells have it."""

REQUEST = "!BI"
"""What comes over the fork server's socket, as `struct` writes it: 0, with the descriptors of a run; or a signal, and
the supervisor that it is for."""

MOST_DESCRIPTORS = 7
"""Of one run: stdin, stdout, stderr, LIFELINE and REPORT; the request (a file of JSON); and the write end of a pipe,
into which a supervisor writes its pid and, in the end, the child's wait status, a line each."""

MAX_ROUNDS = 100
"""How often the tree is killed again until nothing is left; a round finds what was forked during the one before."""


if sys.platform == "linux":
    LIBC = ctypes.CDLL(None)


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        LIBC.prctl(option, value, 0, 0, 0)


def limit_memory(size: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def give_way(nice: int) -> None:
    """Linux weighs sessions against each other where it groups their processes (`man 7 sched`, autogroup), and `nice`
    tells within a session alone; elsewhere it tells between all."""
    if sys.platform != "win32":
        os.nice(nice)
    for _ in range(GROUP_TRIES):
        try:
            with open("/proc/self/autogroup", "w") as group:
                group.write(str(nice))
            return
        except BlockingIOError:  # one process a tenth of a second may, of those without privileges
            time.sleep(GROUP_WAIT_S)
        except OSError:
            return  # there are no such groups


def start(
    command: list[str],
    lifeline: int,
    report: int,
    umask: int,
    memory: int,
    nice: int,
    drops_privileges: bool,
    environment: dict[str, str] | None,
) -> int:
    """Starts the child in a session of its own; returns its pid, which is its process group's id too."""
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        os.close(report)
        return pid
    try:
        os.setsid()
        # By the child: its command may be through with much before the supervisor gets its turn.
        os.write(report, b"p%d\n" % os.getpid())
        if nice:
            give_way(nice)
        os.umask(umask)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(128 + signal.SIGKILL)  # it was killed before the kernel was asked to tell
        if drops_privileges:
            prctl(PR_SET_NO_NEW_PRIVS, 1)
        os.close(lifeline)
        # Python ignores these, and what is ignored stays so through exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if memory:
            limit_memory(memory)
        os.execvpe(command[0], command, os.environ if environment is None else environment)
    except OSError as error:
        os.write(report, b"e%d\n" % (error.errno or 0))
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_EXECUTE)


def release_streams() -> None:
    """Closes the supervisor's own ends of the standard streams, so that it is seen when the child closes them."""
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
    """Collects every process below that has ended; the child's wait status if it was among them."""
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


def reap_others() -> bool:
    """Collects what has ended; whether any process is left. A subreaper without children has no descendants."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def collect(leader: int) -> int | None:
    """The child's wait status, None while it runs. When it has ended its group is killed before the kernel may give its
    pid, which is the group's id, to another process."""
    if sys.platform != "linux":  # macOS has no waitid before Python 3.13
        status = reap(leader)
        if status is not None:
            signal_group(leader, signal.SIGKILL)
        return status
    if os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        signal_group(leader, signal.SIGKILL)
    return reap(leader)


def signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except OSError:
        pass


def kill_descendants() -> None:
    """Kills every descendant, again until none is left. Linux only: elsewhere they are not known."""
    for _ in range(MAX_ROUNDS if sys.platform == "linux" else 0):
        if not reap_others():
            return
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        # A killed process leaves its children to this one; they are waited for, or found in the next round.
        time.sleep(0.005)


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
    """Ends this process as the child ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        prctl(PR_SET_DUMPABLE, 0)  # one core file is enough
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def take_note(number: int, frame: object) -> None:
    """A signal's handler does nothing: that it arrived is read from the wakeup pipe."""


def readable(*descriptors: int) -> set[int]:
    """Waits until one of them can be read, or is at its end. Not by `select`, which takes no number above 1023: a
    server with many clients hands on larger ones."""
    poll = select.poll()
    for one in descriptors:
        poll.register(one, select.POLLIN)
    return {one for one, _ in poll.poll()}


def supervise(
    lifeline: int,
    report: int,
    umask: int,
    memory: int,
    nice: int,
    drops_privileges: bool,
    folder: str,
    command: list[str],
    environment: dict[str, str] | None = None,
    ended: int | None = None,
) -> None:
    forwarded = {signal.SIGTERM: signal.SIGTERM, signal.SIGINT: signal.SIGINT, signal.SIGHUP: signal.SIGTERM}
    awake, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_inheritable(lifeline, False)
    os.set_inheritable(report, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *forwarded):
        signal.signal(number, take_note)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    leader = start(command, lifeline, report, umask, memory, nice, drops_privileges, environment)
    release_streams()
    while True:
        ready = readable(lifeline, awake)
        if lifeline in ready:
            signal_group(leader, signal.SIGKILL)
            kill_descendants()
            if folder:
                remove_tree(folder)
            os._exit(128 + signal.SIGKILL)
        arrived = os.read(awake, 512)
        status = collect(leader)
        if status is not None:
            kill_descendants()
            if ended is not None:
                os.write(ended, b"%d\n" % status)
            end_like(status)
        for number, passed_on in forwarded.items():
            if number in arrived:
                signal_group(leader, passed_on)


# --- the fork server -------------------------------------------------------------------------------------------------


def serve(number: int) -> None:
    """Forks supervisors until the socket closes. Single-threaded, so that a fork is safe."""
    import socket
    import struct

    requests = socket.socket(fileno=number)
    awake, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_blocking(awake, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, take_note)
    supervisors: set[int] = set()
    while True:
        ready = readable(number, awake)
        if awake in ready:
            os.read(awake, 512)
            forget_ended(supervisors)
        if number not in ready:
            continue
        said, descriptors, _, _ = socket.recv_fds(requests, struct.calcsize(REQUEST), MOST_DESCRIPTORS)
        if not said:
            os._exit(0)
        what, pid = struct.unpack(REQUEST, said)
        if what and pid in supervisors:
            os.kill(pid, what)
        if len(descriptors) == MOST_DESCRIPTORS:
            started = forked_supervisor(descriptors, (requests.fileno(), awake, wakeup))
            if started:
                supervisors.add(started)
        for descriptor in descriptors:
            os.close(descriptor)


def forget_ended(supervisors: set[int]) -> None:
    """Collects supervisors that have ended: until then their pids are not given to others."""
    for pid in list(supervisors):
        if os.waitpid(pid, os.WNOHANG)[0]:
            supervisors.discard(pid)


def forked_supervisor(descriptors: list[int], ours: tuple[int, ...]) -> int:
    """The pid of a supervisor in a process of its own. 0: there can't be one, reported as a command that can't run."""
    import json

    stdin, stdout, stderr, lifeline, report, request, ended = descriptors
    try:
        pid = os.fork()
    except OSError as error:
        os.write(report, b"e%d\n" % (error.errno or 0))
        return 0
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        for place, stream in enumerate((stdin, stdout, stderr)):
            os.dup2(stream, place)
        for descriptor in {*ours, stdin, stdout, stderr}:
            os.close(descriptor)
        os.write(ended, b"%d\n" % os.getpid())
        with open(request, "rb") as file:
            environment, folder, umask, memory, nice, drops_privileges, temporary, command = json.load(file)
        try:
            os.chdir(folder)
        except OSError as error:
            os.write(report, b"e%d\n" % (error.errno or 0))
            os._exit(CANNOT_EXECUTE)
        supervise(lifeline, report, umask, memory, nice, drops_privileges, temporary, command, environment, ended)
    finally:
        os._exit(CANNOT_EXECUTE)


def main() -> None:
    if sys.argv[1] == "--serve":
        serve(int(sys.argv[2]))
        return
    lifeline, report, umask, memory, nice, privileges, folder, *command = sys.argv[1:]
    drops = privileges == "drop"
    supervise(int(lifeline), int(report), int(umask, 8), int(memory), int(nice), drops, folder, command)


if __name__ == "__main__":
    main()
