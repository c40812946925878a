"""toolchain: a part of the language's own tools, by their manager (rustup). It lies where the manager puts it.

This changes the user's toolchain, so it is only done for those who ask for the server by name.
"""

from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers.staging import Staging

NEEDS = ("rustup",)
TIMEOUT_S = 600.0
KEPT = frozenset({"CARGO_HOME", "RUSTUP_DIST_SERVER", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"})


async def build(recipe: InstallRecipe, shop: Staging) -> dict[str, str]:
    await shop.run("rustup", "component", "add", *recipe.components, keep=KEPT)
    return {}
