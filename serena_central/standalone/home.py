"""Locates this user's server: its folder, announcement and token, for all standalone packages. Shared by all standalone
packages.

The same rules as `core/places.py` and `access/token.py` have, without what they import; tests compare them.
"""

import json
import os
import stat
import sys
from typing import Any, NamedTuple

from serena_central.standalone.private import secure

APP = "serena-central"
MAX_TOKEN_BYTES = 4096


NO_HOME_FOLDER = "does not name a folder by an absolute path, and the system's user database has none for this user"
"""What is wrong with HOME."""


class Unusable(Exception):
    """What should let us in (the token's file, the server's certificate) can't be used; the text says what to do."""


class Announcement(NamedTuple):
    """What `server.json` says about the server that runs, or ran."""

    url: str
    pid: int
    version: str
    arguments: list[str]
    """Of `serve`, by which it is started again at the same address."""
    variables: list[str]
    """The names of environment variables that set something for it."""


class Home:
    """The server's folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @property
    def token_file(self) -> str:
        return os.path.join(self.folder, "token")

    @property
    def lock_file(self) -> str:
        """Held by this user's one server as long as it runs."""
        return os.path.join(self.folder, "lock")

    @property
    def start_lock(self) -> str:
        """The lock held while a server is started, so that of ten at once one does it."""
        return os.path.join(self.folder, "start.lock")

    @property
    def start_log(self) -> str:
        """What a server that was started here says before it has a log of its own."""
        return os.path.join(self.folder, "logs", "start.log")

    def create(self) -> None:
        """Raises: NotPrivate, OSError."""
        repaired = secure(self.folder)
        if repaired:
            print(f"serena-central: {repaired}", file=sys.stderr)
        os.makedirs(os.path.join(self.folder, "logs"), mode=0o700, exist_ok=True)

    def announcement(self) -> Announcement | None:
        """None where no server runs, or none was left in order."""
        try:
            with open(os.path.join(self.folder, "server.json"), encoding="utf-8") as file:
                said: Any = json.load(file)
            arguments = list(map(str, said.get("arguments", [])))
            variables = list(map(str, said.get("variables", [])))
            return Announcement(str(said["url"]), int(said["pid"]), str(said.get("version", "")), arguments, variables)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None


def user_home() -> Home:
    """`SERENA_CENTRAL_HOME`, else the platform's user data folder (as platformdirs has it).

    Raises:
        Unusable: there is neither.
    """
    named = os.environ.get("SERENA_CENTRAL_HOME")
    return Home(os.path.abspath(os.path.expanduser(named)) if named else default_folder(sys.platform))


def default_folder(platform: str) -> str:
    """The folder of a user who set none. `platform` as in `sys.platform`.

    Raises:
        Unusable: the user has no home folder. `~` would be a folder in whatever project the client works in.
    """
    if platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(os.path.normpath(local), APP, APP)
    data = os.environ.get("XDG_DATA_HOME", "").strip()
    if not os.path.isabs(data):
        data = os.path.expanduser("~/Library/Application Support" if platform == "darwin" else "~/.local/share")
        if not os.path.isabs(data):
            raise Unusable(f"HOME {NO_HOME_FOLDER}. Set it.")
    return os.path.join(data, APP)


def read_token(file: str) -> str | None:
    """The token; None where there is no file.

    Raises:
        Unusable: others can read the file, or it holds no token.
    """
    try:
        # Checked and read through one descriptor, so that nobody can swap the file in between.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(f"The token file {file} can't be read: {error.strerror}.") from error
    try:
        _check_private(file, os.fstat(descriptor))  # a stream can't be made of a folder
        token = os.read(descriptor, MAX_TOKEN_BYTES).strip()
    finally:
        os.close(descriptor)
    if not token or not all(0x21 <= byte <= 0x7E for byte in token):
        raise Unusable(f"{file} does not contain a valid token. Delete it and restart the server to get a new one.")
    return token.decode("ascii")


def _check_private(file: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unusable(f"The token file {file} is not a regular file.")
    if os.name != "posix":
        return
    if status.st_uid != os.geteuid():
        raise Unusable(f"The token file {file} belongs to another user.")
    if status.st_mode & 0o077:
        raise Unusable(
            f"The token file {file} is readable by other users (mode {stat.S_IMODE(status.st_mode):04o}), who may know "
            "the token. If nobody else uses this machine, run chmod 600 on it; else get another token: of your own "
            "server by deleting the file and restarting the server, of a team's from its administrator."
        )
