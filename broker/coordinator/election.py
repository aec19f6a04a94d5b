"""The life cycle of one election to lead a partition of a coordinator's topic.

    INITIAL ──> LOADING ──> ACTIVE ──────> CLOSED     resigned, or elected in a newer epoch
       │           │           │             ^
       │           │           └─> FAILED ───┤        the log failed: memory may differ from it
       │           └─────────────> FAILED ───┤        the partition cannot be read
       └───────────┴─────────────────────────┘

    state     meaning                                       clients get
    INITIAL   elected, queued for loading                   COORDINATOR_LOAD_IN_PROGRESS
    LOADING   the partition is read, or waits for its end   COORDINATOR_LOAD_IN_PROGRESS
              to be committed
    ACTIVE    the shard serves                              (answers)
    FAILED    not served until there is another election    NOT_COORDINATOR
    CLOSED    over                                          NOT_COORDINATOR

Each election goes one way only. To be elected again, in the same leader epoch (the log directory
was moved, the shard has failed, a load is tried again) or in a newer one, is another election. So a
caller that resumes after a wait compares the object: what was loaded for another election never
serves.

Source: Kafka, CoordinatorRuntime.java (CoordinatorState), where a context goes back to LOADING.
"""

from enum import Enum
from typing import Final
from uuid import UUID


class ElectionState(Enum):
    """See the module."""

    INITIAL = "initial"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


TRANSITIONS: Final = {
    ElectionState.INITIAL: frozenset({ElectionState.LOADING, ElectionState.CLOSED}),
    ElectionState.LOADING: frozenset(
        {ElectionState.ACTIVE, ElectionState.FAILED, ElectionState.CLOSED}
    ),
    ElectionState.ACTIVE: frozenset({ElectionState.FAILED, ElectionState.CLOSED}),
    ElectionState.FAILED: frozenset({ElectionState.CLOSED}),
    ElectionState.CLOSED: frozenset[ElectionState](),
}
"""By state, the states that may follow."""


class IllegalElectionTransitionError(RuntimeError):
    """An election was driven where it cannot go; a mistake of the runtime, never of a client."""


class Election:
    """One election, which is its own token.

    Attributes:
        partition_index: Of the coordinator's topic.
        leader_epoch: In which this broker leads the partition.
        topic_id: Of the topic, as the image named it then; a topic of that name that is created
            again is another one. None: not in the image.
        failures: Loads of the same epoch before this one that have failed, one after the other.
        waits: How often its load has waited for the log end to be committed.
        is_waiting: It waits for that now: for replicas of other brokers.
    """

    __slots__ = (
        "_state",
        "failures",
        "is_waiting",
        "leader_epoch",
        "partition_index",
        "topic_id",
        "waits",
    )

    def __init__(
        self,
        partition_index: int,
        leader_epoch: int,
        topic_id: UUID | None = None,
        *,
        failures: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.topic_id = topic_id
        self.failures = failures
        self.waits = 0
        self.is_waiting = False
        self._state = ElectionState.INITIAL

    @property
    def state(self) -> ElectionState:
        """Its current state."""
        return self._state

    @property
    def is_loading(self) -> bool:
        """Whether its shard is not loaded yet."""
        return self._state is ElectionState.LOADING or self._state is ElectionState.INITIAL

    def move_to(self, state: ElectionState) -> None:
        """Change the state.

        Raises:
            IllegalElectionTransitionError: The current state does not allow it.
        """
        if state not in TRANSITIONS[self._state]:
            raise IllegalElectionTransitionError(
                f"partition {self.partition_index}: {self._state.name} > {state.name}"
            )
        self._state = state
