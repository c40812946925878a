"""Fits an answer into its limit: the longest form that fits, after a sentence that says what it leaves out."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.quoting import quoted, visible_json
from serena_central.tools.answer import MAX_CHARS, Form, Shaped
from serena_central.tools.listing import Listing

_SURROGATES = re.compile("[\ud800-\udfff]")


class _Json(str):
    """A text that is JSON. What is cut out of it is none, and a plain string."""

    __slots__ = ()


class _Fitted(NamedTuple):
    text: str
    says: str = ""
    """The sentence before it that says what it leaves out; empty for a complete answer."""
    shown: range = range(0)
    """Of a list, the items that stand in it in their usual form."""


class Fitted(NamedTuple):
    text: str
    """The sentences that say what the answer leaves out, one a line, and the answer."""
    shortened: bool
    data: str | None
    """The answer alone, if it is JSON."""


def fit(results: Mapping[str, Any], limit: int, *, grouped: bool) -> Fitted:
    """An answer of `limit` characters at most.

    `results` maps project name → what the tool returned there; without `grouped` it has one entry, which stands bare.
    Of several, those that are short enough leave their room to the others. Only the sentence that says what was left
    out may pass a limit that is shorter than itself.
    """
    limit = min(limit, MAX_CHARS)
    if grouped:
        fitted = _fit_groups(results, limit)
        says = [f"{quoted(name)}: {one.says}" for name, one in fitted.items() if one.says]
        text = _Json("{" + ",".join(f"{_encode(name)}:{one.text}" for name, one in fitted.items()) + "}")
    else:
        fitted = {name: _fitted(result, limit, limit, bare=True) for name, result in results.items()}
        (one,) = fitted.values()
        says, text = [one.says] if one.says else [], one.text
    for name, result in results.items():
        if isinstance(result, Listing) and fitted[name].shown:
            result.shown(fitted[name].shown.start, fitted[name].shown.stop)
    return Fitted("\n".join([*says, text]), bool(says), str(text) if isinstance(text, _Json) else None)


def _fit_groups(results: Mapping[str, Any], limit: int) -> dict[str, _Fitted]:
    """Each of several in its share; those that are short enough leave their room to the others."""
    room = limit - sum(len(_encode(name)) + 2 for name in results) - 2
    whole = {name: one for name, result in results.items() if (one := _whole(result)) is not None}
    if len(whole) == len(results) and sum(len(one.text) for one in whole.values()) <= room:
        return whole
    share = room // len(results)
    short = {name: one for name, one in whole.items() if len(one.text) <= share}
    room = (room - sum(len(one.text) for one in short.values())) // max(len(results) - len(short), 1)
    return {
        name: short[name] if name in short else _fitted(result, room, limit, bare=False)
        for name, result in results.items()
    }


def _whole(result: Any) -> _Fitted | None:
    """The full form; None where that is certainly too long, or the caller asked for a page."""
    match result:
        case Shaped():
            return _Fitted(_encode(result.forms[0].build()))
        case Listing():
            full = next((form for form in result.forms if not form.says), None)
            return None if full is None else _Fitted(_encode(full.build()), shown=range(result.total))
        case _:
            return _Fitted(_encode(result))


def _fitted(result: Any, room: int, limit: int, *, bare: bool) -> _Fitted:
    """In `room` characters. `bare`: a string stands for itself, and need not be JSON."""
    if isinstance(result, Listing):
        fitted = _first_that_fits(result.forms, result.narrow, room, limit, bare=bare)
        if fitted is None:
            return _page(result, room, bare=bare)
        return fitted if fitted.says else fitted._replace(shown=range(result.total))
    forms, narrow = result if isinstance(result, Shaped) else ([Form("", lambda: result)], "Narrow the request.")
    fitted = _first_that_fits(forms, narrow, room, limit, bare=bare)
    if fitted is not None:
        return fitted
    last = _in_form(forms[-1], narrow, limit, bare=bare)
    # The sentence alone keeps no form from fitting.
    return last if last.says and len(last.text) <= room else _cut(last.text, narrow, room, bare=bare)


def _page(listing: Listing, room: int, *, bare: bool) -> _Fitted:
    text, says, shown = listing.fitting(room, lambda value: _render(value, bare=bare))
    if len(text) <= room:
        return _Fitted(text, says, shown)
    # One item that is too long, which is not shown in its usual form.
    item = f"{listing.noun} {shown.start + 1}"
    if listing.brief is not None:
        brief = _render(listing.brief(shown.start, shown.stop), bare=bare)
        note = f"{says} Shortened: {item} has {len(text)} characters."
        if len(brief) + len(note) < room:
            return _Fitted(brief, note)
    note = f"{says} Truncated: {item} has {len(text)} characters."
    kept = text[: max(room - len(note) - 1, 0)]
    return _Fitted(kept if bare else _encode(kept), note)


def _first_that_fits(forms: Sequence[Form], narrow: str, room: int, limit: int, *, bare: bool) -> _Fitted | None:
    for form in forms:
        fitted = _in_form(form, narrow, limit, bare=bare)
        if len(fitted.text) + len(fitted.says) + bool(fitted.says) <= room:
            return fitted
    return None


def _in_form(form: Form, narrow: str, limit: int, *, bare: bool) -> _Fitted:
    says = f"The full answer exceeds {limit} characters; it is shown {form.says}. {narrow}" if form.says else ""
    return _Fitted(_render(form.build(), bare=bare), says)


def _cut(text: str, narrow: str, room: int, *, bare: bool) -> _Fitted:
    says = f"Even the shortest form of the answer has {len(text)} characters; it is truncated to {room}. {narrow}"
    kept = text[: max(room - len(says) - 1, 0)]
    return _Fitted(kept if bare else _encode(kept), says)


def _render(value: Any, *, bare: bool) -> str:
    return _sendable(value) if bare and isinstance(value, str) else _encode(value)


def _encode(value: Any) -> _Json:
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(_sendable(value), ensure_ascii=False, separators=(",", ":"))
    return _Json(visible_json(text))


def _sendable(value: Any) -> Any:
    """The same with U+FFFD for lone surrogates: they stand for bytes that are no text, which no answer can carry."""
    match value:
        case str():
            return value if value.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
        case Mapping():
            return {_sendable(key): _sendable(part) for key, part in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [_sendable(part) for part in cast("Sequence[Any]", value)]
        case _:
            return value
