"""npm: a `node_modules` for each server. Install scripts of packages stay off unless the recipe needs them."""

import json

from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers.staging import Staging

NEEDS = ("npm",)
TIMEOUT_S = 900.0

KEPT = frozenset({
    "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_CACHE", "NPM_CONFIG_CAFILE", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_NOPROXY",
    "NPM_CONFIG_PROXY", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG",
})  # fmt: skip

_OPTIONS = (
    "--save-exact", "--no-global", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev",
    "--include=optional",
)  # fmt: skip


async def build(recipe: InstallRecipe, shop: Staging) -> dict[str, str]:
    # Without a manifest npm would look for one in the folders above.
    manifest = {"name": "language-server", "version": "0.0.0", "private": True, "overrides": recipe.overrides}
    (shop.prefix / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    scripts = () if recipe.scripts else ("--ignore-scripts",)
    await shop.run("npm", "install", "--prefix", shop.prefix, *_OPTIONS, *scripts, *recipe.packages, keep=KEPT)
    return {}
