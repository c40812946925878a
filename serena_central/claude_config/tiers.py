"""The four tiers of settings: their files, in the order in which they are loaded, and how strong each is."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from serena_central.claude_config.locations import FOLDER, LOCAL_SETTINGS, SETTINGS, Locations
from serena_central.core.owners import is_strangers


class Tier(StrEnum):
    """In the order in which they are loaded: lists grow in this order."""

    ENTERPRISE = "enterprise"
    USER = "user"
    PROJECT = "project"
    LOCAL = "local"

    @property
    def strength(self) -> int:
        """Of single values: user < project < local < enterprise."""
        return _STRENGTH.index(self)

    @property
    def trusted(self) -> bool:
        """Whether what it says may run without anybody's approval: it does not come with a repository."""
        return self in (Tier.ENTERPRISE, Tier.USER)


_STRENGTH = (Tier.USER, Tier.PROJECT, Tier.LOCAL, Tier.ENTERPRISE)


class TierFile(NamedTuple):
    """One file of a tier. `within` is the repository that it must not lead out of, by a symlink; `base` is the folder
    that relative paths in its rules start from."""

    tier: Tier
    path: Path
    base: Path
    within: Path | None = None
    rules_only: bool = False
    """A folder above the root: of its settings only the rules count here."""


def tier_files(root: Path, locations: Locations) -> Iterator[TierFile]:
    """All files that may say something about a root, in the order of their loading; they need not be there."""
    for path in locations.managed_files():
        yield TierFile(Tier.ENTERPRISE, path, root)
    yield TierFile(Tier.USER, locations.user_folder / SETTINGS, root)
    for folder in reversed(list(locations.around(root))):
        for tier, name in ((Tier.PROJECT, SETTINGS), (Tier.LOCAL, LOCAL_SETTINGS)):
            if not is_strangers(file := folder / FOLDER / name, root):
                yield TierFile(tier, file, folder, folder, rules_only=True)
    brought = locations.brought_folder(root)
    if brought is not None:
        yield TierFile(Tier.PROJECT, brought / SETTINGS, root, root)
    yield TierFile(Tier.LOCAL, root / FOLDER / LOCAL_SETTINGS, root, root)
