"""States of a transaction.

                                      EndTxn(commit)                 markers written
               AddPartitionsToTxn   ┌──────────────> PrepareCommit ──────────────> CompleteCommit
    Empty ───────────────────> Ongoing                                                 │ │
      ^ ^                        ^  └──────────────> PrepareAbort ───────────────> CompleteAbort
      │ │                        │    EndTxn(abort), time-out,  ^                      │ │
      │ │                        │    a new InitProducerId      │                      │ │
      │ │                        └──────── AddPartitionsToTxn ──┼──────────────────────┘ │
      │ └───────────────────────────────── InitProducerId ──────┼────────────────────────┤
      └── created by InitProducerId                             │                        │
                          with transaction.version 2, EndTxn(abort) of nothing <─────────┤
                                                                                         v
                                                               expired, from Empty too: Dead

Every arrow is a record, and is taken when that record is committed. Dead is never written: its
record is a tombstone. PrepareEpochFence is the state in which an older producer is being fenced;
here it begins and ends in one event loop iteration, as a part of the transition to PrepareAbort. It
exists because clients may list transactions in it.

Source: Kafka, TransactionState.java; KIP-98, KIP-890.
"""

from enum import IntEnum


class TransactionState(IntEnum):
    """Values are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Name in requests and responses: CompleteCommit."""
        return _LABELS[self]

    @property
    def may_expire(self) -> bool:
        """Whether a transactional id in this state may expire."""
        return self in _RESTING

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and markers are being written."""
        return self is TransactionState.PREPARE_COMMIT or self is TransactionState.PREPARE_ABORT

    def may_follow(self, previous: "TransactionState") -> bool:
        """Whether there is an arrow from `previous` to this state."""
        return previous in _PREVIOUS[self]


_LABELS = {
    state: "".join(word.capitalize() for word in state.name.split("_"))
    for state in TransactionState
}

BY_LABEL = {label: state for state, label in _LABELS.items()}
"""States by name."""

_RESTING = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    }
)

_PREVIOUS = {
    TransactionState.EMPTY: _RESTING,
    TransactionState.ONGOING: _RESTING | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _RESTING
    | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _RESTING,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
