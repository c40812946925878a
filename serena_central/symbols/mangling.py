"""Other words by which code names a member: a private one of Python outside of its class, a property of PHP behind
`->`. Pure."""

from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import GROUPS, TYPES


def mangled_names(hit: Hit, language: str | None) -> list[str]:
    """One, or none: `_Vault__open` for `__open` of a class `Vault` in Python, `size` for a property `$size` in PHP."""
    name, container = hit.symbol.name, hit.symbol.container
    if language == "php":
        is_member = container >= 0 and hit.file.symbols[container].kind in TYPES | GROUPS  # a trait is told as a module
        return [name[1:]] if is_member and name.startswith("$") else []
    if language != "python" or container < 0 or not name.startswith("__") or name.endswith("__"):
        return []
    holder = hit.file.symbols[container]
    stem = holder.name.lstrip("_")
    return [f"_{stem}{name}"] if stem and holder.kind in TYPES else []
