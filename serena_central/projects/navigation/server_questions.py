"""Questions to the language server of a file: asked once it can be believed, with a note on what the answer lacks."""

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

import anyio

from serena_central.core.errors import Inapplicable, PathError, RequestFailed
from serena_central.core.pacing import paced
from serena_central.files.containing import find_containing
from serena_central.files.tree import FileTree
from serena_central.files.words import words_of
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.documents import MAX_CANDIDATES
from serena_central.lsp.readiness import noting_gaps
from serena_central.projects.languages.project_languages import ProjectLanguages

T = TypeVar("T")

_SCRIPTS = ("javascript", "typescript")

_EXPORTED_WITHOUT_NAME = re.compile(
    r"\bexport\s+default\b|\bas\s+default\b|\bexport\s*=(?!=)|\bmodule\s*\.\s*exports\s*=(?!=)"
)


class ServerQuestions:
    """Puts one project's questions about symbols to its language servers. Belongs to the event loop's thread."""

    def __init__(self, root: Path, tree: FileTree, languages: ProjectLanguages) -> None:
        self._root = root
        self._tree = tree
        self._languages = languages

    async def when_ready(self, path: str, question: Callable[[LanguageServer], Awaitable[T]]) -> tuple[T, str | None]:
        """Asks once the server can be believed; a note on what the answer may lack."""

        async def ask(server: LanguageServer) -> tuple[T, str | None]:
            note = await server.ready()
            try:
                with noting_gaps() as lacks:
                    answer = await question(server)
            except RequestFailed as error:
                if note is None or isinstance(error, Inapplicable):
                    raise
                # Likely the cause, and what can be done about.
                raise RequestFailed(error.server, error.method, error.code, f"{error.message}; {note}") from error
            return answer, joined(note or server.lacks, lacks())

        return await self._languages.ask(path, ask)

    async def files_to_show(self, path: str, name: str) -> tuple[list[Path], str | None]:
        """Files to show the server for `path` first, for those whose answers cover only what they were shown.

        And a note when the server takes fewer at once.
        """
        spec = self._languages.spec_for(path)
        if spec is None or not spec.documents.open_candidates:
            return [], None
        files = list(self._tree.files)
        paths = [other async for other in paced(files) if self._languages.spec_for(other) is spec]
        encoding = self._languages.encoding
        found = list((await find_containing(self._root, paths, name, encoding=encoding)).files)
        if part := self._imported_without_names(path):
            importing = await find_containing(self._root, paths, part, whole=False, encoding=encoding)
            found = list(dict.fromkeys([*found, *importing.files]))
        return self.to_show(path, name, found)

    def _imported_without_names(self, path: str) -> str:
        """The end of the path by which other files import a script, if it exports something that they call as they
        like; else nothing."""
        if self._languages.language_of(path) not in _SCRIPTS:
            return ""
        try:
            text = self._languages.read_text(self._root / path).content
        except PathError:
            return ""
        file = PurePosixPath(path)
        stem = file.name.partition(".")[0]
        word = file.parent.name if stem == "index" else stem
        return f"/{word}" if word and _EXPORTED_WITHOUT_NAME.search(text) else ""

    def to_show(self, path: str, name: str, found: Sequence[str]) -> tuple[list[Path], str | None]:
        """Of the files that hold a name, those that the server for `path` must be shown."""
        spec = self._languages.spec_for(path)
        if spec is None or not spec.documents.open_candidates:
            return [], None
        note = None
        if len(found) > MAX_CANDIDATES and not spec.documents.settle_candidates:
            note = f"{name} occurs in {len(found)} files, of which {spec.title} loaded {MAX_CANDIDATES}"
        return [self._root / other for other in found], note

    async def elsewhere(self, path: str, names: Collection[str]) -> dict[str, list[str]]:
        """Name → files that hold it, of modules that use the one of `path` and that its server was not asked about.

        Raises:
            LanguageServerError
        """
        folders = await self._languages.users_elsewhere(path, self._tree.files)
        if not folders:
            return {}
        below = tuple("" if folder == "." else f"{folder}/" for folder in folders)
        language, asked = self._languages.language_of, self._languages.workplace_of(path)
        paths = [
            other
            for other in self._tree.files
            if other.startswith(below)
            and language(other) == language(path)
            and self._languages.workplace_of(other) != asked
        ]
        found: dict[str, list[str]] = {}
        for other, words in (await anyio.to_thread.run_sync(words_of, self._root, paths, names)).items():
            for name in words.counts:
                found.setdefault(name, []).append(other)
        return found

    def identifier(self, path: str) -> str:
        """LSP's identifier of a file's language; empty where this project serves none."""
        return self._languages.selection.identifier(path)

    async def elsewhere_note(self, path: str, names: Collection[str]) -> str | None:
        """A note, if names stand in modules that use the one of `path`, and that its server was not asked about."""
        found = await self.elsewhere(path, names)
        return unjoined(sorted(found), sorted({file for files in found.values() for file in files})) if found else None

    async def with_blind_spots(self, path: str, names: Collection[str], note: str | None) -> str | None:
        """A note, with what an answer about symbols of these names, by the server for `path`, lacks in any case."""
        return joined(note, await self.elsewhere_note(path, names), self._languages.caveat(path))


def unjoined(names: Sequence[str], files: Sequence[str]) -> str:
    """A note on names that also stand in files of modules whose servers were not asked."""
    subject = f"{names[0]} also occurs" if len(names) == 1 else f"{len(names)} names ({names[0]}, …) also occur"
    return (
        f"{subject} in {_counted(files)} of modules that depend on this one by path "
        "but are loaded separately; a go.work or Cargo workspace with both would join them"
    )


def _counted(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files ({files[0]}, …)"


def joined(*notes: str | None) -> str | None:
    """Those notes that there are, each once, as one."""
    return "; ".join(dict.fromkeys(filter(None, notes))) or None
