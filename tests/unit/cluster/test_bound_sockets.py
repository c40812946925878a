"""Sockets that were to listen on all addresses are bound to one, by real processes; `bind` of others is left alone."""

import os
import shlex
import socket
import subprocess
import sys
import threading
import time

import psutil
import pytest

from serena_central.cluster.bound_sockets import binds_alone, called_bound, command_bound

ADDRESS = "127.0.0.2"

pytestmark = pytest.mark.skipif(
    not binds_alone(ADDRESS), reason="the system does not let others bind a process's sockets"
)

BINDING = """
import socket
for family, address in (socket.AF_INET, ""), (socket.AF_INET6, "::"), (socket.AF_INET, "127.0.0.1"):
    with socket.socket(family) as one:
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind((address, 0))
        print(one.getsockname()[0])
"""
BOUND = [ADDRESS, f"::ffff:{ADDRESS}", "127.0.0.1"]


def bound() -> str:
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[0]


def test_a_command_and_what_it_starts_bind_one_address_where_they_would_bind_all() -> None:
    again = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BINDING!r}], check=True)"
    for program in (BINDING, again):
        command = command_bound(ADDRESS, [sys.executable, "-c", program])
        ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        assert ran.stdout.split() == BOUND


def test_a_program_that_is_not_rays_binds_what_it_asks_for() -> None:
    perl = (
        "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_ANY)) or die; "
        "print inet_ntoa((sockaddr_in(getsockname(S)))[1])"
    )
    ran = subprocess.run(
        command_bound(ADDRESS, ["/usr/bin/perl", "-e", perl]), capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout == "0.0.0.0"


def ran(program: str) -> str:
    command = command_bound(ADDRESS, [sys.executable, "-c", program])
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def test_what_a_host_starts_binds_what_it_asks_for_even_if_it_is_this_python() -> None:
    shell = f"{sys.executable} -c {shlex.quote(BINDING)}; true"  # as a command on a host: several processes below Ray's
    program = f"import subprocess; subprocess.run(['/bin/sh', '-c', {shell!r}], check=True)"
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}], check=True)"
    assert ran(below).split() == ["0.0.0.0", "::", "127.0.0.1"]


def test_an_address_outside_of_memory_is_refused_and_later_sockets_are_bound_as_before() -> None:
    program = f"""
import ctypes, errno, socket
with socket.socket() as one:
    bind = ctypes.CDLL(None, use_errno=True).bind
    for place in 8, 2**64 - 4096:
        assert bind(one.fileno(), ctypes.c_void_p(place), 16) == -1
        assert ctypes.get_errno() == errno.EFAULT
{BINDING}"""
    assert ran(program).split() == BOUND


def test_a_signal_does_not_have_a_socket_bound_twice() -> None:
    program = """
import errno, signal, socket
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for _ in range(300):
    with socket.socket() as one:
        one.bind(("", 0))
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    ran(program)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all processes")
def test_a_process_that_hides_its_memory_binds_as_by_itself() -> None:
    hidden = "import ctypes, socket; ctypes.CDLL(None).prctl(4, 0); socket.socket().bind(('127.0.0.1', 0)); print(1)"
    assert ran(hidden) == "1\n"


def test_a_call_is_refused_where_its_helper_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(OSError, match=r"Broken pipe|not implemented"):
        called_bound(ADDRESS, bound)


def test_a_command_ends_as_by_itself_also_by_a_signal_to_its_group_and_fails_to_bind_as_by_itself() -> None:
    ends = subprocess.run(
        command_bound(ADDRESS, [sys.executable, "-c", "raise SystemExit(7)"]), timeout=30, check=False
    )
    assert ends.returncode == 7
    waiting = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit(8)); print(1, flush=True); signal.pause()"
    with subprocess.Popen(
        command_bound(ADDRESS, [sys.executable, "-c", waiting]), stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        os.killpg(child.pid, 15)
        assert child.wait(30) == 8
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        port = taken.getsockname()[1]
        program = f"import socket; socket.socket().bind(('', {port}))"
        failed = subprocess.run(
            command_bound(ADDRESS, [sys.executable, "-c", program]),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert failed.returncode == 1
    assert "Address already in use" in failed.stderr


def test_a_call_is_bound_with_threads_that_it_starts_and_nothing_else_of_its_process() -> None:
    later, go = list[str](), threading.Event()

    def work() -> str:
        def thread() -> None:
            go.wait(30)
            later.append(bound())

        started.append(threading.Thread(target=thread))
        started[0].start()
        return bound()

    started: list[threading.Thread] = []
    assert called_bound(ADDRESS, work) == ADDRESS
    assert bound() == "0.0.0.0"
    go.set()
    started[0].join(30)
    assert later == [ADDRESS]
    until = time.monotonic() + 30
    while helpers():  # ends when nobody is left that could ask
        assert time.monotonic() < until
        time.sleep(0.05)


def test_what_a_bound_call_raises_is_raised() -> None:
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        called_bound(ADDRESS, fails)


def helpers() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if is_helper(one)]


def is_helper(process: psutil.Process) -> bool:
    try:
        return "bound_sockets.py" in " ".join(process.cmdline()[:5])
    except psutil.Error:  # it has just ended
        return False
