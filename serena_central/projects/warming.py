"""Warming one project up: its language servers started and ready, its index filled, before anybody asks."""

import time
from collections.abc import Iterable, Sequence

import anyio
import msgspec

from serena_central.core.errors import LanguageServerError
from serena_central.core.progress import report
from serena_central.projects.languages import ProjectLanguages
from serena_central.symbols.indexer import Indexer


class Warmed(msgspec.Struct, frozen=True):
    """What became of one language of one project. A success may be less than whole: then `error` says what lacks."""

    project: str
    language: str
    duration_seconds: float
    success: bool
    error: str | None = None


async def warm(name: str, paths: Iterable[str], languages: ProjectLanguages, indexer: Indexer) -> list[Warmed]:
    """Starts the servers of all languages that are searched, waits until each is ready, and fills the index.

    A server that is being installed is waited for.

    `paths` are all files of the project `name`.
    """
    files: dict[str, list[str]] = {}
    for path in paths:
        language = languages.language_of(path)
        if language and languages.is_searched(path) and languages.spec_for(path):
            files.setdefault(language, []).append(path)
    done: dict[str, Warmed] = {}

    async def one(language: str) -> None:
        done[language] = await _language(name, language, files[language], languages, indexer)

    async with anyio.create_task_group() as tasks:
        for language in files:
            tasks.start_soon(one, language)
    return [done[language] for language in files]


async def _language(
    name: str, language: str, files: Sequence[str], languages: ProjectLanguages, indexer: Indexer
) -> Warmed:
    began, error, success = time.monotonic(), None, True
    report(f"{name}: starting {language}")
    try:
        if await languages.until_installed(files[0]):
            indexer.doubt(files)  # what they failed of is over
        error = await languages.ask(files[0], lambda server: server.ready())
        gaps = await indexer.ensure(files)
        error = "; ".join(filter(None, [error, *map(str, gaps)])) or None
    except LanguageServerError as failure:
        error, success = str(failure), False
    took = round(time.monotonic() - began, 3)
    report(f"{name}: {language} {'is warm' if success else 'failed'} after {took:.1f} s")
    return Warmed(name, language, took, success, error)
