"""Standard streams of a program that was started without some of them, as by a desktop or a script with `2>&-`."""

import os
import sys


def open_missing_streams() -> None:
    """Puts the null device in place of each stream that is missing. Called first by the start of each program of ours.

    The next file that is opened would get the stream's descriptor: what a library's C code prints would be written into
    the server's lock or a database. And `print(file=sys.stderr)` goes to stdout, which is a proxy's protocol, where
    `sys.stderr` is None.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
