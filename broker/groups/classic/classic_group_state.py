"""States of a classic group."""

import enum


class ClassicGroupState(enum.Enum):
    """State of a classic group between two generations.

        Empty ──> PreparingRebalance ──> CompletingRebalance ──> Stable
          ^          │    ^    ^                │                  │
          └──────────┘    │    └────────────────┘                  │
                          └────────────────────────────────────────┘

    and from everywhere to Dead: the group was deleted, or this broker is no longer its coordinator.

    - Empty: no members; offsets may still be there.
    - PreparingRebalance: waiting for members to (re)join; JoinGroup requests are parked.
    - CompletingRebalance: a generation exists, its leader has not yet sent the assignment;
      SyncGroup requests are parked.
    - Stable: all members may fetch their assignment.

    Source: Kafka, ClassicGroupState.java.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: dict[ClassicGroupState, frozenset[ClassicGroupState]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {
            ClassicGroupState.STABLE,
            ClassicGroupState.COMPLETING_REBALANCE,
            ClassicGroupState.EMPTY,
        }
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(ClassicGroupState),
}
