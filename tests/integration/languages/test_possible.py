"""What the language server does not list is not taken for unused: references that it can't see, in real Python code."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from serena_central.core.text import Position
from serena_central.lsp.answers import Location
from serena_central.lsp.client import LanguageServer
from serena_central.projects.navigation import candidates
from serena_central.symbols.syntax.lexical import Tokens, tokens
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

QUERY = """\
import sys


class Base:
    def load(self):
        return 1


class Derived(Base):
    def load(self):
        return 3

    def twice(self):
        return self.load()

    def thrice(self):
        return 3


class Query:
    def __init__(self):
        self._lookups = ()

    def fetch(self):
        if self._lookups:
            self._prefetch_objects()

    def _prefetch_objects(self):
        return 2

    def on_windows(self):
        return 3

    def select_rows(self):
        return 4

    def never_called(self):
        return 5

    def called_by_name(self):
        return 6


def get(key):
    return key


if sys.platform == "win32":
    Query().on_windows()


class Reader:
    pass


class Writer:
    pass


class Doer:
    def refresh(self):
        return 7
"""

USES = """\
from query import Query


def unannotated(query):
    # never_called is not called here
    return query.select_rows(), query.get("key")


def by_string(query):
    return getattr(query, "called_by_name")()


def select(rows):
    select_rows = rows
    return select_rows


PLUGINS = ["query.Reader", "Writer of books"]


def by_reflection(doer):
    return getattr(doer, "refresh")()


BY_NAME = {"Writer": 1}
"""


@pytest.fixture
async def python(tmp_path: Path) -> AsyncGenerator[Asker]:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in {"query.py": QUERY, "uses.py": USES, "pyproject.toml": "[project]\nname = 'shop'\n"}.items():
        (root / name).write_text(text)
    (root / "notes.md").write_text("Call `select_rows` first.\n")
    async with asker(tmp_path, root) as ask:
        yield ask


async def texts(ask: Asker, tool: str, **arguments: Any) -> list[str]:
    """The answer, and each note."""
    answer, *notes = (part["text"] for part in (await ask.result(tool, **arguments))["content"])
    return [answer, *(line for note in notes for line in note.splitlines())]


POSSIBLE = "Possible references, in addition to those above: "


@pytest.mark.parametrize(
    ("name_path", "place"),
    [
        ("Query/_prefetch_objects", "query.py:25 in Query/fetch"),
        ("Query/select_rows", "uses.py:5 in unannotated"),
        ("Query/on_windows", "query.py:48"),
    ],
)
async def test_a_call_that_the_server_can_not_resolve_is_a_possible_reference(
    python: Asker, name_path: str, place: str
) -> None:
    answer, note = await texts(python, "find_referencing_symbols", name_path=name_path)
    assert answer == "{}"
    assert note.startswith(f"{POSSIBLE}1 place in code")
    assert note.endswith(f" means this symbol: {place}.")
    _, *notes = await texts(python, "get_symbol_context", name_path=name_path)
    assert any(note.startswith(f"{POSSIBLE}1 place in code") and note.endswith(f": {place}.") for note in notes), notes

    refused = await python.result("safe_delete_symbol", name_path=name_path)
    assert refused["isError"]
    assert place in refused["content"][0]["text"]
    assert "Pass force=true" in refused["content"][0]["text"]
    assert (python.root / "query.py").read_text() == QUERY


def counting_definitions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines of `uses.py` of which a language server is asked where a name in them leads, as it is asked."""
    asked: list[int] = []
    definitions = LanguageServer.definitions

    async def counted(
        server: LanguageServer, path: Path, positions: Sequence[Position], *more: Any
    ) -> list[list[Location] | None]:
        if path.name == "uses.py":
            asked.extend(position.line0 for position in positions)
        return await definitions(server, path, positions, *more)

    monkeypatch.setattr(LanguageServer, "definitions", counted)
    return asked


