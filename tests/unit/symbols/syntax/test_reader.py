"""The reader answers whatever it is given: real text, text that holds up the parser, text that is too long."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import psutil
import pytest

from serena_central.core.errors import LanguageServerError
from serena_central.core.text import Position
from serena_central.processes.child import ChildProcess
from serena_central.processes.usage import Usage
from serena_central.symbols.columns import decompressed
from serena_central.symbols.syntax import reader as reader_module
from serena_central.symbols.syntax.grammars import GRAMMARS, SHORTHANDS
from serena_central.symbols.syntax.messages import PARSED_BYTES, Decorator, Packed
from serena_central.symbols.syntax.occurrences import _INITIALIZERS, _PATTERNS
from serena_central.symbols.syntax.reader import SyntaxReader
from serena_central.symbols.syntax.trees import tools
from tests.support.pools import until_gone

pytestmark = pytest.mark.anyio

ENDLESS = "(" * 2_000_000
"""Keeps the grammar of Python busy for minutes, in C, with Python's lock held."""


@asynccontextmanager
async def running() -> AsyncGenerator[SyntaxReader]:
    reader = SyntaxReader()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(lambda *, task_status: reader.run(task_status=task_status))
            yield reader
            tasks.cancel_scope.cancel()


async def names(reader: SyntaxReader, text: str, identifier: str = "python") -> list[str]:
    return [symbol.name for symbol in (await reader.outline(identifier, text)).symbols]


def workers() -> list[psutil.Process]:
    """Processes below the guards of this test's own process."""
    below = psutil.Process().children(recursive=True)
    found: list[psutil.Process] = []
    for process in below:
        with suppress(psutil.Error):  # it has ended
            if any("syntax.worker" in part for part in process.cmdline()):
                found.append(process)
    return found


async def test_many_callers_are_served_by_one_worker_each_with_its_own_answer() -> None:
    async with running() as reader:
        found: dict[int, list[str]] = {}

        async def ask(number: int) -> None:
            found[number] = await names(reader, f"def f{number}(): pass\nk = '\udcff'")

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(ask, number)
        assert found == {number: [f"f{number}", "k"] for number in range(20)}
        assert len(workers()) == 2  # the guard names it, too
        assert await names(reader, "package a\nfunc F() {}", "go") == ["F"]


async def test_text_that_holds_up_the_parser_costs_its_own_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as reader:
        assert await names(reader, "x = 1") == ["x"]
        with monkeypatch.context() as patch:
            patch.setattr(reader_module, "ANSWER_S", 0.5)
            with pytest.raises(LanguageServerError, match=r"longer than 0\.5 s"):
                await reader.outline("python", ENDLESS)
        assert await names(reader, "y = 1") == ["y"]


async def test_a_worker_that_gets_no_cpu_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, usage = 0, ChildProcess.usage

    def counted(process: ChildProcess) -> Usage:
        nonlocal looked_at
        looked_at += 1
        return usage(process)

    found: list[str] = []
    async with running() as reader, anyio.create_task_group() as tasks:
        assert await names(reader, "x = 1") == ["x"]
        monkeypatch.setattr(reader_module, "ANSWER_S", 0.2)
        monkeypatch.setattr(ChildProcess, "usage", counted)
        for worker in workers():
            worker.suspend()

        async def ask() -> None:
            found.extend(await names(reader, "y = 1"))

        tasks.start_soon(ask)
        while looked_at < 2 * reader_module.CPU_CHECKS:  # as often as it may take twice
            await anyio.sleep(0.01)
        assert found == []
        for worker in workers():
            worker.resume()
    assert found == ["y"]


async def test_of_many_texts_the_one_that_holds_up_the_parser_costs_its_own_answer_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as reader:
        assert await names(reader, "x = 1") == ["x"]
        monkeypatch.setattr(reader_module, "ANSWER_S", 1)
        texts = [f"x{number} = 1" for number in range(5)]
        found = await reader.packed([("python", text.encode()) for text in (*texts[:3], ENDLESS[:400_000], *texts[3:])])
        assert isinstance(found[3], LanguageServerError)
        assert [one.names for one in found if isinstance(one, Packed)] == [{f"x{number}": 1} for number in range(5)]


