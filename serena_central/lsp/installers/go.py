"""go: `go install` of a pinned module; its sources and builds stay in the user's Go caches."""

from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers.workshop import Workshop

NEEDS = ("go",)
TIMEOUT_S = 1800.0

KEPT = frozenset({
    "GOCACHE", "GOENV", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY",
    "GOROOT", "GOSUMDB",
})  # fmt: skip


async def build(recipe: InstallRecipe, shop: Workshop) -> dict[str, str]:
    await shop.run(
        "go",
        "install",
        *recipe.packages,
        keep=KEPT,
        GOBIN=str(shop.prefix / "bin"),
        GOFLAGS="-trimpath",
        GOTOOLCHAIN="local",  # never fetches another Go behind the user's back
        GOWORK="off",
    )
    return {}
