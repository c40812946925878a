"""Exit codes of all programs here except `serena-hook`, whose clients define their own."""

DONE = 0
FAILED = 1
"""Something failed or was refused, or a check has findings."""

USAGE = 2
"""The command line or the settings are wrong."""

NO_SERVER = 3
INTERRUPTED = 130
"""Ctrl-C: 128 and the signal's number, as shells report it."""

HUNG_UP = 129
"""SIGHUP: the terminal was closed."""

TERMINATED = 143
"""SIGTERM."""
