"""`serena-central`, as a console script and as `python -m serena_central.cli`.

Until the command is imported, Ctrl-C ends the process at once, without a traceback.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """The console script."""
    from serena_central.cli.main import main as run

    run()


def serve() -> None:
    """`serena-server`."""
    from serena_central.cli.main import serve_main as run

    run()


if __name__ == "__main__":
    main()
