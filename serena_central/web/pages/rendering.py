"""Renders templates to HTML: escaping, times, sizes and hostile text, in one place for all pages.

Everything that a template prints passes `visible` and is then escaped. It knows no page.
"""

import re
import time
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from serena_central.core.clock import utc
from serena_central.core.resources import dashboard_folder
from serena_central.core.words import counted

_KEPT = "\t\n"
_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in _KEPT} | {0x7F: "␡"}
_UNSEEN = {*range(0x80, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF}
_VISIBLE = (
    _CONTROLS
    | {code: f"⟨U+{code:04X}⟩" for code in _UNSEEN}
    | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # bytes of a path that are no UTF-8
)
"""Terminal codes, invisible characters and those that turn the direction of text, as something that can be seen."""

PATH_CHARS = 56
"""Of a path that stands in a table; more of it shows when the pointer rests on it, the whole on the page behind."""

PATH_PART_CHARS = 20
"""Of a path are not broken, as a rule."""

HOVER_CHARS = 150

WORD_CHARS = 16
"""Names of so many characters without punctuation stay in one piece; browsers break behind dashes."""

_LONG_WORD = re.compile(rf"[\s/-]*(?:[^\s/-]{{1,{WORD_CHARS - 1}}}[\s/-]+)*[^\s/-]{{1,{WORD_CHARS}}}[\s/-]*|[\s/-]+")

_BETWEEN_ROWS = re.compile(r"\s+(?=</?(?:li|ol|ul|tr|tbody|table)\b)")
"""Space that nobody sees, but that is a node of its own: where rows come in front, those merged into an open page would
be taken out and put back because of it, and lose what is marked in them."""

LONG_COUNT = 10_000
"""From here on counts on axes have units."""

_THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_STEPS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def visible(value: Any) -> Any:
    """Text as a page may show it; what is not text, or is HTML already, as it is."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else value.translate(_VISIBLE)


def moment(at: float | None) -> Markup:
    """Unix seconds as <time>: in UTC, which the page's script turns into how long ago that was, in words."""
    if at is None:
        return Markup("–")
    return Markup('<time datetime="{}">{}</time>').format(
        utc(at), time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    )


def written_moment(text: str) -> Markup | str:
    """A time as ISO 8601 has it as `moment` shows it; what is none as it is."""
    try:
        return moment(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        return text


def size(count: float) -> str:
    """Bytes for people."""
    for step, unit in _STEPS:
        if count >= step:
            return f"{count / step:.3g} {unit}" if count < 1000 * step else f"{count / step:.0f} {unit}"
    return f"{count:.0f} B"


def milliseconds(value: float) -> str:
    """A duration for people, from milliseconds."""
    if value < 1000:
        return f"{value:.2g} ms" if value < 10 else f"{value:.0f} ms"
    return f"{value / 1000:.3g} s" if value < 60_000 else duration(value / 1000)


def duration(seconds: float) -> str:
    """A span of time for people, in its two largest units."""
    whole = int(seconds)
    for step, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= step:
            rest = whole % step // below
            return f"{whole // step} {unit} {rest} {small}" if rest else f"{whole // step} {unit}"
    return f"{whole} s"


def percent(part: float, whole: float) -> float:
    """A share of a whole in percent, at most 100."""
    return round(min(100.0, 100 * part / whole), 1) if whole else 0.0


def number(value: int) -> str:
    """A whole number for people."""
    return f"{value:,}"


def count(value: float) -> str:
    """A count on an axis: short, so that it has room; small shares have their digits."""
    for step, unit in _THOUSANDS:
        if value >= max(step, LONG_COUNT):
            return f"{value / step:.3g} {unit}" if value < 1000 * step else f"{value / step:.0f} {unit}"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def bounded(text: str, chars: int) -> str:
    """Truncates a text to this many characters, with an ellipsis."""
    return text if len(text) <= chars else text[:chars] + "…"


def breakable(name: str, behind: str = "_.@") -> Markup:
    """A name that may be broken behind this punctuation, and within what is longer than any word of people."""
    words = re.split(f"(?<=[{behind}])", name)
    pieces = [piece for word in words for piece in _LONG_WORD.findall(word)]
    return Markup("<wbr>").join(visible(piece) for piece in pieces)


def _breakable_path(whole: str) -> Markup:
    """Browsers don't break behind slashes; a place to do so takes five bytes, so that there are few."""
    parts = [""]
    for name in re.split("(?<=/)", whole):
        if len(parts[-1]) >= PATH_PART_CHARS:
            parts.append("")
        parts[-1] += name
    return Markup("<wbr>").join(breakable(part, "@") for part in parts)


def slashed(text: str) -> Markup:
    """A sentence or value whose paths may be broken behind slashes."""
    return Markup("/<wbr>").join(visible(part) for part in text.split("/"))


def path(whole: str) -> Markup:
    """A path in a table: its end, which tells most, and on hover how it begins, as a rule all of it."""
    home = str(Path.home())
    short = f"~{whole[len(home) :]}" if whole == home or whole.startswith(home + "/") else whole
    if len(short) > PATH_CHARS:
        end = short[-PATH_CHARS:]
        short = "…" + (end[end.index("/") :] if "/" in end else end)
    if short == whole:
        return _breakable_path(whole)
    return Markup('<span title="{}">{}</span>').format(visible(bounded(whole, HOVER_CHARS)), _breakable_path(short))


_FILTERS: dict[str, Any] = {
    "moment": moment,
    "written_moment": written_moment,
    "size": size,
    "ms": milliseconds,
    "duration": duration,
    "number": number,
    "counted": counted,
    "path": path,
    "breakable": breakable,
    "slashed": slashed,
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(dashboard_folder() / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    return environment


def render(template: str, **context: Any) -> Markup:
    """HTML of a template below dashboard/templates."""
    html = _environment().get_template(template).render(context)
    return Markup(_BETWEEN_ROWS.sub("", html))  # noqa: S704 (escaped by the environment)
