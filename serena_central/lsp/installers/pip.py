"""pip: a virtual environment for each server, from the Python that runs this product."""

import sys
from pathlib import Path

from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers.staging import Staging

NEEDS: tuple[str, ...] = ()
TIMEOUT_S = 900.0

KEPT = frozenset({
    "PIP_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT", "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY", "PIP_RETRIES", "PIP_TRUSTED_HOST",
})  # fmt: skip
"""Where packages come from, as the user has it; what else pip can be told could lead it out of the environment."""

_OPTIONS = ("--no-input", "--disable-pip-version-check", "--no-warn-script-location", "--progress-bar=off")

_RELOCATABLE = b"""#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""
"""First lines of a Python script that finds its interpreter beside itself, for sh and Python both."""


async def build(recipe: InstallRecipe, shop: Staging) -> dict[str, str]:
    await shop.run(sys.executable, "-m", "venv", shop.prefix)
    # Building from source runs a package's own code, as npm's install scripts do.
    wheels = () if recipe.scripts else ("--only-binary=:all:",)
    python = shop.prefix / "bin" / "python"
    await shop.run(python, "-m", "pip", "install", *_OPTIONS, *wheels, *recipe.packages, keep=KEPT)
    for script in (shop.prefix / "bin").iterdir():
        _make_relocatable(script, python)
    return {}


def _make_relocatable(script: Path, python: Path) -> None:
    """A script that names the interpreter of the folder it was built in would not survive being moved."""
    if script.is_symlink():
        return
    text = script.read_bytes()
    first, _, rest = text.partition(b"\n")
    if first.startswith(b"#!") and bytes(python.parent) in first:
        script.write_bytes(_RELOCATABLE + rest)
