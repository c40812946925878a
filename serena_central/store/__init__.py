"""The store. Importing it costs nothing: what speaks SQL is loaded in a thread when it is needed."""

from serena_central.store.index_cache import CachedFile as CachedFile
from serena_central.store.index_cache import IndexCache as IndexCache
from serena_central.store.query_results import EventFilter as EventFilter
from serena_central.store.query_results import EventPage as EventPage
from serena_central.store.query_results import ToolStatistics as ToolStatistics
from serena_central.store.store import Store as Store
from serena_central.store.writer import Writer as Writer
