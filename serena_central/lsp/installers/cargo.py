"""cargo: compiles a pinned crate with the crate's own lock."""

from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers.staging import Staging

NEEDS = ("cargo",)
TIMEOUT_S = 5400.0
"""The largest servers compile for half an hour on two CPUs."""

KEPT = frozenset({
    "CARGO_HOME", "CARGO_HTTP_CAINFO", "CARGO_HTTP_PROXY", "CARGO_NET_OFFLINE", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN",
})  # fmt: skip


async def build(recipe: InstallRecipe, shop: Staging) -> dict[str, str]:
    await shop.run("cargo", "install", "--locked", "--root", shop.prefix, *recipe.packages, keep=KEPT)
    return {}
