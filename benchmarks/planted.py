"""What is planted into packages: symbols that nothing uses, and symbols that are used in ways that are easily missed.

Each plant is code for the end of a file, in Go a file of its own. Code that uses a planted symbol runs when the
package's suite imports the file, or is checked by its compiler: without the symbol the suite fails. `§` stands for a
number. In Python all names are private: the public ones of a package are refused whatever uses them.
"""

import random
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple


class Shape(NamedTuple):
    """A symbol by its name path, and the code that holds it."""

    name_path: str
    code: str


class Plant(NamedTuple):
    path: str
    name_path: str
    used: bool


_PY_HOLDER = "\n\nclass _Holder§:\n    kept = 1\n\n    def _laid_§(self):\n        return self.kept\n"
_PY_BASE = (
    "\n\nclass _Base§:\n    def go(self):\n        return self._laid_§()\n\n    def _laid_§(self):\n        return 0\n"
)

_UNUSED_PYTHON = (
    Shape("_laid_§", "\n\ndef _laid_§(value):\n    return value\n"),
    Shape(
        "_Laid§",
        "\n\nclass _Laid§:\n    def one(self):\n        return self.two()\n\n    def two(self):\n        return 1\n",
    ),
    Shape("_Holder§/_laid_§", f"{_PY_HOLDER}\n\nassert _Holder§().kept\n"),
    Shape("_laid_§", "\n\nasync def _laid_§(value):\n    # _laid_§ calls itself\n    return await _laid_§(value)\n"),
)
_USED_PYTHON = (
    Shape(
        "_laid_§",
        '\n\ndef _laid_§():\n    return 1\n\n\nassert getattr(__import__("sys").modules[__name__], "_laid_§")()\n',
    ),
    Shape(
        "_Holder§/_laid_§",
        f"{_PY_HOLDER}\n\ndef call_§(any_):\n    return any_._laid_§()\n\n\nassert call_§(_Holder§())\n",
    ),
    Shape("_Holder§/_laid_§", f'{_PY_HOLDER}\n\nassert getattr(_Holder§(), "_laid_§")()\n'),
    Shape(
        "_laid_§",
        "\n\ntable_§ = []\n\n\ndef entered_§(one):\n    table_§.append(one)\n    return one\n\n\n"
        "@entered_§\ndef _laid_§():\n    return 1\n\n\nassert table_§\n",
    ),
    Shape(
        "_Derived§/_laid_§",
        f"{_PY_BASE}\n\nclass _Derived§(_Base§):\n    def _laid_§(self):\n        return 1\n"
        "\n\nassert _Derived§().go()\n",
    ),
    Shape(
        "_Holder§/_laid_§",
        "\n\nclass _Holder§:\n    def __init__(self):\n        self._parts = ()\n\n    def go(self):\n"
        "        if self._parts:\n            return self._laid_§()\n        return 0\n\n    def _laid_§(self):\n"
        "        return 1\n\n\nholder_§ = _Holder§()\nholder_§._parts = (1,)\nassert holder_§.go()\n",
    ),
    Shape("_laid_§", '\n\ndef _laid_§():\n    return 1\n\n\nassert f"{_laid_§()}"\n'),
    Shape(
        "_Laid§",
        '\n\nclass _Laid§:\n    pass\n\n\ndef typed_§(one: "_Laid§"):\n    return one\n\n\n'
        'assert __import__("typing").get_type_hints(typed_§)\n',
    ),
)

_UNUSED_GO = (
    Shape("laid§", "\nfunc laid§(value int) int {\n\treturn value\n}\n"),
    Shape("laid§", "\ntype laid§ struct {\n\tvalue int\n}\n"),
    Shape(
        "holder§/laid§",
        "\ntype holder§ struct{}\n\nfunc (h *holder§) laid§() int {\n\treturn 1\n}\n\nvar _ = holder§{}\n",
    ),
    Shape("laid§", "\n// laid§ calls itself.\nfunc laid§(value int) int {\n\treturn laid§(value - 1)\n}\n"),
)
_GO_HOLDER = "\ntype holder§ struct{}\n\nfunc (holder§) Laid§() int { return 1 }\n"
_USED_GO = (
    Shape("holder§/Laid§", f"{_GO_HOLDER}\nvar _ interface{{ Laid§() int }} = holder§{{}}\n"),
    Shape(
        "laid§",
        '\nfunc laid§() int { return 1 }\n\nvar table§ = map[string]func() int{"one": laid§}\n\nvar _ = table§\n',
    ),
    Shape(
        "holder§/Laid§",
        f'\nimport "reflect"\n{_GO_HOLDER}\nfunc init() {{\n\t'
        'if !reflect.ValueOf(holder§{}).MethodByName("Laid§").IsValid() {\n\t\tpanic("Laid§")\n\t}\n}\n',
    ),
    Shape(
        "holder§/String",
        '\nimport "fmt"\n\ntype holder§ struct{}\n\nfunc (holder§) String() string { return "one" }\n\n'
        'func init() {\n\tif fmt.Sprint(holder§{}) != "one" {\n\t\tpanic("String")\n\t}\n}\n',
    ),
    Shape(
        "holder§/Laid§", f"{_GO_HOLDER}\ntype outer§ struct{{ holder§ }}\n\nfunc init() {{ _ = outer§{{}}.Laid§() }}\n"
    ),
    Shape(
        "holder§/Laid§",
        f'\nimport (\n\t"io"\n\t"text/template"\n)\n{_GO_HOLDER}\nfunc init() {{\n\t'
        'err := template.Must(template.New("").Parse("{{.Laid§}}")).Execute(io.Discard, holder§{})\n\t'
        "if err != nil {\n\t\tpanic(err)\n\t}\n}\n",
    ),
    Shape(
        "laid§",
        "\nconst (\n\tfirst§ = iota\n\tlaid§\n\tthird§\n)\n\nvar _ = [1]int{}[laid§-1]\n\nvar _ = third§ + first§\n",
    ),
    Shape(
        "laid§",
        "\ntype laid§ = int\n\nfunc typed§(one interface{}) bool {\n\t_, is := one.(laid§)\n\treturn is\n}\n"
        "\nvar _ = typed§\n",
    ),
)

