"""Which state may follow which."""

import pytest

from broker.transactions.coordinator.transaction_state import BY_LABEL, TransactionState

S = TransactionState

# Kafka's TransactionState.VALID_PREVIOUS_STATES.
ARROWS = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {
        S.ONGOING,
        S.PREPARE_EPOCH_FENCE,
        S.EMPTY,
        S.COMPLETE_COMMIT,
        S.COMPLETE_ABORT,
    },
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_ABORT, S.COMPLETE_COMMIT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}


@pytest.mark.parametrize("state", S)
def test_arrows_are_kafkas(state: S) -> None:
    assert {previous for previous in S if state.may_follow(previous)} == ARROWS[state]


def test_names_are_kafkas() -> None:
    assert [state.label for state in S] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert all(BY_LABEL[state.label] is state for state in S)


def test_kinds() -> None:
    assert {s for s in S if s.may_expire} == {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}
    assert {s for s in S if s.is_prepared} == {S.PREPARE_COMMIT, S.PREPARE_ABORT}
