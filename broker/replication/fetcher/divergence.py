"""Where a follower's log is to be cut when it has diverged from its leader's (KIP-101, KIP-279).

    leader says   the largest epoch not above the follower's last, and where that ends there
    follower      looks up the largest epoch not above *that* in its own log, and where it ends here
    cut           at the smaller of the two ends, if it is the same epoch
                  else at the follower's: it has nothing of the leader's epoch; ask again from there

Without the second look-up two logs that changed leaders twice, quickly, would keep different
records under the same offsets: that is KIP-279.

Source: Kafka, AbstractFetcherThread.scala (getOffsetTruncationState).
"""

from storage.checkpoints.leader_epochs import UNDEFINED_EPOCH, LeaderEpochCache


def truncation_offset(
    epochs: LeaderEpochCache, log_end_offset: int, diverging: tuple[int, int]
) -> int:
    """The log end offset that the follower is to have before it asks again.

    Args:
        epochs: The follower's.
        log_end_offset: The follower's.
        diverging: (epoch, end offset), as the leader has it; epoch -1: it has none that is as old.
    """
    leader_epoch, leader_end = diverging
    epoch, end_offset = epochs.end_offset_for(leader_epoch, log_end_offset)
    if epoch == UNDEFINED_EPOCH:
        # Nothing is known of epochs here, or nothing as early: what the leader's ends say holds.
        return min(max(leader_end, 0), log_end_offset)
    if epoch != leader_epoch:
        return min(end_offset, log_end_offset)
    return min(end_offset, leader_end, log_end_offset)
