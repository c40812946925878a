"""The compiled regular expressions of a server's catalogue entry.

Those that the catalogue ships with and that meet names or lines run in `re`; one that a person or a project has
configured, and every one that meets whole texts, has a deadline.
"""

from collections.abc import Iterator
from functools import cache

from serena_central.core.errors import ConfigError
from serena_central.core.patterns import BoundedMatcher, FileMatcher, Matcher, OwnMatcher
from serena_central.lsp.catalogue import Naming, Readiness, ServerSpec, catalogue

_SCOPED = "naming.scoped"
_DECORATED = "naming.decorated"
_IMPORTS = "naming.imports"
_ANONYMOUS = "naming.anonymous"
_VALUES = "naming.values"
_GROUPS = {_SCOPED: frozenset({"scope", "name"}), _DECORATED: frozenset({"name"})}
"""The groups that a pattern must have."""


class NamePatterns:
    """Of `Naming`: what tells names apart. `imports` meets whole files, whose authors may be hostile."""

    def __init__(self, naming: Naming, server: str = "") -> None:
        self.separator = naming.separator
        self.scoped = matcher_of(f"{server} {_SCOPED}", naming.scoped)
        self.decorated = matcher_of(f"{server} {_DECORATED}", naming.decorated)
        self.imports = FileMatcher(f"{server} {_IMPORTS}", naming.imports) if naming.imports else None
        self.anonymous = matcher_of(f"{server} {_ANONYMOUS}", naming.anonymous)
        self.values = BoundedMatcher(f"{server} {_VALUES}", naming.values) if naming.values else None

        self.bounded = _bounded(self.scoped, self.decorated, self.anonymous, self.values)


class LinePatterns:
    """Of `Readiness`: what a server's lines are compared with."""

    def __init__(self, readiness: Readiness, server: str) -> None:
        self.ready = matcher_of(f"{server} readiness.pattern", readiness.pattern)
        self.ails = matcher_of(f"{server} readiness.trouble", readiness.trouble)
        self.cured = matcher_of(f"{server} readiness.cured", readiness.cured)

        self.bounded = _bounded(self.ready, self.ails, self.cured)


def check(spec: ServerSpec) -> None:
    """Raises ConfigError for the first pattern that can't be used."""
    for key, source in _patterns_of(spec):
        matcher = BoundedMatcher(key, source)
        groups = _GROUPS.get(key, frozenset[str]())
        if not matcher.groups >= groups:
            raise ConfigError(key, f"needs {' and '.join(f'the group (?P<{name}>…)' for name in sorted(groups))}")


def matcher_of(key: str, source: str) -> Matcher | None:
    """None for an empty pattern.

    Raises:
        ConfigError
    """
    if not source:
        return None
    return OwnMatcher(source) if source in _shipped() else BoundedMatcher(key, source)


@cache
def _shipped() -> frozenset[str]:
    return frozenset(source for spec in catalogue().servers.values() for _, source in _patterns_of(spec))


def _patterns_of(spec: ServerSpec) -> Iterator[tuple[str, str]]:
    readiness, naming = spec.readiness, spec.naming
    for key, source in (
        (_SCOPED, naming.scoped),
        (_DECORATED, naming.decorated),
        (_IMPORTS, naming.imports),
        (_ANONYMOUS, naming.anonymous),
        (_VALUES, naming.values),
        ("readiness.pattern", readiness.pattern),
        ("readiness.trouble", readiness.trouble),
        ("readiness.cured", readiness.cured),
    ):
        if source:
            yield key, source


def _bounded(*matchers: Matcher | None) -> tuple[BoundedMatcher, ...]:
    """Those that may get into trouble."""
    return tuple(matcher for matcher in matchers if isinstance(matcher, BoundedMatcher))
