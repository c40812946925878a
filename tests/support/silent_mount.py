"""A process with a file system of its own whose server is away, as only root can make one: `python silent_mount.py
POINT CODE` mounts it at POINT, seen by this process alone, and runs CODE, which has POINT as `point`.

Whoever looks at it hangs where no signal ends it. It is gone when this process's child, which reads what the kernel
asks and answers nothing but its first question, has ended: its pid is the first line of the output.
"""

import ctypes
import os
import signal
import struct
import sys

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
INIT = 26


def main(point: str, code: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if (
        libc.unshare(CLONE_NEWNS)
        or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
        or libc.mount(b"silent", point.encode(), b"fuse.silent", 0, options)
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    server = os.fork()
    if server == 0:
        signal.alarm(120)
        serve(fuse)
    os.close(fuse)
    sys.stdout.write(f"{server}\n")
    sys.stdout.flush()
    exec(code, {"point": point})


def serve(fuse: int) -> None:
    while True:
        question = os.read(fuse, 1 << 17)
        _, operation, unique = struct.unpack_from("<IIQ", question)
        if operation == INIT:
            said = struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 0, 0, 65536, 0, 0, 0, 0)
            os.write(fuse, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)


if __name__ == "__main__":
    main(*sys.argv[1:])
