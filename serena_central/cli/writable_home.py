"""Whether the server's home can be written, before anything is started in it."""

import tempfile

from serena_central.core.errors import ConfigError
from serena_central.core.places import HOME_VARIABLE, Places

PROBE_BYTES = 64 * 1024
"""More than fits beside what is already there: a disk that takes a name alone is full."""


def check_writable(places: Places) -> None:
    """Raises ConfigError if nothing can be written into the home, where there is one."""
    if not places.home.exists():
        return
    try:
        with tempfile.TemporaryFile(dir=places.home, prefix=".probe-") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
    except OSError as error:
        problem = f"{places.home} can't be written: {(error.strerror or str(error)).lower()}. Free disk space, or"
        raise ConfigError(HOME_VARIABLE, f"{problem} choose a folder on another disk") from error
