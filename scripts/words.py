"""Finds words that this project replaces (`words.toml`) in texts that people and agents read: literals, pages, docs.

`python scripts/words.py [FILE…]` prints a line for each finding and exits with 1 if there is any. Identifiers and
comments are not checked; literals are read by `ast`, so a name in code never counts.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

CHECKED = ("serena_central/*.py", "dashboard/templates/*.html", "docs/*.md", "serena_central/*.md", "*.md")
"""Pathspecs of git, where * matches / as well."""

LEFT_ALONE = ("benchmarks/", "tests/")

_MARKUP = re.compile(r"\{[#%].*?[#%]\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


class Words:
    def __init__(self, data: Path = ROOT / "scripts/words.toml") -> None:
        words = tomllib.loads(data.read_text("utf-8"))["word"]
        self._words = [(re.compile(one["not"], re.IGNORECASE), one["but"], one.get("in") == "prose") for one in words]
        self._any = re.compile("|".join(f"(?:{one['not']})" for one in words), re.IGNORECASE)

    def findings(self, file: Path) -> Iterator[tuple[int, str, str]]:
        """Line (1-based), word and replacement, of each finding in a file."""
        text = file.read_text("utf-8")
        if not self._any.search(text):
            return
        code = file.suffix == ".py"
        for line, piece in literals(text) if code else prose(text):
            for pattern, instead, in_prose in self._words:
                if code and in_prose:
                    continue
                for found in pattern.finditer(piece):
                    yield line + piece.count("\n", 0, found.start()), found[0], instead


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of the string literals of a Python source, docstrings included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The text of a Markdown file or template, with its markup and code blanked out and its lines in place."""
    yield 1, _CODE.sub(_blank, _MARKUP.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def checked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=True)
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