async def test_further_workers_share_many_texts_and_end_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MOST_WORKERS", 3)
    monkeypatch.setattr(reader_module, "TEXTS_PER_WORKER", 2)
    monkeypatch.setattr(reader_module, "BATCH_TEXTS", 1)
    monkeypatch.setattr(reader_module, "FURTHER_IDLE_S", 0.1)
    most = 0
    found: list[Packed | LanguageServerError] = []
    async with running() as reader:

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, len(workers()) // 2)  # the guard of each names it, too
                await anyio.sleep(0.05)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            found = await reader.packed([("python", b"x%d = 1\n" % number * 3000) for number in range(40)])
            while len(workers()) > 2:
                await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
        assert await names(reader, "y = 1") == ["y"]
    assert most == 3
    packed = [one for one in found if isinstance(one, Packed)]
    assert [one.names for one in packed] == [{f"x{number}": 3000} for number in range(40)]
    assert decompressed(packed[0].compressed).symbols[0].name == "x0"


async def test_a_worker_that_dies_is_followed_by_another() -> None:
    async with running() as reader:
        await reader.outline("python", "")
        for process in workers():
            process.kill()
            await until_gone(process.pid)
        with pytest.raises(LanguageServerError, match="the parser crashed"):
            await reader.outline("python", "x = 1")
        assert await names(reader, "x = 1") == ["x"]


async def test_a_caller_who_leaves_spoils_nothing_and_a_worker_that_nobody_needs_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_module, "IDLE_S", 0)
    async with running() as reader:
        with anyio.move_on_after(0):
            await reader.outline("python", "x = 1")
        assert await names(reader, "y = 1") == ["y"]
        for process in workers():
            await until_gone(process.pid)
        assert await names(reader, "z = 1") == ["z"]


async def test_what_is_too_long_or_asked_too_early_is_refused() -> None:
    reader = SyntaxReader()
    with pytest.raises(LanguageServerError, match="starts or stops"):
        await reader.outline("python", "x = 1")
    with pytest.raises(LanguageServerError, match="5 MB, the limit"):
        await reader.outline("python", "x" * (PARSED_BYTES + 1))