async def test_where_a_place_leads_is_asked_again_when_something_has_changed(
    python: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while nothing has: an agent that asks twice, or renames what it asked about, waits once."""
    asked = counting_definitions(monkeypatch)
    named = {"name_path": "Query/select_rows"}
    first = await texts(python, "find_referencing_symbols", **named)
    assert asked == [5, 13, 14]
    assert await texts(python, "find_referencing_symbols", **named) == first
    assert asked == [5, 13, 14, 5]  # what is unresolved may not be any more, since a package was installed

    # Whatever has changed, in whichever file.
    (python.root / "query.py").write_text(QUERY.replace("def get(key)", "def get(key, default=None)"))
    assert await texts(python, "find_referencing_symbols", **named) == first
    assert asked[4:] == [5, 13, 14]
    (python.root / "uses.py").write_text(USES.replace("unannotated(query)", "unannotated(query: Query)"))
    answer, *_ = await texts(python, "find_referencing_symbols", **named)
    assert '"name_path":"unannotated"' in answer


async def test_a_place_in_a_file_that_changed_unheard_is_asked_about_again(
    python: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write through a hard link is reported to nobody."""
    hidden = python.root.parent / "hidden.py"
    hidden.hardlink_to(python.root / "uses.py")
    named = {"name_path": "Query/select_rows"}
    _, note = await texts(python, "find_referencing_symbols", **named)
    assert "uses.py:5 in unannotated" in note
    asked = counting_definitions(monkeypatch)
    hidden.write_text(f"{USES}# written\n")
    await texts(python, "find_referencing_symbols", **named)
    assert asked == [5, 13, 14]


async def test_only_files_with_a_place_that_the_server_does_not_list_are_taken_apart(
    python: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking a file apart for its strings and comments takes ten times as long as finding a name in it."""
    taken_apart: list[str] = []

    def counted(identifier: str, content: str) -> Tokens | None:
        taken_apart.append(content)
        return tokens(identifier, content)

    monkeypatch.setattr(candidates, "tokens", counted)
    assert "Query" in (await texts(python, "find_referencing_symbols", name_path="Query"))[0]
    assert taken_apart == []
    await texts(python, "find_referencing_symbols", name_path="Query/never_called")
    assert taken_apart == [USES]


async def test_a_name_that_built_in_types_have_says_so(python: Asker) -> None:
    _, note = await texts(python, "find_referencing_symbols", name_path="get")
    assert note.endswith(
        "uses.py:5 in unannotated. Built-in types also have a member get, so many of these may be unrelated."
    )


async def test_a_call_through_the_base_class_may_be_a_call_of_the_derived_one(python: Asker) -> None:
    _, note = await texts(python, "find_referencing_symbols", name_path="Base/load", relative_path="query.py")
    assert "query.py:13 in Derived/twice" in note


async def test_what_nothing_can_refer_to_is_deleted(python: Asker) -> None:
    answer = await texts(python, "safe_delete_symbol", name_path="Query/never_called")
    assert '"lines_removed":3' in answer[0]
    assert "never_called" not in (python.root / "query.py").read_text()


async def test_an_override_is_not_deleted_and_another_method_of_a_derived_class_is(python: Asker) -> None:
    refused = await python.result("safe_delete_symbol", name_path="Derived/load")
    assert "It may be referenced from elsewhere: it may be an override." in refused["content"][0]["text"]
    assert '"lines_removed":3' in (await texts(python, "safe_delete_symbol", name_path="Derived/thrice"))[0]


async def test_a_name_in_a_string_keeps_a_symbol(python: Asker) -> None:
    refused = await python.result("safe_delete_symbol", name_path="Query/called_by_name")
    assert refused["isError"]
    assert "Its name occurs in a string in uses.py:9 in by_string." in refused["content"][0]["text"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Query/called_by_name", "Strings that may mean called_by_name: uses.py:9 in by_string."),
        ("Doer/refresh", "Strings that may mean refresh: uses.py:21 in by_reflection."),
        ("Writer", "Strings that may mean Writer: uses.py:24 in BY_NAME."),
    ],
)
async def test_references_name_the_strings_that_may_mean_a_symbol(python: Asker, name: str, said: str) -> None:
    """Keys of typed dictionaries, members of enumerations and what is taken by reflection are used so."""
    assert said in await texts(python, "find_referencing_symbols", name_path=name)


async def test_an_everyday_word_in_a_string_keeps_a_symbol_where_it_follows_its_module(python: Asker) -> None:
    refused = await python.result("safe_delete_symbol", name_path="Reader")
    assert "Its name occurs in a string in uses.py:17" in refused["content"][0]["text"]
    _, note = await texts(python, "safe_delete_symbol", name_path="Writer")
    assert "class Writer" not in (python.root / "query.py").read_text()
    assert note == "Writer is all of a string, which may mean it, in uses.py:24 in BY_NAME."


async def test_an_everyday_word_that_a_call_is_given_keeps_a_symbol(python: Asker) -> None:
    refused = await python.result("safe_delete_symbol", name_path="Doer/refresh")
    assert refused["isError"]
    assert "in by_reflection." in refused["content"][0]["text"]


async def test_force_deletes_and_says_what_is_left_behind(python: Asker) -> None:
    _, *notes = await texts(python, "safe_delete_symbol", name_path="Query/select_rows", force=True)
    assert any(note.startswith("Deleted despite: ") and "uses.py:5 in unannotated" in note for note in notes)
    assert "def select_rows" not in (python.root / "query.py").read_text()


async def test_what_may_be_used_is_not_reported_as_unused(python: Asker) -> None:
    answer, *notes = await texts(python, "find_unused_symbols", relative_path="query.py")
    assert "Query/never_called" in answer
    assert not any(name in answer for name in ("_prefetch_objects", "select_rows", "on_windows"))
    assert any(note.startswith("Not reported as unused, because their names occur in code") for note in notes), notes


async def test_a_rename_says_where_the_old_name_is_left(python: Asker) -> None:
    answer, *notes = await texts(python, "rename_symbol", name_path="Query/select_rows", new_name="choose_rows")
    assert '"changed_places":1' in answer
    code = "select_rows still occurs in code that the language server cannot resolve (check each): uses.py:5"
    assert code in notes
    assert "select_rows still occurs in files of other languages: notes.md" in notes
    assert "def choose_rows" in (python.root / "query.py").read_text()
