"""The usage store for pages and /api, brought up to date first. Blocks: for worker threads."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from serena_central.store.usage_store import UsageStore
    from serena_central.transcripts.counting import Update

_reading = threading.Lock()
"""One visit reads at a time; the others wait, and find everything read."""


@contextmanager
def read_usage(parts: WebServices) -> "Generator[tuple[UsageStore, Update]]":
    """The usage store, up to date, and what was read for that."""
    from serena_central.store.usage_store import UsageStore
    from serena_central.transcripts.counting import update
    from serena_central.transcripts.pricing import Prices
    from serena_central.transcripts.roots import all_roots

    with _reading, UsageStore(parts.places.usage_file) as store:
        yield store, update(store, all_roots(parts.places.transcripts), Prices(parts.settings.prices))
