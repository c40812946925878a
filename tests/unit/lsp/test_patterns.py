"""The patterns of servers' entries: the catalogue's own are quick, everybody else's have a deadline."""

import re

import msgspec
import pytest

from serena_central.core import patterns
from serena_central.core.errors import ConfigError
from serena_central.core.patterns import BoundedMatcher, OwnMatcher, TooSlow
from serena_central.lsp.catalogue import Naming, Readiness, catalogue
from serena_central.lsp.catalogue.choices import Choices
from serena_central.lsp.globs import compiled, matches
from serena_central.lsp.patterns import LinePatterns, NamePatterns
from serena_central.lsp.readiness import ReadinessTracker


def test_the_catalogues_own_run_in_re_and_what_is_configured_has_a_deadline() -> None:
    shipped = catalogue().server("gopls")
    assert isinstance(NamePatterns(shipped.naming).scoped, OwnMatcher)
    assert isinstance(LinePatterns(shipped.readiness, "gopls").ails, OwnMatcher)
    assert isinstance(NamePatterns(Naming(scoped="(?P<scope>a)(?P<name>b)")).scoped, BoundedMatcher)
    assert isinstance(LinePatterns(Readiness(trouble="x", cured="y", pattern="z"), "s").ready, BoundedMatcher)


def test_imports_are_looked_for_in_hostile_files() -> None:
    names = NamePatterns(catalogue().server("typescript").naming, "typescript")
    assert names.imports is not None
    assert names.imports.spans("import { a } from 'b';\nconst c = 1;\nimport d = require('e')\n") == [(0, 21), (36, 59)]
    with pytest.raises(TooSlow, match=r"typescript naming.imports took longer than 0.\d+ s on 350,000 characters"):
        names.imports.spans("\nimport" * 50_000)
    assert names.imports.spans("import { a } from 'b';\n") == [(0, 21)], "another file's author is no reason"


def test_a_long_file_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "DEADLINE_S", 0.0)
    monkeypatch.setattr(patterns, "CHARACTER_S", 0.00001)
    names = NamePatterns(catalogue().server("typescript").naming, "typescript")
    assert names.imports is not None
    assert len(names.imports.spans("import { a } from 'b';\n" * 10_000)) == 10_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"naming": {"scoped": "("}}, "naming.scoped is not a valid regular expression"),
        ({"naming": {"scoped": "a"}}, "naming.scoped needs the group"),
        ({"naming": {"decorated": "a"}}, "naming.decorated needs the group (?P<name>…)"),
        ({"readiness": {"pattern": "[", "kind": "log"}}, "readiness.pattern is not a valid regular expression"),
        ({"readiness": {"trouble": "*"}}, "readiness.trouble is not a valid regular expression"),
    ],
)
def test_a_pattern_that_cant_be_used_is_a_problem_of_its_key(options: dict[str, object], says: str) -> None:
    choices = Choices(catalogue(), {"ty": options})
    (problem,) = choices.problems
    assert problem.key == "ty"
    assert says in problem.text
    server = choices.server_for("python")
    assert server == catalogue().server("ty")


def test_lines_of_a_server_end_no_pattern_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    tracker = ReadinessTracker(Readiness(trouble=r"((\w|\w\w)+)[0-9]"), "S")
    line = b'{"type": 3, "message": "' + b"a" * 200 + b'"}'
    tracker.hear("window/logMessage", msgspec.Raw(line))
    assert "S readiness.trouble is disabled" in tracker.bounded[0].trouble
    assert "S readiness.trouble" in caplog.text


@pytest.mark.parametrize("pattern", ["**a" * 30 + "b", "{a,aa,aaa}" * 40 + "b", "*a" * 30 + "b"])
def test_a_glob_that_can_be_met_in_many_ways_ends(pattern: str) -> None:
    assert not matches(pattern, "a" * 200 + "b/")
    assert isinstance(compiled(pattern), BoundedMatcher)


@pytest.mark.parametrize("pattern", ["**/*.{ts,tsx}", "**/*.py", "src/**/go.mod", "/abs/**/*.rs"])
def test_usual_globs_run_in_re(pattern: str) -> None:
    assert isinstance(compiled(pattern), OwnMatcher)


def test_the_catalogue_names_no_pattern_that_it_would_refuse() -> None:
    for spec in catalogue().servers.values():
        for source in (spec.naming.scoped, spec.naming.imports, spec.readiness.trouble, spec.readiness.pattern):
            re.compile(source)
            if source:
                BoundedMatcher(spec.name, source)
    with pytest.raises(ConfigError):
        NamePatterns(Naming(scoped="("))
