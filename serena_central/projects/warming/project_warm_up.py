"""Warms up one project: starts its language servers, waits until they are ready, and fills its index."""

import time
from collections.abc import Iterable, Sequence

import anyio
import msgspec

from serena_central.core.errors import LanguageServerError
from serena_central.core.progress import report
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.symbols.indexing.indexer import Indexer


class Warmed(msgspec.Struct, frozen=True):
    """The outcome of one language of one project. A success may be incomplete: then `error` says what is missing."""

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
    began = time.monotonic()
    report(f"{name}: starting {language}")
    if await languages.until_installed(files[0]):
        indexer.doubt(files)  # what they failed of is over
    ready, lacks = await _ready({languages.server_of(path): path for path in reversed(files)}.values(), languages)
    if ready:
        lacks = [*lacks, *map(str, await indexer.complete(files))]
    took = round(time.monotonic() - began, 3)
    report(f"{name}: {language} {'is warm' if ready else 'failed'} after {took:.1f} s")
    return Warmed(name, language, took, ready, "; ".join(dict.fromkeys(lacks)) or None)


async def _ready(files: Iterable[str], languages: ProjectLanguages) -> tuple[bool, list[str]]:
    """Waits for the servers of files; whether there is one that answers, and what is said of any."""
    ready, said = False, list[str]()
    for path in files:
        try:
            note = await languages.ask(path, lambda server: server.ready())
            ready = True
        except LanguageServerError as failure:
            note = str(failure)
        if note:
            said.append(note)
    return ready, said
