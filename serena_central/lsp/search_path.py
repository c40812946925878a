"""PATH as it is used here: where programs are looked for, and what children get."""

import os
import sysconfig
from collections.abc import Mapping
from pathlib import Path


def search_path(environment: Mapping[str, str]) -> str:
    """PATH for children: without relative folders, which are other ones in each project, and with the folder of what
    was installed beside this product, such as a Node.js."""
    folders = [*environment.get("PATH", os.defpath).split(os.pathsep), sysconfig.get_path("scripts")]
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())


def outside(path: str, project: Path) -> str:
    """A PATH without the folders that lie in a project, by whatever links. Looks at the disk."""
    root = project.resolve()
    folders = (folder for folder in path.split(os.pathsep) if Path(folder).is_absolute())
    return os.pathsep.join(folder for folder in folders if not Path(folder).resolve().is_relative_to(root))
