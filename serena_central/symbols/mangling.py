"""The words by which code names private members of Python outside of their class. Pure."""

from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES


def mangled_names(hit: Hit, language: str | None) -> list[str]:
    """One for a private member, or none: `_Vault__open` for `__open` of a class `Vault`."""
    name, container = hit.symbol.name, hit.symbol.container
    if language != "python" or container < 0 or not name.startswith("__") or name.endswith("__"):
        return []
    holder = hit.file.symbols[container]
    stem = holder.name.lstrip("_")
    return [f"_{stem}{name}"] if stem and holder.kind in TYPES else []