@pytest.mark.slow
async def test_a_header_of_macros_may_be_longer_than_what_is_parsed() -> None:
    macros = b"".join(b"#define REGISTER_%d_MASK 0x%08x\n" % (number, number) for number in range(200_000))
    assert len(macros) > PARSED_BYTES
    async with running() as reader:
        found, other = await reader.packed(
            [("c", macros + b"int after(void);\n"), ("c", b"int a = 1;\n" * (PARSED_BYTES // 10))]
        )
    assert isinstance(found, Packed)
    assert found.names == {"after": 1}
    assert isinstance(other, LanguageServerError)


@pytest.mark.parametrize(
    ("identifier", "text", "kinds"),
    [
        ("python", 'x = f"{name} name" # name\nobject.name("""name""")\n', "code string comment code string"),
        (
            "typescript",
            "`${name} name`; a.name(); // name\n/* name */ 'name'",
            "code string code comment comment string",
        ),
        ("go", 'package a\n// name\nvar x = name("name", `name`)', "comment code string string"),
        ("rust", 'fn f() { m!(name, "name"); /* name */ }', "code string comment"),
        ("cpp", '#define M(x) name(x)\nint a = b.name("name"); // name', "code code string comment"),
        ("java", 'class A { int b = name("name"); /** name */ }', "code string comment"),
        ("php", '<?php $x = "{$a->name} name"; name(); // name', "code string code comment"),
        ("csharp", 'class A { string b = $"{name} name"; /* name */ }', "code string comment"),
        ("python", "renamed = name_ = name(", "code"),
    ],
)
async def test_a_name_stands_in_code_a_string_or_a_comment(identifier: str, text: str, kinds: str) -> None:
    async with running() as reader:
        found = await reader.occurrences(identifier, text, "name")
        assert " ".join(one.kind for one in found) == kinds
        lines = text.split("\n")
        assert {lines[one.range.start.line0][one.range.start.column : one.range.end.column] for one in found} == {
            "name"
        }


@pytest.mark.parametrize(
    ("identifier", "text", "shorthands"),
    [
        ("typescript", "const { name, a: name } = f({ name, name: 1 });", [(8, True), None, (30, False), None]),
        ("typescriptreact", "function F({ name = 1 }: P) { return <A name={name} />; }", [(13, True), None, None]),
        ("javascript", 'import { name } from "x"; export { name };', [None, None]),
        ("rust", "fn f(P { name }: P) { P { name, x: name } }", [(9, True), (26, False), None]),
        ("rust", "fn f() { let P { ref mut name, .. } = p; p.name }", [(17, True), None]),
        ("rust", "fn f() { m![P { name, a: 1 }, P { a: 1, ref mut name }] }", [(16, None), (40, None)]),
        ("rust", "fn f() { m!(if a { name } else { name }, if B == C { name }, { name, a }) }", [None] * 4),
        (
            "rust",
            "fn f() { m!(if let P { name } = p { name }, P { name: name }, P::<T> { name, .. }) }",
            [(23, None), None, None, None, (71, None)],
        ),
        ("python", "{name: name}", [None, None]),
    ],
)
async def test_a_word_for_a_field_and_a_value_is_known(identifier: str, text: str, shorthands: list[object]) -> None:
    async with running() as reader:
        found = [one.shorthand for one in await reader.occurrences(identifier, text, "name")]
    assert [(one.start.column, one.binds) if one else None for one in found] == shorthands


async def test_places_are_counted_in_code_points() -> None:
    async with running() as reader:
        (one,) = await reader.occurrences("python", "'𝔘𝔫𝔦' ; name", "name")
        assert one.range.start == Position(0, 8)


async def test_who_waits_when_the_server_stops_is_told_so() -> None:
    told: list[str] = []

    async def ask(reader: SyntaxReader, text: str) -> None:
        with pytest.raises(LanguageServerError) as failure:
            await reader.outline("python", text)
        told.append(str(failure.value))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as askers, running() as reader:
            askers.start_soon(ask, reader, ENDLESS)
            await anyio.wait_all_tasks_blocked()
            askers.start_soon(ask, reader, "x = 1")
            await anyio.wait_all_tasks_blocked()
    assert len(told) == 2
    assert all("stopping" in text for text in told)


@pytest.mark.parametrize("identifier", GRAMMARS)
def test_only_grammars_that_have_words_for_shorthands_are_asked_for_them(identifier: str) -> None:
    parser, _ = tools(identifier)
    assert parser.language is not None
    kind = parser.language.id_for_node_kind
    words = [word for word in (*_PATTERNS, *_INITIALIZERS) if kind(word, True)]
    assert bool(words) == (identifier in SHORTHANDS)


async def test_parameters_below_a_large_decorator_are_found() -> None:
    """Each tells its function's decorators: a table of a test's cases must not come along three thousand times."""
    table = "1, " * 100_000
    taken = ", ".join(["shop"] * 3000)
    text = f"@pytest.mark.parametrize('x', [{table}])\n@pytest.fixture\ndef test_all({taken}): ...\n"
    async with running() as reader:
        found = await reader.occurrences("python", text, "shop")
    assert len(found) == 3000
    assert all(one.function is not None and one.function.has_parameter for one in found)
    decorators = [Decorator("pytest.mark.parametrize"), Decorator("pytest.fixture")]
    assert all(one.function is not None and one.function.decorators == decorators for one in found)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("name='cart', scope='session'", "cart"),
        ('scope="session", name=r"cart"', "cart"),
        ("params=[User(name='bob')], ids=str", None),
        ("name=f'{cart}'", ""),
        ("name=NAME", ""),
        ("name=''", ""),
    ],
)
async def test_the_name_that_a_decorator_is_given_is_told(arguments: str, name: str | None) -> None:
    text = f"@label(name='x')\n@pytest.fixture({arguments})\ndef shop(): ...\n"
    async with running() as reader:
        (found,) = await reader.occurrences("python", text, "shop")
    assert found.function is not None
    assert found.function.decorators == [Decorator("label", "x"), Decorator("pytest.fixture", name)]