_UNUSED_TS = (
    Shape("laid§", "\nfunction laid§(value: number): number {\n  return value;\n}\n"),
    Shape("Laid§", "\nclass Laid§ {\n  value = 1;\n  one(): number {\n    return this.value;\n  }\n}\n"),
    Shape(
        "Holder§/laid§",
        "\nclass Holder§ {\n  kept = 1;\n  laid§(): number {\n    return this.kept;\n  }\n}\n"
        'if (!new Holder§().kept) throw new Error("kept");\n',
    ),
    Shape("laid§", "\n// laid§ calls itself\nconst laid§ = (value: number): number => laid§(value - 1);\n"),
)
_TS_HOLDER = "\nclass Holder§ {\n  laid§(): number {\n    return 1;\n  }\n}\n"
_USED_TS = (
    Shape(
        "laid§",
        "\nfunction laid§(): number {\n  return 1;\n}\nconst table§: any = { laid§ };\n"
        'if (!table§["laid§"]()) throw new Error("laid");\n',
    ),
    Shape(
        "Holder§/laid§", f'{_TS_HOLDER}const any§: any = new Holder§();\nif (!any§.laid§()) throw new Error("laid");\n'
    ),
    Shape(
        "Holder§/laid§",
        f"\ninterface Shape§ {{\n  laid§(): number;\n}}{_TS_HOLDER}const shape§: Shape§ = new Holder§();\n"
        'if (!shape§.laid§()) throw new Error("laid");\n',
    ),
    Shape(
        "Laid§",
        '\ntype Laid§ = { a: number };\nconst value§: Laid§ = { a: 1 };\nif (!value§.a) throw new Error("a");\n',
    ),
    Shape(
        "Kind§/Laid§", '\nenum Kind§ {\n  A = 0,\n  Laid§ = 1,\n}\nif (Kind§[1] !== "Laid§") throw new Error("laid");\n'
    ),
    Shape(
        "Holder§/laid§",
        "\nclass Holder§ {\n  get laid§(): number {\n    return 1;\n  }\n}\nconst { laid§: taken§ } = new Holder§();\n"
        'if (!taken§) throw new Error("laid");\n',
    ),
    Shape("Holder§/laid§", f'{_TS_HOLDER}if (!("laid§" in new Holder§())) throw new Error("laid");\n'),
    Shape(
        "Derived§/laid§",
        "\nabstract class Base§ {\n  go(): number {\n    return this.laid§();\n  }\n  abstract laid§(): number;\n}\n"
        "class Derived§ extends Base§ {\n  laid§(): number {\n    return 1;\n  }\n}\n"
        'if (!new Derived§().go()) throw new Error("laid");\n',
    ),
)

_SHAPES: dict[str, tuple[Sequence[Shape], Sequence[Shape]]] = {
    "py": (_UNUSED_PYTHON, _USED_PYTHON),
    "go": (_UNUSED_GO, _USED_GO),
    "ts": (_UNUSED_TS, _USED_TS),
}
"""Suffix → shapes of unused symbols, and of used ones."""


def plant(root: Path, files: Collection[str], each: int, seed: int) -> list[Plant]:
    """Plants `each` unused and as many used symbols into some of the files, all of which the package's suite loads."""
    draw, kind = random.Random(seed), next(iter(files)).rpartition(".")[2]
    planted: list[Plant] = []
    for number in range(2 * each):
        used = number % 2 == 1
        shapes = _SHAPES[kind][used]
        shape = shapes[number // 2 % len(shapes)]
        path, code = draw.choice(sorted(files)), shape.code.replace("§", str(number))
        if kind == "go":
            folder = Path(path).parent
            code = f"package {_package_of((root / path).read_text(encoding='utf-8'))}\n{code}"
            path = (folder / f"planted_{number}.go").as_posix()
        with (root / path).open("a", encoding="utf-8") as file:
            file.write(code)
        planted.append(Plant(path, shape.name_path.replace("§", str(number)), used))
    return planted


def _package_of(text: str) -> str:
    match = re.search(r"^package (\w+)", text, re.MULTILINE)
    assert match is not None
    return match[1]
