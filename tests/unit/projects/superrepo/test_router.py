"""Points for names, hints, concerns and languages, by whole words."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.projects.superrepo.router import Routed, Score, is_certain, route

MODULES = [
    Routed("chariot", ["go", "typescript"], ["backend", "frontend", "ui"]),
    Routed("chariot-aegis-capabilities", ["python"], ["security", "capability"]),
    Routed("nebula", ["go"], ["cloud", "aws"]),
    Routed("noseyparker", ["rust"], ["secret", "detection"]),
    Routed("janus", ["go"], ["workflow", "framework"]),
]
HINTS = {
    "react": ["chariot"],
    "vql": ["chariot-aegis-capabilities"],
    "cloud scanning": ["nebula"],
    "secret": ["noseyparker"],
}


def best(text: str) -> Score | None:
    scores = route(text, MODULES, HINTS)
    return scores[0] if scores else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Find Asset class in chariot backend", Score("chariot", 25, ("name chariot +20", "concern backend +5"))),
        ("Fix React component rendering", Score("chariot", 10, ("hint react +10",))),
        (
            "Update VQL capability",
            Score("chariot-aegis-capabilities", 15, ("hint vql +10", "concern capability +5")),
        ),
        ("Debug cloud scanning issue", Score("nebula", 15, ("hint cloud scanning +10", "concern cloud +5"))),
        (
            "Fix secret detection",
            Score("noseyparker", 20, ("hint secret +10", "concern secret +5", "concern detection +5")),
        ),
        ("Generic code question", None),
        ("", None),
    ],
)
def test_words_find_their_module(text: str, expected: Score | None) -> None:
    assert best(text) == expected


def test_words_count_whole() -> None:
    assert best("search google for a cargo") is None
    assert best("written in Go.") == Score("chariot", 3, ("language go +3",))


@pytest.mark.parametrize(
    "text", ["chariot-aegis-capabilities", "Chariot_Aegis capabilities", "CHARIOT AEGIS CAPABILITIES"]
)
def test_dashes_underscores_and_case_are_alike(text: str) -> None:
    found = {score.module: score.points for score in route(text, MODULES, {})}
    assert found == {"chariot-aegis-capabilities": 20}


NEIGHBOURS = [
    Routed("risk", ["python"], ["models"]),
    Routed("risk-models", ["go"], ["scores"]),
    Routed("janus", ["go"], ["framework"]),
    Routed("janus-framework", ["c++", "typescript"]),
]


@pytest.mark.parametrize(
    ("text", "first", "points"),
    [
        ("rename Score in risk-models", "risk-models", {"risk-models": 25}),
        ("the risk of it", "risk", {"risk": 20}),
        ("move it from risk to risk models", "risk-models", {"risk-models": 20, "risk": 20}),
        ("janus_framework", "janus-framework", {"janus-framework": 20}),
        ("Janus, a framework", "janus", {"janus": 25}),
        ("risk risk-models janus janus-framework", "janus-framework", dict.fromkeys(one.name for one in NEIGHBOURS)),
        ("golang", "risk-models", {"risk-models": 3, "janus": 3}),
        ("the score", "risk-models", {"risk-models": 5}),
        ("some C++ code", "janus-framework", {"janus-framework": 3}),
        ("ts", "janus-framework", {"janus-framework": 3}),
    ],
)
def test_the_longest_name_comes_first_and_takes_its_words(text: str, first: str, points: dict[str, int | None]) -> None:
    aliases = {"go": ["golang"], "c++": ["cpp"], "typescript": ["ts"]}
    scores = route(text, NEIGHBOURS, {}, aliases)
    assert scores[0].module == first
    found = {score.module: score.points for score in scores}
    assert found == {name: 20 if worth is None else worth for name, worth in points.items()}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        *(("all assets", "asset"), ("an asset", "assets"), ("capabilities", "capability"), ("two boxes", "box")),
        *(("a class", "classes"), ("cloud scans", "cloud scan"), ("redis", "redis"), ("the status", "status")),
    ],
)
def test_hints_fit_in_singular_and_plural(text: str, hint: str) -> None:
    assert route(text, [Routed("one")], {hint: ["one"]}) == [Score("one", 10, (f"hint {hint} +10",))]


def test_what_only_begins_like_a_hint_is_none() -> None:
    assert route("new assemblies for a bus", [Routed("one")], {"assembler": ["one"], "bu": ["one"]}) == []


@pytest.mark.parametrize(
    ("points", "certain"), [([20], True), ([20, 15], True), ([20, 16], False), ([20, 20], False), ([], False)]
)
def test_an_edit_needs_a_clear_lead(points: Sequence[int], certain: bool) -> None:
    assert is_certain([Score(str(at), one, ()) for at, one in enumerate(points)]) is certain


@given(st.text(max_size=60))
def test_any_text_gives_points_in_order_and_none_of_zero(text: str) -> None:
    scores = route(text, MODULES, HINTS)
    points = [score.points for score in scores]
    assert points == sorted(points, reverse=True)
    assert all(points)
    assert all(score.reasons for score in scores)
