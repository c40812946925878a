"""Arguments for any tool of the catalogue, made from its schema alone: tools that come later are met as well."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from serena_central.tools.catalogue import PATH_PARAMETERS, Tool
from serena_central.tools.families import CATALOGUE
from tests.support.scripted import CART

OPTIONAL = [tool.name for tool in CATALOGUE if tool.shown == "optional"]

TELLING = {
    "name_path": "Cart/total",
    "name_path_pattern": "Cart",
    "regex": "(Cart)",
    "substring_pattern": "Cart",
    "file_mask": "*.py",
    "language": "python",
} | dict.fromkeys(PATH_PARAMETERS, "cart.py")
"""Values that make a call mean something in `odd_project`."""

HUGE = "x" * 1_000_000

ODD: list[Any] = [
    None, True, -1, 0, 10**30, 0.5, "", " ", ".", "..", "/", "~", "*", "cart.py", "Cart/total", "Cart[0]", "(",
    "(.*)*$",
    "\x00", "\u202e", "é🙂", [], ["", 3], ["*"], {}, {"a": [{}]}, "name[99]", "../../etc/passwd", "/dev/zero",
    "no such file", "binary.py", "broken.py", "[", "{a,b", "**/*", "class", "folder", "pipe.py", "zero.py", "x" * 5000,
]  # fmt: skip


def odd_project(root: Path, huge: Path) -> Path:
    """A project with a file of every kind that is no good; `huge` is a large file to be linked into it."""
    (root / "folder").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "cart.py").write_text(CART)
    (root / "broken.py").write_bytes(b"class Caf\xe9:\n    text = '\xff\xfe'\n")
    (root / "binary.py").write_bytes(bytes(range(256)) * 8)
    (root / "strange.xyzzy").write_text("a language that no server speaks\n")
    os.mkfifo(root / "pipe.py")
    (root / "zero.py").symlink_to("/dev/zero")
    os.link(huge, root / "huge.py")
    return root


def huge_file(folder: Path) -> Path:
    """50 MB of Python."""
    path = folder / "huge.txt"
    line = "value = 'a very long list of things that a program was made to print'\n"
    path.write_text(line * (50_000_000 // len(line)))
    return path


def plausible(tool: Tool, **changes: Any) -> dict[str, Any]:
    """The required arguments of a tool, as good as they can be guessed, and `changes`."""
    properties: Mapping[str, Any] = tool.schema["properties"]
    return {name: TELLING.get(name, _like(properties[name])) for name in tool.schema.get("required", [])} | changes


def _like(schema: Mapping[str, Any]) -> Any:
    if "anyOf" in schema:
        return _like(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}[schema["type"]]


def takes(schema: Mapping[str, Any], kind: str) -> bool:
    """Whether a parameter's schema speaks of values of this JSON type."""
    return schema.get("type") == kind or any(takes(part, kind) for part in schema.get("anyOf", ()))


def odd_arguments(tool: Tool) -> st.SearchStrategy[dict[str, Any]]:
    """Any values under mostly known names."""
    anything = st.one_of(
        st.sampled_from(ODD),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
    )
    known = {name: _fitting(name, schema) | anything for name, schema in tool.schema["properties"].items()}
    return st.fixed_dictionaries({}, optional={**known, "nobody": anything})


def _fitting(name: str, schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    return st.just(TELLING.get(name, _like(schema)))
