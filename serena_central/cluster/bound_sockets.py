"""Binds what Ray would bind to all addresses of the machine to one: Ray has no option for that.

Linux hands each `bind` of the processes to a helper (seccomp's user notification, `man 2 seccomp_unotify`), which binds
the socket in their place. It has to be a process of its own, since Ray holds Python's lock while it binds. Needs no
privileges; containers may forbid it (`binds_alone` tells). What else such a process starts, language servers say, binds
as it likes. As a program this is the helper; it imports nothing else of ours, since Python starts it without packages:

    bound_sockets.py ADDRESS run COMMAND ...    runs a command whose sockets are bound to the address, and ends like it
    bound_sockets.py ADDRESS serve DESCRIPTOR   does the same for who sends its listener there
    bound_sockets.py ADDRESS try                ends with 0 if it can be done here
"""

import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TRY_S = 30.0
"""For two processes to start, on a machine that does much else."""

if sys.platform == "linux":
    # --- <linux/seccomp.h>, <linux/filter.h>, <linux/audit.h> ---

    NUMBERS = {"x86_64": (0xC000003E, 49, 317), "aarch64": (0xC00000B7, 200, 277)}
    """Machine → how a filter knows it, the numbers of bind and seccomp."""

    PIDFD_GETFD = 438

    FILTER_MODE, NEW_LISTENER, WAIT_KILLABLE, CONTINUE = 1, 8, 32, 1
    NO_NEW_PRIVILEGES, HAS_NO_NEW_PRIVILEGES, PTRACER = 38, 39, 0x59616D61
    RECEIVE, SEND, VALID = 0xC0502100, 0xC0182101, 0x40082102
    LOAD, UNLESS_EQUAL, RETURN = 0x20, 0x15, 0x06
    NOTIFY, ALLOW = 0x7FC00000, 0x7FFF0000

    _libc = ctypes.CDLL(None, use_errno=True)

    class _Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint32)]

    class _Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction))]

    def _checked(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def _listener() -> int:
        """Hands over each `bind` of this thread, and of all threads and processes that it starts, to whoever listens on
        the descriptor returned. Without privileges no such process gains any by executing a program.

        Raises:
            OSError: the system can't do it, or forbids it.
        """
        if platform.machine() not in NUMBERS:
            raise OSError(errno.ENOSYS, f"not known for {platform.machine()}")
        machine, bind, seccomp = NUMBERS[platform.machine()]
        instructions = (
            (LOAD, 0, 0, 4),
            (UNLESS_EQUAL, 0, 3, machine),
            (LOAD, 0, 0, 0),
            (UNLESS_EQUAL, 0, 1, bind),
            (RETURN, 0, 0, NOTIFY),
            (RETURN, 0, 0, ALLOW),
        )
        first = (_Instruction * len(instructions))(*(_Instruction(*one) for one in instructions))
        program = _Program(len(instructions), first)
        # Else a signal ends the wait, and the call is made again, of a socket that may be bound by then (Linux 5.19).
        flags = NEW_LISTENER | WAIT_KILLABLE
        while (made := _libc.syscall(seccomp, FILTER_MODE, flags, ctypes.byref(program))) < 0:
            if ctypes.get_errno() == errno.EINVAL and flags & WAIT_KILLABLE:
                flags = NEW_LISTENER
            elif ctypes.get_errno() == errno.EACCES and not _libc.prctl(HAS_NO_NEW_PRIVILEGES, 0, 0, 0, 0):
                _checked(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
            else:
                break
        return _checked(made)

    def _send_listener(channel: socket.socket) -> None:
        listener = _listener()
        try:
            socket.send_fds(channel, [b"L"], [listener])
        finally:
            os.close(listener)

    def _serve(listener: int, address: str) -> None:
        """Answers each `bind` until no process is left that would ask."""
        listening = select.poll()
        listening.register(listener, select.POLLIN)
        while True:
            if any(event & select.POLLHUP for _descriptor, event in listening.poll()):
                return
            asked = bytearray(80)
            try:
                fcntl.ioctl(listener, RECEIVE, asked)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # who asked is gone
                    continue
                raise
            (number,), (task,), (descriptor, place, size) = (
                struct.unpack_from("=Q", asked),
                struct.unpack_from("=I", asked, 8),
                struct.unpack_from("=3Q", asked, 32),
            )

            def waits(number: int = number) -> None:
                """Raises OSError where who asked is gone: its number may be another's by now."""
                fcntl.ioctl(listener, VALID, struct.pack("=Q", number))

            failure, flags = 0, CONTINUE
            where = _wanted(task, place, size, address)
            if where is not None:
                flags = 0
                try:
                    _bind(task, descriptor, where, waits)
                except OSError as error:
                    failure = -(error.errno or errno.EACCES)
            with suppress(OSError):  # who asked is gone
                fcntl.ioctl(listener, SEND, struct.pack("=QqiI", number, 0, failure, flags))

    def _wanted(task: int, place: int, size: int, address: str) -> tuple[str, int] | None:
        """Where a socket is to be bound that a process of Ray wants to bind to all addresses; None for any other, also
        for what hides its memory (ssh-agent, say) or names an address that is not in it: the system says what of it."""
        try:
            with Path(f"/proc/{task}/mem").open("rb", buffering=0) as memory:
                memory.seek(place)
                name = memory.read(min(size, 28))
        except (OSError, OverflowError):
            return None
        if len(name) < 8:
            return None
        (family,), (port,) = struct.unpack_from("=H", name), struct.unpack_from("!H", name, 2)
        to_all = (family == socket.AF_INET and not any(name[4:8])) or (
            family == socket.AF_INET6 and len(name) >= 24 and not any(name[8:24])
        )
        return (_as(family, address), port) if to_all and _is_ray(task) else None

    def _as(family: int, address: str) -> str:
        """An address for a socket of a family; what can't be told to an old one stays on this machine."""
        if family == socket.AF_INET:
            return "127.0.0.1" if ":" in address else address
        return address if ":" in address else f"::ffff:{address}"

    def _is_ray(task: int) -> bool:
        """Ray's own programs, and of this Python what they start, whoever started this helper, and what this helper
        and its child start (`ray start`). What hosts start in their turn is not Ray's; much of it is Python, too."""
        try:
            if _is_rays_program(task):
                return True
            if not Path(f"/proc/{task}/exe").samefile("/proc/self/exe"):
                return False
            process, parent = _ids(task, "Tgid", "PPid")
            if process == os.getppid() or parent == os.getpid() or _is_rays_program(parent):
                return True
            return _ids(parent, "PPid") == [os.getpid()]
        except OSError:  # it is gone, or hides itself
            return False

    def _is_rays_program(task: int) -> bool:
        return "/ray/core/src/" in str(Path(f"/proc/{task}/exe").readlink())

    def _ids(task: int, *names: str) -> list[int]:
        """Of what the system says of a task, in the order in which it says so."""
        with Path(f"/proc/{task}/status").open(encoding="ascii", errors="replace") as status:
            found = {name: said for name, _, said in (line.partition(":") for line in status)}
        if not found.keys() >= {*names}:
            raise ProcessLookupError(errno.ESRCH, f"{task} is gone")
        return [int(found[name]) for name in names]

    def _bind(task: int, descriptor: int, where: tuple[str, int], waits: Callable[[], None]) -> None:
        handle = os.pidfd_open(*_ids(task, "Tgid"))
        try:
            waits()
            copy = _checked(_libc.syscall(PIDFD_GETFD, handle, descriptor, 0))
        finally:
            os.close(handle)
        with socket.socket(fileno=copy) as bound:
            bound.bind(where)

    def _run(address: str, command: Sequence[str]) -> int:
        """Runs a command with its sockets bound. Signals are the command's business, which is in the same group."""
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                here.close()
                _send_listener(there)
                there.close()
                os.execv(command[0], list(command))  # noqa: S606 - what `supervised` was asked to run
            except OSError as error:
                sys.stderr.write(f"{command[0]} can't be run with sockets bound to {address}: {error}\n")
                sys.stderr.flush()
            finally:
                os._exit(126)
        there.close()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        threading.Thread(target=_serve_sent, args=(here, address), daemon=True).start()
        _pid, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    def _serve_sent(channel: socket.socket, address: str) -> None:
        _said, listeners, _flags, _from = socket.recv_fds(channel, 1, 1)
        channel.close()
        for listener in listeners:
            try:
                _serve(listener, address)
            finally:
                os.close(listener)  # who still asks is refused, and does not wait for ever

    def _try(address: str) -> int:
        program = f"import socket; s = socket.socket(); s.bind(('', 0)); assert s.getsockname()[0] == {address!r}"
        return _run(address, [sys.executable, "-I", "-S", "-c", program])

    def _main(address: str, what: str, *rest: str) -> int:
        if what == "run":
            return _run(address, rest)
        if what == "try":
            return _try(address)
        _serve_sent(socket.socket(fileno=int(rest[0])), address)
        return 0


# --- who starts it ----------------------------------------------------------------------------------------------------


def binds_alone(address: str) -> bool:
    """Whether sockets can be bound to this address alone here. Blocks for some 0.1 s."""
    if sys.platform != "linux":
        return False
    try:
        tried = subprocess.run(_helper(address, "try"), capture_output=True, timeout=TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def command_bound(address: str, command: Sequence[str]) -> list[str]:
    """The command that runs another one, with sockets bound to an address alone."""
    return _helper(address, "run", *command)


def called_bound(address: str, work: Callable[[], T]) -> T:
    """Calls `work` in a thread of its own, of which the sockets, and those of threads that it starts, are bound to an
    address alone, as long as they live.

    Raises:
        OSError: it can't be done here.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux can")
    outcome: list[T] = []
    failure: list[BaseException] = []
    here, there = socket.socketpair()
    with here, there:
        helper = subprocess.Popen(
            _helper(address, "serve", str(there.fileno())),
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # else who reads what this process prints would wait for the helper, too
            start_new_session=True,
        )
        there.close()  # else what is sent to a helper that has ended would wait in it, and `bind` with it
        threading.Thread(target=helper.wait, name="bound sockets' helper", daemon=True).start()
        _libc.prctl(PTRACER, helper.pid, 0, 0, 0)  # where only parents may take descriptors (Yama), it may, too

        def bound() -> None:
            try:
                _send_listener(here)
                outcome.append(work())
            except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                failure.append(error)

        thread = threading.Thread(target=bound, name="bound sockets", daemon=True)
        thread.start()
        thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _helper(address: str, *what: str) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, address, *what]


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("Only Linux can bind the sockets of other processes.")
    sys.exit(_main(sys.argv[1], *sys.argv[2:]))
