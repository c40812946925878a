"""Hashes of symbols' bodies, which distinguish a change of one symbol from changes elsewhere in its file."""

from collections.abc import Iterable
from hashlib import blake2b

from serena_central.core.text import Text
from serena_central.symbols.symbol import FileSymbols, Symbol


def body_hash(text: Text, symbol: Symbol) -> str:
    """The hash of a symbol's body, 16 hexadecimal digits. Line ends don't count."""
    return hash_of(text.slice(symbol.range))


def hash_of(body: str) -> str:
    """The hash of a body that was cut out already."""
    body = body.replace("\r\n", "\n")
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def body_hashes(text: Text, file: FileSymbols, places: Iterable[int] | None = None) -> dict[str, str]:
    """Name path → hash, of all symbols of a file or of those at `places`."""
    chosen = range(len(file.symbols)) if places is None else places
    return {file.name_path(place): body_hash(text, file.symbols[place]) for place in chosen}


def below(file: FileSymbols, place: int) -> list[int]:
    """A symbol and all that it contains."""
    inside = {place}
    for number in range(place + 1, len(file.symbols)):  # a container stands before what it holds
        if file.symbols[number].container in inside:
            inside.add(number)
    return sorted(inside)
