"""States of an election: which may follow which."""

import itertools

import pytest

from broker.coordinator.election import (
    TRANSITIONS,
    Election,
    ElectionState,
    IllegalElectionTransitionError,
)

S = ElectionState

DRAWN = {
    (S.INITIAL, S.LOADING),
    (S.INITIAL, S.CLOSED),
    (S.LOADING, S.ACTIVE),
    (S.LOADING, S.FAILED),
    (S.LOADING, S.CLOSED),
    (S.ACTIVE, S.FAILED),
    (S.ACTIVE, S.CLOSED),
    (S.FAILED, S.CLOSED),
}
"""The arrows of the module's drawing."""

WAYS = {
    S.INITIAL: (),
    S.LOADING: (S.LOADING,),
    S.ACTIVE: (S.LOADING, S.ACTIVE),
    S.FAILED: (S.LOADING, S.FAILED),
    S.CLOSED: (S.CLOSED,),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(S, S)))
def test_only_the_transitions_drawn_are_taken(before: S, after: S) -> None:
    election = Election(7, 3)
    for state in WAYS[before]:
        election.move_to(state)
    assert election.state is before
    if (before, after) in DRAWN:
        election.move_to(after)
        assert election.state is after
    else:
        with pytest.raises(IllegalElectionTransitionError, match="partition 7"):
            election.move_to(after)
        assert election.state is before


def test_no_state_is_left_out() -> None:
    assert TRANSITIONS.keys() == set(S)


def test_loading_ends_with_the_load() -> None:
    election = Election(0, 0)
    assert election.is_loading
    election.move_to(S.LOADING)
    assert election.is_loading
    election.move_to(S.ACTIVE)
    assert not election.is_loading
