"""Finds words that this project replaces (`words.toml`) in texts that people and agents read: literals, pages, docs.

It also finds docstrings that name errors otherwise than in a block of `Raises:` at their end. Only a first sentence
may: to raise an error may be what a function is for.

`python scripts/words.py [FILE…]` prints a line for each finding, with what to write instead, and exits with 1 if there
is any. Code is not checked: of Python sources the string literals are, docstrings included, of pages the text, and
nowhere what stands between backquotes.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

CHECKED = ("serena_central/*.py", "dashboard/templates/*.html", "docs/*.md", "serena_central/*.md", "*.md")
"""Pathspecs of git, where * matches / as well."""

LEFT_ALONE = ("benchmarks/", "tests/")

_MARKUP = re.compile(r"\{[#%].*?[#%]\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


_RAISES = re.compile(r"(?<=\s)Raises(?: on entering)?:? (?:[A-Z]\w+|[a-z_]\w*(?:\.\w+)+)\b")


class Entry(NamedTuple):
    """One line of `words.toml`, and its phrases as one expression."""

    phrases: tuple[str, ...]
    instead: str
    in_prose: bool
    found: re.Pattern[str]
    allowed: re.Pattern[str] | None


class Words:
    def __init__(self, data: Path = ROOT / "scripts/words.toml") -> None:
        self.entries = [_entry(one) for one in tomllib.loads(data.read_text("utf-8"))["word"]]

    def findings(self, file: Path) -> Iterator[tuple[int, str, str]]:
        """Line (1-based), word and replacement, of each finding in a file."""
        text = file.read_text("utf-8")
        code = file.suffix == ".py"
        if code and "Raises" in text:
            yield from inline_raises(text)
        # A search for plain strings is a hundred times as fast as an expression, and few files need more than that.
        lower = " ".join(text.lower().split())
        entries = [one for one in self.entries if not (code and one.in_prose) and any(p in lower for p in one.phrases)]
        if not entries:
            return
        for line, piece in literals(text) if code else prose(text):
            for one in entries:
                allowed = [hit.span() for hit in one.allowed.finditer(piece)] if one.allowed else []
                for hit in one.found.finditer(piece):
                    if not any(start <= hit.start() and hit.end() <= end for start, end in allowed):
                        yield line + piece.count("\n", 0, hit.start()), " ".join(hit[0].split()), one.instead


def _entry(one: dict[str, object]) -> Entry:
    def phrases(key: str) -> tuple[str, ...]:
        held = one.get(key, [])
        assert isinstance(held, list)
        return tuple(str(phrase).lower() for phrase in held)

    allowed = phrases("allow")
    return Entry(
        phrases("not"),
        str(one["but"]),
        one.get("in") == "prose",
        _any_of(phrases("not")),
        _any_of(allowed) if allowed else None,
    )


def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the phrases as whole words, also broken over lines."""
    words = "|".join(r"\s+".join(map(re.escape, one.split())) for one in phrases)
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of the string literals of a Python source, docstrings included, without code between backquotes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, _CODE.sub(_blank, node.value)


def inline_raises(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, text and replacement of sentences in docstrings that name errors."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            for hit in _RAISES.finditer(text):
                line = node.body[0].lineno + text.count("\n", 0, hit.start())
                yield line, hit[0], "a block at the end: `Raises:`, then a line `Error: when.` for each"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The text of a Markdown file or template, with its markup and code blanked out and its lines in place."""
    yield 1, _CODE.sub(_blank, _MARKUP.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def checked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--deduplicate", "-z", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [one for one in listed.stdout.split("\0") if one and not one.startswith(LEFT_ALONE)]
    return [ROOT / one for one in names if (ROOT / one).is_file()]


def main(names: list[str]) -> int:
    words, found = Words(), 0
    for file in [Path(one) for one in names] or checked_files():
        for line, word, instead in words.findings(file):
            shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
            print(f"{shown}:{line}: {word!r}: write: {instead}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
