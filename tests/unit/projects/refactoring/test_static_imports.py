"""Imports of a name that overloads share, when one of these is renamed."""

from serena_central.core.text import Position, Range, Text
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.editing.rename import Rename
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.refactoring.static_imports import with_both_imported
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import FileSymbols, Symbol

OV = "class Ov {\n  static int calc(int n) { return n; }\n  static int calc(String s) { return 1; }\n}\n"
BOTH = "import static Ov.calc;\nclass Both {\n  int a = calc(1);\n  int b = calc(null);\n}\n"
FIRST = "import static Ov.calc;\nclass First {\n  int a = calc(1);\n}\n"
OTHER = "import static Ov.calc;\r\nclass Other {\r\n  int b = calc(null);\r\n}\r\n"
"""Uses the overload alone that keeps its name."""


def test_an_import_is_kept_for_overloads_that_keep_their_name_and_added_for_the_renamed() -> None:
    files = {"Ov.java": OV, "Both.java": BOTH, "First.java": FIRST, "Other.java": OTHER}
    texts = {name: Text(text) for name, text in files.items()}
    declared = _place(1, 13)
    proposed = {
        "Ov.java": [declared],
        "Both.java": [_place(0, 17), _place(2, 10)],
        "First.java": [_place(0, 17), _place(2, 10)],
        "Other.java": [_place(0, 17)],
    }
    rename = Rename({path: [TextEdit(span, "sum") for span in spans] for path, spans in proposed.items()}, [])
    others = [PlaceInCode("Both.java", _place(3, 10)), PlaceInCode("Other.java", _place(2, 10))]
    container = Symbol("Ov", 5, -1, None, 0, 0, 3, 1, 0, 6)
    methods = [Symbol("calc", 6, 0, at, at + 1, 2, at + 1, 40, at + 1, 13) for at in (0, 1)]
    both = with_both_imported(rename, Hit("Ov.java", FileSymbols((container, *methods)), 1), others, texts, "sum")
    result = {path: apply_edits(texts[path], edits) for path, edits in both.edits.items()}
    assert result == {
        "Ov.java": OV.replace("calc(int", "sum(int"),
        "Both.java": BOTH.replace("calc;", "calc;\nimport static Ov.sum;").replace("calc(1)", "sum(1)"),
        "First.java": FIRST.replace("calc", "sum"),
    }
    alone = with_both_imported(rename, Hit("Ov.java", FileSymbols((container, methods[0])), 1), others, texts, "sum")
    assert alone == rename


def _place(line0: int, column: int) -> Range:
    return Range(Position(line0, column), Position(line0, column + len("calc")))
