"""apt: Debian packages, unpacked into the server's own folder. Needs no root, and changes nothing of the system.

Dependencies are not resolved: a recipe names the packages that a system may lack. apt checks their signatures; an
archive keeps one version of each, so that pins would only break.
"""

import shutil
from pathlib import Path

from serena_central.core.errors import InstallFailed
from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers.staging import Staging

NEEDS = ("apt-get", "dpkg-deb")
TIMEOUT_S = 900.0


async def build(recipe: InstallRecipe, shop: Staging) -> dict[str, str]:
    own = shop.prefix / ".apt"
    own.mkdir()
    # apt gives up root for a user that may not write here.
    download = ("-o", "APT::Sandbox::User=root", "download", *recipe.packages)
    try:
        await shop.run("apt-get", *download)
    except InstallFailed:
        # The system's lists of packages are missing or old, and only root may renew them.
        private = _private_lists(own)
        await shop.run("apt-get", *private, "-o", "APT::Sandbox::User=root", "update")
        await shop.run("apt-get", *private, *download)
    for archive in sorted(shop.prefix.glob("*.deb")):
        await shop.run("dpkg-deb", "-x", archive, shop.prefix)
        archive.unlink()
    shutil.rmtree(own)
    return {"LD_LIBRARY_PATH": ":".join(_library_folders(shop.prefix))}


def _private_lists(folder: Path) -> tuple[str, ...]:
    lists, cache = folder / "lists", folder / "cache"
    for needed in (lists / "partial", cache / "archives" / "partial"):
        needed.mkdir(parents=True)
    return ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}")


def _library_folders(prefix: Path) -> list[str]:
    """Where the loader must look, in the form that survives a move."""
    folders = {library.parent for library in prefix.glob("usr/lib/**/*.so*")}
    return [f"{{prefix}}/{folder.relative_to(prefix)}" for folder in sorted(folders)]
