"""Builders of answers. They are made by the functions that make the server's own, so that no shape can drift apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.text import Position, Range
from serena_central.projects.navigation.symbol_views import SymbolView
from serena_central.symbols.symbol import kind_numbers
from serena_central.tools.answer import MAX_CHARS, Answer, fit
from serena_central.tools.guidance import onboarding_state
from serena_central.tools.symbol_answers import as_json


def symbol(
    name_path: str,
    kind: str,
    relative_path: str,
    *,
    lines: tuple[int, int] = (0, 0),
    column: int = 0,
    body: str | None = None,
    info: str | None = None,
    children: Sequence[SymbolView] = (),
) -> SymbolView:
    """A symbol of an answer. `kind` is LSP's name of it ("Class"); `lines` are its first and last, 0-based."""
    (number,) = kind_numbers([kind])
    return SymbolView(
        name=name_path.rpartition("/")[2],
        name_path=name_path,
        kind=number,
        path=relative_path,
        range=Range(Position(lines[0], column), Position(lines[1], 0)),
        body=body,
        info=info,
        children=list(children),
    )


def found(*symbols: SymbolView, notes: Sequence[str] = ()) -> Answer:
    """What find_symbol answers: these symbols, with their bodies where they have one."""
    return answered([as_json(one) for one in symbols], notes=notes)


def nothing_found(*, notes: Sequence[str] = ()) -> Answer:
    """What find_symbol answers when nothing fits."""
    return found(notes=notes)


def onboarding_done(*memories: str) -> Answer:
    """What check_onboarding_performed answers where these memories are."""
    return answered(onboarding_state(memories))


def onboarding_missing() -> Answer:
    """What check_onboarding_performed answers where there are no memories."""
    return answered(onboarding_state(()))


def grouped(by_project: Mapping[str, Answer]) -> Answer:
    """What a tool answers that was called on several projects, by their names."""
    values: dict[str, Any] = {name: _value(answer) for name, answer in by_project.items()}
    notes = [line for answer in by_project.values() for block in answer.blocks[1:] for line in block.splitlines()]
    return _answer(values, notes, of_several=True)


def answered(value: Any, *, notes: Sequence[str] = ()) -> Answer:
    """What a tool answers that returned `value`: a text as it is, anything else as JSON. A note is one line."""
    return _answer({"": value}, notes, of_several=False)


def _answer(values: Mapping[str, Any], notes: Sequence[str], *, of_several: bool) -> Answer:
    fitted = fit(values, MAX_CHARS, grouped=of_several)
    return Answer([fitted.text, "\n".join(notes)] if notes else [fitted.text], fitted.shortened, fitted.data)


def _value(answer: Answer) -> Any:
    try:
        return from_json(answer.blocks[0])
    except msgspec.DecodeError:
        return answer.blocks[0]
