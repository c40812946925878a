import pytest

from serena_central.lsp.globs import matches


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("**/*.py", "/abs/c.py", True),
        ("*.py", "a/b.py", False),
        ("**", "a/b", True),
        ("src/**", "src/a/b", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("**/*.{ts,tsx}", "x/y.tsx", True),
        ("**/*.{ts,tsx}", "x/y.jsx", False),
        ("{a,b/{c,d}}", "b/d", True),
        ("x[0-9].py", "x5.py", True),
        ("x[!0-9].py", "x5.py", False),
        ("a,b.py", "a,b.py", True),
        ("a+b(c).py", "a+b(c).py", True),
        ("[z-a]", "[z-a]", True),
        ("}[", "}[", True),
        ("{open", "{open", True),
    ],
)
def test_patterns_match_whole_paths(pattern: str, path: str, *, expected: bool) -> None:
    assert matches(pattern, path) is expected
