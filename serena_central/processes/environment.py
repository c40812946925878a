"""The environment of children, and PATH for locating programs."""

import os
import re
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_OF_ONE_PROJECT = frozenset({"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "GOWORK"})
"""Variables of the shell that started us which would decide for every project: an environment that was active there."""


HARMLESS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TERM|TMPDIR|TMP|TEMP|TZ|PWD|XDG_\w+|DISPLAY|EDITOR"
    r"|GOPATH|GOROOT|GOBIN|GOFLAGS|GOMODCACHE|CARGO_HOME|RUSTUP_HOME|RUSTUP_TOOLCHAIN|JAVA_HOME|MAVEN_HOME|GRADLE_HOME"
    r"|NVM_DIR|NODE_PATH|PNPM_HOME|PYENV_ROOT|VIRTUAL_ENV|CONDA_PREFIX|DOTNET_ROOT|GEM_HOME|SYSTEMROOT|COMSPEC|PATHEXT"
)
"""Variables that commands of agents and hooks get. Others may be secrets, under whatever name, and stay here."""


_SECRET = frozenset({"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "SERENA_CENTRAL_DATABASE_URL"})
"""Who has a cluster's token runs code on all its machines, and the URL has the database's password; what a project's
own build reads is not to have them."""


def inherited() -> dict[str, str]:
    """Ours, but for what the shell that we were started from says of one project, and secrets of a team."""
    withheld = _OF_ONE_PROJECT | _SECRET
    kept = {name: value for name, value in os.environ.items() if name not in withheld}
    return kept | {"PATH": search_path(os.environ)}


def allowed(names: re.Pattern[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables whose whole name fits: all others may be secrets, under whatever name, and stay here."""
    return {name: value for name, value in environment.items() if names.fullmatch(name)}


@cache
def own_programs() -> str:
    """The folder of what was installed beside this product. 0.1 ms are too long for calls that look there."""
    return sysconfig.get_path("scripts")


def search_path(environment: Mapping[str, str]) -> str:
    """PATH for children: without relative folders, which are other ones in each project, and with the folder of what
    was installed beside this product, such as a Node.js."""
    folders = [*environment.get("PATH", os.defpath).split(os.pathsep), own_programs()]
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())


def outside(path: str, project: Path) -> str:
    """A PATH without the folders that lie in a project, by whatever links. Looks at the disk."""
    root = project.resolve()
    folders = (folder for folder in path.split(os.pathsep) if Path(folder).is_absolute())
    return os.pathsep.join(folder for folder in folders if not Path(folder).resolve().is_relative_to(root))
