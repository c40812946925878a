"""The hooks' own log, `logs/hook.log` in the server's folder: what went wrong, since a hook itself stays silent."""

import os
import time

from serena_central.standalone.home import Home

LOG_BYTES = 512 * 1024


def log(home: Home, text: str) -> None:
    """Appends to the hooks' log; a full one is started over. What can't be logged is lost."""
    try:
        folder = os.path.join(home.folder, "logs")
        if os.path.isdir(home.folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        file = os.path.join(folder, "hook.log")
        full = os.path.exists(file) and os.path.getsize(file) > LOG_BYTES
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if full else os.O_APPEND), 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
    except OSError:
        return
