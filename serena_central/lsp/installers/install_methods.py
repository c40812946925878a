"""The table of install methods, one module each."""

from typing import Protocol

from serena_central.lsp.catalogue import InstallRecipe
from serena_central.lsp.installers import apt, cargo, go, npm, pip, toolchain
from serena_central.lsp.installers.staging import Staging


class InstallMethod(Protocol):
    """What each module offers."""

    @property
    def NEEDS(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """Programs of its own, as `needs` of the catalogue."""
        ...

    @property
    def TIMEOUT_S(self) -> float:  # noqa: N802 - a module's constant
        """How long a whole build may take."""
        ...

    async def build(self, recipe: InstallRecipe, shop: Staging) -> dict[str, str]:
        """Fills `shop.prefix`; what it leaves there may be moved as a whole. Returns the environment that its programs
        need, where `{prefix}` stands for the folder.

        Raises:
            InstallFailed
        """
        ...


INSTALL_METHODS: dict[str, InstallMethod] = {
    "pip": pip,
    "npm": npm,
    "go": go,
    "cargo": cargo,
    "apt": apt,
    "toolchain": toolchain,
}
"""By the catalogue's `via`; other values (path, manual) need a person."""

OUTSIDE = frozenset({"toolchain"})
"""Ways that install elsewhere than into `servers/`: their programs are found along PATH."""
