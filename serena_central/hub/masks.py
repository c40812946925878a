"""The secrets of one upstream by value, and texts without them: what the configuration was resolved to, and what its
helpers printed. Whatever is kept or logged of an upstream passes here; its client gets answers as they are."""

import json
from collections.abc import Iterable

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.masking import MASK, masked
from serena_central.hub.catalogs import Catalog

LEAST_SECRET = 6
"""Shorter values are not masked wherever they occur: they are words and numbers that stand in any text."""


class Masks:
    """Grows while an upstream runs; safe from any task."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        long = [one for one in secrets if len(one) >= LEAST_SECRET]
        forms = {
            form for one in long for form in (one, json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1])
        }
        self._values = sorted({*self._values, *forms}, key=len, reverse=True)

    def without_secrets(self, catalog: Catalog) -> Catalog:
        """The same lists: what a server says of itself is kept in a file, and shown to all."""
        text = msgspec.json.encode(catalog).decode()
        masked = self.masked(text)
        return catalog if masked == text else from_json(masked, Catalog)

    def masked(self, text: str) -> str:
        """The text without the values that are known to be secret."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def for_people(self, text: str) -> str:
        """The text also without what looks like a secret: what a program says of itself, for logs and errors."""
        return masked(self.masked(text))
