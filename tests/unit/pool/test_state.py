"""The life of a run: every legal move, every illegal one refused, and no contradiction in between."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.pool.state import Cause, Facts, IllegalMove, Lifecycle, Move, RunState

D, C, I, U, X = RunState  # noqa: E741 - the five states, in the order of their life

LEGAL_MOVES = {
    (D, C): {"lease asked", "max calls", "person"},
    (C, I): {"initialized"},
    (C, D): {
        "start failed", "start deadline passed", "out of memory", "person", "settings changed", "not trusted",
        "shutdown",
    },
    (I, U): {"lease taken"},
    (U, I): {"lease returned"},
    (I, X): {
        "idle timeout", "memory budget", "max calls", "crash", "hang", "out of memory", "person", "settings changed",
        "not trusted", "shutdown",
    },
    (U, X): {"max calls", "crash", "hang", "out of memory", "person", "settings changed", "not trusted", "shutdown"},
    (X, D): {"process tree gone"},
    # Not moves: the number of leases changes within the state.
    (U, U): {"lease taken", "lease returned"},
    (X, X): {"lease returned"},
}  # fmt: skip
"""Written down a second time on purpose: the table is the design's, not the code's."""

ACTIONS = ("connect", "initialized", "fail", "take", "give_back", "expire", "reaped")


def life_in(state: RunState, leases: int = 1) -> tuple[Lifecycle, list[Move]]:
    """A run in that state; in use and expired with that many leases."""
    moves: list[Move] = []
    life = Lifecycle(clock=lambda: 7.0, on_move=moves.append)
    if state is not D:
        life.connect(Cause.LEASE_ASKED)
    if state in (I, U, X):
        life.initialized(42)
    if state in (U, X):
        for _ in range(leases):
            life.take()
    if state is X:
        life.expire(Cause.CRASH, "exit code -9")
    assert life.state is state
    moves.clear()
    return life, moves


@pytest.mark.parametrize(("source", "to"), list(product(RunState, RunState)))
def test_exactly_the_legal_steps_are_taken(source: RunState, to: RunState) -> None:
    leases = {C: 0, I: 0, D: 0, U: 1, X: 1}[to]
    pid = 42 if to in (I, U, X) else None
    for cause in Cause:
        life, moves = life_in(source, leases=2)
        before = life.facts
        if cause.value in LEGAL_MOVES.get((source, to), set()):
            life._update(to, cause, "why", leases=leases, calls=3, pid=pid)
            assert life.state is to
            assert moves == ([] if source is to else [Move(source, to, cause, "why", pid or before.pid)])
        else:
            with pytest.raises(IllegalMove):
                life._update(to, cause, "why", leases=leases, calls=3, pid=pid)
            assert life.facts is before
            assert moves == []


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(Cause)), max_size=60))
def test_whatever_is_asked_the_facts_never_contradict_each_other(steps: list[tuple[str, Cause]]) -> None:
    moves: list[Move] = []
    life = Lifecycle(clock=lambda: 0.0, on_move=moves.append)
    state, leases = D, 0
    for action, cause in steps:
        before = life.facts
        try:
            match action:
                case "connect" | "expire":
                    getattr(life, action)(cause)
                case "fail":
                    life.fail(cause, "why")
                case "initialized":
                    life.initialized(42)
                case _:
                    getattr(life, action)()
        except IllegalMove:
            assert life.facts is before
            continue
        # The model: what each action means, told in a line each.
        after = life.facts
        leases += {"take": 1, "give_back": -1}.get(action, 0) if before.state is not D else 0
        leases = 0 if after.state is D else leases
        assert after.leases == leases
        assert after.contradiction() is None
        if after.state is not state:
            assert after.cause is not None
            assert after.cause.value in LEGAL_MOVES[state, after.state]
            assert (moves[-1].source, moves[-1].to) == (state, after.state)
        state = after.state


def test_one_life_from_start_to_end_tells_each_move_once() -> None:
    moves: list[Move] = []
    life = Lifecycle(clock=lambda: 0.0, on_move=moves.append)
    life.connect(Cause.LEASE_ASKED)
    life.initialized(42)
    life.take()
    life.take()
    life.give_back()
    life.give_back()
    life.expire(Cause.IDLE_TIMEOUT, "unused for 300 s")
    life.reaped()
    assert [(move.source, move.to) for move in moves] == [(D, C), (C, I), (I, U), (U, I), (I, X), (X, D)]
    assert (life.facts.calls, life.facts.leases, life.facts.pid) == (2, 0, None)
    assert (life.facts.cause, life.facts.detail) == (Cause.TREE_GONE, "idle timeout: unused for 300 s")
    assert moves[-1].pid == 42


def test_an_expired_run_lets_its_calls_end_and_gives_no_new_lease() -> None:
    life, moves = life_in(X, leases=2)
    life.give_back()
    assert (life.state, life.facts.leases, life.facts.cause) == (X, 1, Cause.CRASH)
    with pytest.raises(IllegalMove):
        life.take()
    assert moves == []


def test_a_lease_that_outlives_its_process_has_nothing_to_give_back() -> None:
    life, _ = life_in(X, leases=1)
    life.reaped()
    life.give_back()
    assert life.facts.leases == 0


def test_no_more_leases_are_returned_than_were_taken() -> None:
    life, _ = life_in(I)
    with pytest.raises(IllegalMove):
        life.give_back()
    life, _ = life_in(X, leases=1)
    life.give_back()
    with pytest.raises(IllegalMove, match="-1 leases"):
        life.give_back()


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (Facts(U, leases=0, pid=1), "in_use with 0 leases"),
        (Facts(I, leases=1, calls=1, pid=1), "idle with 1 leases"),
        (Facts(X, leases=2, calls=1, pid=1), "2 leases of 1 calls"),
        (Facts(I, pid=None), "idle with pid None"),
        (Facts(C, pid=3), "connecting with pid 3"),
        (Facts(X, leases=0, pid=3), None),
    ],
)
def test_contradictions_are_named(facts: Facts, problem: str | None) -> None:
    assert facts.contradiction() == problem


def test_a_step_that_is_legal_by_the_table_but_contradicts_itself_changes_nothing() -> None:
    life, moves = life_in(I)
    with pytest.raises(IllegalMove, match="in_use with 0 leases"):
        life._update(U, Cause.LEASE_TAKEN, leases=0, pid=42)
    assert life.state is I
    assert moves == []


def test_leases_may_be_taken_only_while_idle_or_in_use() -> None:
    assert {state for state in RunState if life_in(state)[0].usable} == {I, U}
